import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { PATHS } from "../../page/paths.ts";
import type { Shown } from "../../page/runs/rows.ts";
import { answerRuns, type StreamWatch, type Viewer } from "../../page/runs/runs-page.ts";
import { dataAnswer, refusalAnswer } from "../../page/serve/answers.ts";
import { pageAsset, pageFile } from "../../page/serve/assets.ts";
import { bodyOf, refusedPost } from "../../page/serve/guard.ts";
import { pageSessions } from "../../page/serve/sessions.ts";
import { allowedHostnames, foreignHost } from "../../server/http/guards.ts";
import type { Log } from "../../server/log.ts";
import { oneTimeLinks } from "./links.ts";

/** The page of this machine's user, on a loopback port. */
export interface LocalPage {
  /** Makes a link that opens the page once. */
  link(): string;
  /** How many pages are open now. */
  readonly open: () => number;
  /** Resolves with true when a page is opened from now on, or is open; with false after so many milliseconds. */
  someoneWithin(ms: number): Promise<boolean>;
  close(): Promise<void>;
}

const USED = "This link has been used before: each one works once. The next run that waits opens a new one.";
const NO_SESSION = "This page is opened by the server itself, with a link that works once.";
const TRIED_AGAIN = "The link of this page was tried a second time, and refused. If that was not you, decline.";

/** Serves the page on a free port of loopback; `port` asks for a certain one. It never keeps the process alive. */
export async function localPage(
  shown: Shown,
  { log, about, port = 0 }: { readonly log: Log; readonly about: string; readonly port?: number },
): Promise<LocalPage> {
  const comers = new Set<() => void>();
  const notices: string[] = [];
  let open = 0;
  const watch: StreamWatch = {
    opened() {
      open += 1;
      for (const came of comers) came();
      return () => {
        open -= 1;
      };
    },
    notices: () => notices.splice(0),
  };
  const links = oneTimeLinks(() => shown.services.clock.now());
  const server = createServer();
  const address = await listening(server, port);
  const serve = router(shown, { ...{ links, watch, about, address }, triedAgain: () => notices.push(TRIED_AGAIN) });
  server.on(
    "request",
    getRequestListener((request) => serve(request).catch((error: unknown) => failed(error, log)), {
      overrideGlobalObjects: false,
    }),
  );
  return {
    link: () => `${address}${PATHS.open}${links.make()}`,
    open: () => open,
    someoneWithin: (ms) =>
      new Promise((resolve) => {
        if (open > 0) return resolve(true);
        const over = (isThere: boolean): void => {
          clearTimeout(timer);
          comers.delete(came);
          resolve(isThere);
        };
        const came = (): void => over(true);
        const timer = setTimeout(() => over(false), ms).unref();
        comers.add(came);
      }),
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** What the routes of the page need beside what they show. */
interface Parts {
  readonly links: ReturnType<typeof oneTimeLinks>;
  readonly watch: StreamWatch;
  readonly about: string;
  readonly address: string;
  readonly triedAgain: () => void;
}

function router(shown: Shown, { links, watch, about, address, triedAgain }: Parts) {
  const sessions = pageSessions<Viewer>({ cookieName: `targeting-page-${new URL(address).port}` });
  const viewer = { who: shown.services.person ?? shown.caller, shown };
  const hostnames = allowedHostnames([]);
  const redeem = async (request: Request): Promise<Response> => {
    const refused = refusedPost(request);
    if (refused !== undefined) return refused;
    const body = await bodyOf(request);
    if (body instanceof Response) return body;
    const { data } = body;
    const code = typeof data === "object" && data !== null && "code" in data ? String(data.code) : "";
    const use = links.use(code);
    if (use === "used") triedAgain();
    if (use !== "fresh") return refusalAnswer(403, USED);
    return dataAnswer({}, 200, { "Set-Cookie": sessions.open(viewer).cookie });
  };
  return async (request: Request): Promise<Response> => {
    const foreign = foreignHost(request.headers, hostnames);
    if (foreign !== undefined) return refusalAnswer(403, "This page is served to this machine alone.");
    const { pathname } = new URL(request.url);
    const isHead = request.method === "HEAD";
    const isRead = request.method === "GET" || isHead;
    const asset = isRead ? await pageAsset(pathname) : undefined;
    if (asset !== undefined) return asset;
    if (isRead && pathname.startsWith(PATHS.open)) return pageFile("page", { isHead });
    if (request.method === "POST" && pathname === PATHS.redeem) return redeem(request);
    const session = sessions.of(request);
    if (session === undefined) return refusalAnswer(pathname === PATHS.page ? 403 : 401, NO_SESSION);
    if (isRead && pathname === PATHS.page) return pageFile("page", { isHead });
    return answerRuns(request, session, { about, returns: false }, watch);
  };
}

async function listening(server: Server, port: number): Promise<string> {
  server.listen(port, "127.0.0.1").unref();
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new TypeError("the page listens on no port");
  return `http://127.0.0.1:${bound.port}`;
}

function failed(error: unknown, log: Log): Response {
  log.error("a request of the page failed", { error });
  return refusalAnswer(500, "That failed for a reason inside the server; its log says more.");
}
