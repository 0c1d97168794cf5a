import { PATHS } from "../../../page/paths.ts";
import { answerRuns, type StreamWatch } from "../../../page/runs/runs-page.ts";
import { dataAnswer, refusalAnswer } from "../../../page/serve/answers.ts";
import { pageAsset, pageFile } from "../../../page/serve/assets.ts";
import { bodyOf, refusedPost } from "../../../page/serve/guard.ts";
import { pageSessions } from "../../../page/serve/sessions.ts";
import type { LoginWays } from "../../../page/wire.ts";
import type { Log } from "../../../server/log.ts";
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
}

const WAYS: LoginWays = { message: "Here a person decides on the runs that wait for a yes.", token: true };

/** How often an open page is looked at for whether its person may still see it, in milliseconds. */
const LOOK_MS = 500;

/** Serves the page to approvers who log in with a token. */
export function approversPage({ viewers, address, key, log, stopping }: PageParts) {
  const { port, protocol } = new URL(address);
  const secure = protocol === "https:";
  const sessions = pageSessions({ cookieName: `targeting-page-${port || protocol.slice(0, -1)}`, key, secure });
  const login = async (request: Request): Promise<Response> => {
    const refused = refusedPost(request);
    if (refused !== undefined) return refused;
    const body = await bodyOf(request);
    if (body instanceof Response) return body;
    const { data } = body;
    const token = typeof data === "object" && data !== null && "token" in data ? String(data.token) : "";
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
    const session = sessions.of(request);
    const viewer = session && viewers.viewerOf(session.who);
    const isHead = method === "HEAD";
    if (isRead && pathname === PATHS.page) return pageFile("page", { isHead, ...(viewer ? {} : { login: WAYS }) });
    if (session === undefined || viewer === undefined) return dataAnswer(WAYS, 401);
    const { about } = viewer;
    const watch = watchOf(
      () => viewers.viewerOf(session.who) !== undefined && sessions.of(request) !== undefined,
      stopping,
    );
    return answerRuns(request, { ...viewer, token: session.token }, { about, returns: true }, watch);
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
    notices: () => [],
    signal: AbortSignal.any([ending.signal, stopping]),
  };
}
