import { PATHS } from "../../../page/paths.ts";
import { answerRuns, type StreamWatch } from "../../../page/runs/runs-page.ts";
import { dataAnswer, refusalAnswer } from "../../../page/serve/answers.ts";
import { pageAsset, pageFile } from "../../../page/serve/assets.ts";
import { type PageSessions, pageSessions } from "../../../page/serve/sessions.ts";
import type { LoginWays } from "../../../page/wire.ts";
import type { Log } from "../../../server/log.ts";
import type { Settings } from "../../../settings/settings.ts";
import { postedText } from "../../page/linked-page.ts";
import type { Viewers } from "./viewers.ts";

/** What the page over HTTP is made of. */
interface PageParts {
  readonly viewers: Viewers;
  /** Address of the page as people see it. */
  readonly address: string;
  /** Seals its sessions, in every process that serves it. */
  readonly key: Uint8Array;
  readonly log: Log;
  /** Aborted when the process is about to end. */
  readonly stopping: AbortSignal;
  /** Where people log in through the issuer; absent: they do not. */
  readonly settings: Settings;
}

const MESSAGE = "Here a person decides on the runs that wait for a yes.";

/** How often an open page is looked at for whether its person may still see it, in milliseconds. */
const LOOK_MS = 500;

/** Serves the page to approvers who log in, with a token or through the issuer. */
export function approversPage(parts: PageParts) {
  const { viewers, address, key, log, stopping, settings } = parts;
  const { port, protocol } = new URL(address);
  const suffix = port || protocol.slice(0, -1);
  const sessions = pageSessions({ cookieName: `targeting-page-${suffix}`, key, secure: protocol === "https:" });
  const hasIssuer = settings.http.oauth?.clientId !== undefined;
  const ways: LoginWays = { message: MESSAGE, token: true, ...(hasIssuer && { issuer: PATHS.issuer }) };
  const throughIssuer = hasIssuer ? issuerRoutes(parts, `targeting-login-${suffix}`, ways, sessions) : undefined;
  const login = async (request: Request): Promise<Response> => {
    const token = await postedText(request, "token");
    if (token instanceof Response) return token;
    const found = viewers.login(token);
    if ("who" in found) return dataAnswer({}, 200, { "Set-Cookie": sessions.open(found.who) });
    log.warn("a login to the page was refused", { status: found.refused });
    return refusalAnswer(found.refused, found.message);
  };
  return async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const { method } = request;
    const isRead = method === "GET" || method === "HEAD";
    const asset = isRead ? await pageAsset(pathname) : undefined;
    if (asset !== undefined) return asset;
    if (pathname === PATHS.login && method === "POST") return login(request);
    const fromIssuer = method === "GET" ? await throughIssuer?.(request) : undefined;
    if (fromIssuer !== undefined) return fromIssuer;
    const session = sessions.of(request);
    const viewer = session && viewers.viewerOf(session.who);
    const isHead = method === "HEAD";
    if (isRead && pathname === PATHS.page) return pageFile("page", { isHead, ...(viewer ? {} : { login: ways }) });
    if (session === undefined || viewer === undefined) return dataAnswer(ways, 401);
    const { about } = viewer;
    const watch = watchOf(
      () => viewers.viewerOf(session.who) !== undefined && sessions.of(request) !== undefined,
      stopping,
    );
    return answerRuns(request, { ...viewer, token: session.token }, { about, returns: true }, watch);
  };
}

/** The two routes of a login through the issuer; undefined for all others. The login is loaded with the first of them. */
function issuerRoutes(parts: PageParts, cookieName: string, ways: LoginWays, sessions: PageSessions) {
  const { viewers, settings, address, log } = parts;
  const notIn = (status: number, message: string): Promise<Response> =>
    pageFile("page", { status, login: { ...ways, message } });
  return async (request: Request): Promise<Response | undefined> => {
    const { pathname } = new URL(request.url);
    if (pathname !== PATHS.issuer && pathname !== PATHS.callback) return undefined;
    const { issuerLogin, NotLetIn } = await import("./issuer-login.ts");
    const login = issuerLogin(settings, { address, cookieName });
    try {
      if (pathname === PATHS.issuer) return await login.begin();
      const { who, forget } = await login.end(request);
      if (viewers.viewerOf(who) === undefined) return await notIn(403, "You approve for no project of this server.");
      // The cookie of the session is not sent along from elsewhere: the page goes on by its own script.
      const page = await pageFile("page");
      for (const cookie of [sessions.open(who), forget]) page.headers.append("Set-Cookie", cookie);
      return page;
    } catch (error) {
      // What errors carry beside their message may hold tokens.
      const reason = error instanceof Error ? error.message : "";
      log.warn("a login through the authorization server failed", { reason });
      if (error instanceof NotLetIn) return notIn(403, error.message);
      return notIn(502, "The login failed between this server and the authorization server; its log says more.");
    }
  };
}

/** Ends a stream as its session, or the process, does. */
function watchOf(isIn: () => boolean, stopping: AbortSignal): StreamWatch {
  const ending = new AbortController();
  return {
    opened() {
      const timer = setInterval(() => isIn() || ending.abort(), LOOK_MS).unref();
      return () => clearInterval(timer);
    },
    signal: AbortSignal.any([ending.signal, stopping]),
  };
}
