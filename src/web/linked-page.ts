import { randomBytes } from "node:crypto";
import * as z from "zod";
import { dataAnswer, isSame, pageApp, postedTexts, RefusedRequest, takePosted } from "./page.ts";
import { addRuns, type StreamWatch, type Viewing, watchSession } from "./runs-page.ts";
import { findOnce, findPageSandbox } from "./sandbox-beside.ts";
import type { PageScope } from "./seen.ts";
import { pageSessions } from "./sessions.ts";
import { type LoginWays, type OpenedSession, PATHS, type ShownEnvironment, TOKEN_HEADER } from "./wire.ts";

/** The web page for the user of this machine, who opens it with a link that works once. */
export interface LinkedPage {
  link(): string;
  readonly linkMs: number;
  /** Returns the number of browser tabs that show the page now. */
  readonly open: () => number;
  /** Resolves to true when a tab shows the page, or to false if none does within `ms` milliseconds. */
  someoneWithin(ms: number): Promise<boolean>;
  /** Answers a request. The caller must have checked its `Host` header. */
  readonly serve: (request: Request) => Promise<Response>;
}

const NEW_LINK =
  "To get a new link, run this command in a terminal: targeting-mcp page. If the next run needs approval on the page, the page opens by itself.";
const USED = `This link was used before, or is more than two minutes old. ${NEW_LINK}`;
const NO_SESSION: LoginWays = { message: `Open this page with a one-time link. ${NEW_LINK}` };
const ENDED_SESSION: LoginWays = {
  message: `Your session has ended: it lasts 12 hours, or until the server stops. ${NEW_LINK}`,
};
const TRIED_AGAIN =
  "A second attempt to open this page's link was refused. If that was not you, decline the waiting changes.";

/** The address of the web page and the environment that it shows. Aborting `signal` ends its streams. */
interface PagePlace {
  readonly address: string;
  readonly environment: ShownEnvironment;
  readonly signal?: AbortSignal;
}

/** Creates the web page for this machine's user at a loopback address. */
export function linkedPage(shown: PageScope, { address, environment, signal }: PagePlace): LinkedPage {
  const { person = shown.caller, clock } = shown.services;
  const now = (): number => clock.now();
  const sessions = pageSessions({ person: z.string(), now });
  const links = oneTimeLinks(now);
  const sandbox = findOnce(() => findPageSandbox(shown.services, "all"));
  const comers = new Set<() => void>();
  let notice = "";
  let open = 0;
  const watch: StreamWatch = {
    opened() {
      open += 1;
      for (const came of comers) came();
      return () => {
        open -= 1;
      };
    },
    notice: () => notice,
    ...(signal && { signal }),
  };
  const app = pageApp<Viewing>({
    address,
    shownAt: [PATHS.page, `${PATHS.open}:code{.*}`],
    about: () => ({ login: NO_SESSION }),
    openRoutes: (routes) =>
      routes.post(PATHS.redeem, takePosted, ({ var: { posted } }) => {
        const use = links.use(postedTexts(posted, ["code"]).code);
        if (use === "used") notice = TRIED_AGAIN;
        if (use !== "fresh") throw new RefusedRequest(403, USED);
        return dataAnswer({ session: sessions.open(person) } satisfies OpenedSession);
      }),
    async enter(request) {
      const session = await sessions.of(request);
      if (session === undefined) {
        throw new RefusedRequest(401, request.headers.get(TOKEN_HEADER) ? ENDED_SESSION : NO_SESSION);
      }
      const isIn = async () => (await sessions.of(request)) !== undefined;
      const about = { environment, returns: false, sandbox: await sandbox() };
      return { viewer: { who: session.person, shown }, about, watch: watchSession(isIn, watch) };
    },
  });
  addRuns(app);
  return {
    link: () => new URL(PATHS.open + links.make(), address).href,
    linkMs: LINK_MS,
    open: () => open,
    someoneWithin: (ms) =>
      new Promise((resolve) => {
        if (open > 0) return resolve(true);
        const finish = (isThere: boolean): void => {
          clearTimeout(timer);
          comers.delete(came);
          resolve(isThere);
        };
        const came = (): void => finish(true);
        const timer = setTimeout(() => finish(false), ms).unref();
        comers.add(came);
      }),
    serve: async (request) => app.fetch(request),
  };
}

const LINK_MS = 120_000;

/** Creates links with codes. Each code works once, within two minutes. */
function oneTimeLinks(now: () => number) {
  const made: { readonly code: string; readonly until: number; isUsed: boolean }[] = [];
  return {
    make() {
      const code = randomBytes(32).toString("base64url");
      made.push({ code, until: now() + LINK_MS, isUsed: false });
      return code;
    },
    /** Redeems a code. `fresh`: it is valid. `used`: it was tried before. `unknown`: it expired or never existed. */
    use(given: string) {
      const link = made.find(({ code }) => isSame(code, given));
      if (link === undefined) return "unknown";
      if (link.isUsed) return "used";
      link.isUsed = true;
      return link.until > now() ? "fresh" : "unknown";
    },
  };
}
