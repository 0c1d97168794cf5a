import type { Log } from "../observe/log.ts";
import type { EndedSessions } from "../runs/backend.ts";
import type { Settings } from "../settings/settings.ts";
import type { ToolServices } from "../tools/context.ts";
import { once } from "../tools/define-tool.ts";
import {
  dataAnswer,
  pageAsset,
  pageDocument,
  refusalAnswer,
  rejectForeignPost,
  rejectForeignScheme,
} from "../web/answers.ts";
import { postedTexts } from "../web/linked-page.ts";
import { runsRoutes, watchSession } from "../web/runs-page.ts";
import { findOnce, findPageSandbox } from "../web/sandbox-beside.ts";
import { type PageSession, pageSessions } from "../web/sessions.ts";
import { type LoginWays, type OpenedSession, PATHS } from "../web/wire.ts";
import { CHECK_MS, type IssuerPerson, type Person, personForm, type Viewers } from "./approver-sessions.ts";
import { IssuerUnreachable, reasonOf } from "./issuer-reads.ts";

/** The parts of the page over HTTP. */
interface PageParts {
  readonly viewers: Viewers;
  /** The address of the page as people see it. */
  readonly address: string;
  /** The key that encrypts sessions and logins. All processes that serve the page share it. */
  readonly key: Uint8Array;
  /**
   * The sessions that any of these processes has ended. If absent, each process knows only the sessions that it ended
   * itself.
   */
  readonly shared?: EndedSessions | undefined;
  readonly log: Log;
  /** Aborted when the process is about to end. */
  readonly stopping: AbortSignal;
  /** The settings of the login through the issuer. Without them, people log in only with tokens. */
  readonly settings: Pick<Settings, "http" | "proxies">;
  readonly now?: () => number;
}

/** The addresses that show the page. If the browser has no session, the page shows how to log in. */
const SHOWS_PAGE: ReadonlySet<string> = new Set([PATHS.page, PATHS.login, PATHS.issuer, PATHS.callback]);

const MESSAGE = "Here a person decides on the runs that wait for approval.";

/** How long a session lasts if the issuer cannot be asked about the person's rights again, in milliseconds. */
const UNCHECKED_MS = 3_600_000;

/**
 * Returns a function that serves the page to approvers, who log in with a token or through the issuer. It gets each
 * request and the address of the client that sent it.
 */
export function approversPage(parts: PageParts) {
  const { viewers, address, key, shared, log, stopping, settings, now = Date.now } = parts;
  const sessions = pageSessions<Person>({ person: personForm, key, shared, now });
  const throughIssuer = settings.http.oauth?.clientId === undefined ? undefined : issuerRoutes({ ...parts, now });
  const ways: LoginWays = { message: MESSAGE, token: true, ...(throughIssuer && { issuer: PATHS.issuer }) };
  const sandboxOf = projectSandboxes();
  const opened = (session: string): Response => {
    const answer: OpenedSession = { session };
    return dataAnswer(answer);
  };
  const logIn = async (request: Request): Promise<Response> => {
    const posted = await postedTexts(request, ["token"]);
    if (posted instanceof Response) return posted;
    const found = viewers.login(posted.token);
    if ("person" in found) return opened(sessions.open(found.person));
    log.warn("a login to the page was refused", { status: found.refused });
    return refusalAnswer(found.refused, found.message);
  };
  const comeBack = async (request: Request, peer: string): Promise<Response> => {
    const person = await throughIssuer?.end(request, peer);
    if (person === undefined) return dataAnswer(ways, 401);
    if (person instanceof Response) return person;
    if (viewers.viewerOf(person) === undefined) return refusalAnswer(403, "You approve for no project of this server.");
    return opened(sessions.open(person, person.checkAt === undefined ? UNCHECKED_MS : undefined));
  };
  const isDue = ({ person }: PageSession<Person>): boolean => {
    if (person.by !== "issuer" || person.checkAt === undefined) return false;
    const leftMs = person.checkAt - now();
    // If more time is left than there is between two checks, the clock was set back since the last one.
    return leftMs <= 0 || leftMs > CHECK_MS;
  };
  const renewed = async (session: PageSession<Person>): Promise<Response> => {
    const { person } = session;
    if (person.by !== "issuer" || !isDue(session)) return opened(sessions.renew(session, person));
    const known = await throughIssuer?.renew(person);
    if (known !== undefined && !(known instanceof Response)) return opened(sessions.renew(session, known));
    if (known !== undefined && known.status !== 403) return known;
    await sessions.end(session);
    return dataAnswer(ways, 401);
  };
  /** Ends the session in every process that serves the page. */
  const logOut = async (session: PageSession<Person>): Promise<Response> => {
    await sessions.end(session);
    if (session.person.by === "issuer") await throughIssuer?.revoke(session.person);
    return dataAnswer({});
  };
  /** Answers requests that need no session. */
  const withoutSession = async (request: Request, pathname: string, peer: string): Promise<Response | undefined> => {
    const { method } = request;
    if (method === "POST") {
      if (pathname === PATHS.login) return logIn(request);
      if (pathname === PATHS.issuer) return throughIssuer?.begin(request);
      return pathname === PATHS.callback ? comeBack(request, peer) : undefined;
    }
    if (method !== "GET" && method !== "HEAD") return undefined;
    if (!SHOWS_PAGE.has(pathname)) return pageAsset(pathname);
    return pageDocument({ login: ways }, { isHead: method === "HEAD" });
  };
  return async (request: Request, peer: string): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const answer = rejectForeignScheme(request, address) ?? (await withoutSession(request, pathname, peer));
    if (answer !== undefined) return answer;
    const session = await sessions.of(request);
    const viewer = session && viewers.viewerOf(session.person);
    if (session === undefined || viewer === undefined) return dataAnswer(ways, 401);
    if (request.method === "POST" && (pathname === PATHS.renew || pathname === PATHS.logout)) {
      return rejectForeignPost(request) ?? (pathname === PATHS.logout ? logOut(session) : renewed(session));
    }
    if (isDue(session)) return dataAnswer({ ...ways, renews: true } satisfies LoginWays, 401);
    const isIn = async () =>
      !isDue(session) && viewers.viewerOf(session.person) !== undefined && (await sessions.of(request)) !== undefined;
    const sandbox = await sandboxOf(viewer.shown.services);
    const about = { environment: viewer.environment, returns: true, logsOut: true, sandbox };
    return runsRoutes(request, viewer, about, watchSession(isIn, { signal: stopping }));
  };
}

/** Finds the sandbox of a person's project. Each project has its own sandbox if the sandbox runs in this process. */
function projectSandboxes() {
  const known = new WeakMap<object, ReturnType<typeof findOnce>>();
  return async (services: ToolServices) => {
    const { testBench, environment, apiUrl } = services;
    // A sandbox at a separate address may contain events and targetings of other projects.
    if (testBench === undefined || environment !== "sandbox" || URL.canParse(apiUrl)) return undefined;
    const finder = known.get(testBench) ?? findOnce(() => findPageSandbox(services, "reads"));
    known.set(testBench, finder);
    return finder();
  };
}

/**
 * The steps of the login through the issuer. If a step fails, it returns the answer with the reason. The code is loaded
 * with the first step.
 */
function issuerRoutes({ settings, address, key, log, now }: PageParts & Required<Pick<PageParts, "now">>) {
  const login = once(async () => {
    const { issuerLogin, LoginRefused, TooManyLogins } = await import("./issuer-login.ts");
    const problem = (what: string, reason: string): void => log.warn(what, { reason });
    return { ...issuerLogin({ settings, address, key, problem, now }), LoginRefused, TooManyLogins };
  });
  type Login = Awaited<ReturnType<typeof login>>;
  const orRefusal = async <Done>(work: (login: Login) => Promise<Done>): Promise<Done | Response> => {
    const its = await login();
    try {
      return await work(its);
    } catch (error) {
      // Other properties of errors than their message may contain tokens.
      const reason = reasonOf(error);
      log.warn("a login through the authorization server failed", { reason });
      if (error instanceof its.LoginRefused) return refusalAnswer(403, error.message);
      if (error instanceof its.TooManyLogins) return refusalAnswer(503, error.message, { "Retry-After": "60" });
      const message =
        error instanceof IssuerUnreachable
          ? "The authorization server cannot be read now. Try again in a moment."
          : "The login failed between this server and the authorization server; its log says more.";
      return refusalAnswer(502, message);
    }
  };
  return {
    async begin(request: Request): Promise<Response> {
      const refused = rejectForeignPost(request);
      if (refused !== undefined) return refused;
      const begun = await orRefusal((its) => its.begin());
      return begun instanceof Response ? begun : dataAnswer(begun);
    },
    async end(request: Request, peer: string) {
      const posted = await postedTexts(request, ["query", "login"]);
      return posted instanceof Response ? posted : orRefusal((its) => its.end(posted, peer));
    },
    renew: (person: IssuerPerson) => orRefusal((its) => its.renew(person)),
    revoke: (person: IssuerPerson) => orRefusal((its) => its.revoke(person)),
  };
}
