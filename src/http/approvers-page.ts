import type { Log } from "../observe/log.ts";
import type { EndedSessions } from "../runs/backend.ts";
import type { Settings } from "../settings/settings.ts";
import { once, type ToolServices } from "../tools/define-tool.ts";
import { dataAnswer, type PageApp, pageApp, postedTexts, RefusedRequest, takePosted } from "../web/page.ts";
import { addRuns, type Viewing, watchSession } from "../web/runs-page.ts";
import { findOnce, findPageSandbox } from "../web/sandbox-beside.ts";
import { type PageSession, pageSessions } from "../web/sessions.ts";
import { type LoginWays, type OpenedSession, PATHS, TOKEN_HEADER } from "../web/wire.ts";
import { CHECK_MS, type IssuerPerson, type Person, personForm, type Viewers } from "./approver-sessions.ts";
import { ACCESS_UNREADABLE } from "./auth.ts";
import { IssuerUnreachable, reasonOf } from "./issuer-reads.ts";

interface PageParts {
  readonly viewers: Viewers;
  readonly address: string;
  readonly key: Uint8Array;
  /** The sessions that were ended through other processes. If absent, this process does not notice these. */
  readonly shared?: EndedSessions | undefined;
  readonly log: Log;
  readonly stopping: AbortSignal;
  /** The settings of the login. Without an OAuth client, people can log in only with tokens. */
  readonly settings: Pick<Settings, "http" | "proxies">;
  readonly now?: () => number;
}

const MESSAGE = "Log in to approve or decline changes.";

/** How long a session lasts if the authorization server cannot check the person's rights again, in milliseconds. */
const UNCHECKED_MS = 3_600_000;

export function approversPage(parts: PageParts): (request: Request, peer: string) => Promise<Response> {
  const { viewers, address, key, shared, log, stopping, settings, now = Date.now } = parts;
  const sessions = pageSessions<Person>({ person: personForm, key, shared, now });
  const throughIssuer = settings.http.oauth?.clientId === undefined ? undefined : issuerSteps({ ...parts, now });
  const ways: LoginWays = { message: MESSAGE, token: true, ...(throughIssuer && { issuer: PATHS.issuer }) };
  const sandboxOf = projectSandboxes();
  const opened = (session: string): Response => dataAnswer({ session } satisfies OpenedSession);
  const isDue = (person: Person): person is IssuerPerson => {
    if (person.by !== "issuer" || person.checkAt === undefined) return false;
    const leftMs = person.checkAt - now();
    // More than CHECK_MS is left only if the clock was set back. Then the check is due, too.
    return leftMs <= 0 || leftMs > CHECK_MS;
  };
  const renewed = async (session: PageSession<Person>): Promise<Response> => {
    const { person } = session;
    if (!isDue(person)) return opened(sessions.renew(session, person));
    try {
      const known = await throughIssuer?.((its) => its.renew(person));
      if (known !== undefined) return opened(sessions.renew(session, known));
    } catch (thrown) {
      if (!(thrown instanceof RefusedRequest && thrown.status === 403)) throw thrown;
    }
    await sessions.end(session);
    throw new RefusedRequest(401, ways);
  };
  const checkReadable = (): void => {
    if (viewers.isUnreadable()) throw new RefusedRequest(503, ACCESS_UNREADABLE);
  };
  const openRoutes = (app: PageApp<Approver>): void => {
    app.post(PATHS.login, takePosted, ({ var: { posted } }) => {
      checkReadable();
      const found = viewers.login(postedTexts(posted, ["token"]).token);
      if ("person" in found) return opened(sessions.open(found.person));
      log.warn("a login to the page was refused", { status: found.refused });
      throw new RefusedRequest(found.refused, found.message);
    });
    if (throughIssuer === undefined) return;
    app.post(PATHS.issuer, takePosted, async () => dataAnswer(await throughIssuer((its) => its.begin())));
    app.post(PATHS.callback, takePosted, async ({ var: { posted }, env: { peer = "" } }) => {
      const answer = postedTexts(posted, ["query", "login"]);
      checkReadable();
      const person = await throughIssuer((its) => its.end(answer, peer));
      if (viewers.viewerOf(person) === undefined)
        throw new RefusedRequest(403, "You may not approve changes of any project on this server.");
      return opened(sessions.open(person, person.checkAt === undefined ? UNCHECKED_MS : undefined));
    });
  };
  const app = pageApp<Approver>({
    address,
    shownAt: [PATHS.page, PATHS.login, PATHS.issuer, PATHS.callback],
    about: () => ({ login: ways }),
    openRoutes,
    async enter(request) {
      checkReadable();
      const session = await sessions.of(request);
      const viewer = session && viewers.viewerOf(session.person);
      if (session === undefined || viewer === undefined) {
        const message = request.headers.get(TOKEN_HEADER) ? `Your session has ended. ${MESSAGE}` : MESSAGE;
        throw new RefusedRequest(401, { ...ways, message });
      }
      const { person } = session;
      const { pathname } = new URL(request.url);
      const leaves = request.method === "POST" && (pathname === PATHS.renew || pathname === PATHS.logout);
      if (isDue(person) && !leaves) throw new RefusedRequest(401, { ...ways, renews: true });
      const isIn = async () =>
        !isDue(person) && viewers.viewerOf(person) !== undefined && (await sessions.of(request)) !== undefined;
      const sandbox = leaves ? undefined : await sandboxOf(viewer.shown.services);
      const about = { environment: viewer.environment, returns: true, logsOut: true, sandbox };
      return { session, viewer, about, watch: watchSession(isIn, { signal: stopping }) };
    },
  });
  app.post(PATHS.renew, ({ var: { session } }) => renewed(session.session));
  app.post(PATHS.logout, async ({ var: { session } }) => {
    const { person } = session.session;
    await sessions.end(session.session);
    if (person.by === "issuer") await throughIssuer?.((its) => its.revoke(person)).catch(() => undefined);
    return dataAnswer({});
  });
  addRuns(app);
  return async (request, peer) => app.fetch(request, { peer });
}

interface Approver extends Viewing {
  readonly session: PageSession<Person>;
}

function projectSandboxes() {
  const known = new WeakMap<object, ReturnType<typeof findOnce>>();
  return async (services: ToolServices) => {
    const { testBench, environment, apiUrl } = services;
    // A sandbox given by its URL may have data of other projects, so the page does not show it.
    if (testBench === undefined || environment !== "sandbox" || URL.canParse(apiUrl)) return undefined;
    const finder = known.get(testBench) ?? findOnce(() => findPageSandbox(services, "reads"));
    known.set(testBench, finder);
    return finder();
  };
}

/** Returns a function that runs a step of a login through the issuer. It throws a RefusedRequest if the step fails. */
function issuerSteps({ settings, address, key, log, now }: PageParts & Required<Pick<PageParts, "now">>) {
  const login = once(async () => {
    const { issuerLogin, LoginRefused, TooManyLogins } = await import("./issuer-login.ts");
    const problem = (what: string, reason: string): void => log.warn(what, { reason });
    return { ...issuerLogin({ settings, address, key, problem, now }), LoginRefused, TooManyLogins };
  });
  type Login = Awaited<ReturnType<typeof login>>;
  return async <Done>(step: (login: Login) => Promise<Done>): Promise<Done> => {
    const its = await login();
    try {
      return await step(its);
    } catch (error) {
      // Only the message is logged: other properties of the error may contain tokens.
      const reason = reasonOf(error);
      log.warn("a login, its renewal or a log-out through the authorization server failed", { reason });
      if (error instanceof its.LoginRefused) throw new RefusedRequest(403, error.message);
      if (error instanceof its.TooManyLogins) throw new RefusedRequest(503, error.message, { "Retry-After": "60" });
      const message =
        error instanceof IssuerUnreachable
          ? "The authorization server cannot be used now; the log of this server has the reason. Try again in a moment."
          : "A request to the authorization server failed. The log of this server has the reason.";
      throw new RefusedRequest(502, message);
    }
  };
}
