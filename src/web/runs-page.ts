import { createHash } from "node:crypto";
import { actOn } from "./actions.ts";
import { bodyOf, dataAnswer, refusalAnswer, rejectForeignPost } from "./answers.ts";
import { eventStream, type StreamSource } from "./event-stream.ts";
import { changesOf, downloaded, effectObjects, problemsOf, runDetail, runRows } from "./rows.ts";
import { mergeSources, type PageSandbox } from "./sandbox-beside.ts";
import { type PageScope, runsOfOthers } from "./seen.ts";
import { type Hello, type Message, PATHS } from "./wire.ts";

/** A person who is logged in to the page: their name in the audit log, and the runs that they may see. */
export interface Viewer {
  readonly who: string;
  readonly shown: PageScope;
}

/** The server's facts that the page shows. */
interface About extends Pick<Hello, "environment" | "returns" | "logsOut"> {
  /** The sandbox whose views are shown with the runs; absent if there is none. */
  readonly sandbox?: PageSandbox | undefined;
}

/** The connection between a session and its open streams. */
export interface StreamWatch {
  /** Called when a stream of the session opens. The returned function is called when it closes. */
  readonly opened: () => () => void;
  /** Returns the current notice about the session. */
  readonly notice?: () => string;
  /** Aborted if the session has ended or its server stops. */
  readonly signal?: AbortSignal;
}

/** How often an open page checks its session and the runs, which any process may change, in milliseconds. */
const LOOK_MS = 500;

/** Returns a watch that ends streams with the session. The session is checked while a stream is open. */
export function watchSession(
  isIn: () => Promise<boolean>,
  { opened, signal, ...watch }: Partial<StreamWatch>,
): StreamWatch {
  const ending = new AbortController();
  return {
    ...watch,
    opened() {
      const closed = opened?.();
      const look = async (): Promise<void> => {
        if (!(await isIn())) ending.abort();
      };
      // If a check fails, the next one decides.
      const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref();
      return () => {
        clearInterval(timer);
        closed?.();
      };
    },
    signal: signal === undefined ? ending.signal : AbortSignal.any([ending.signal, signal]),
  };
}

/** Serves the data of runs, and the decisions on them, to a person with a session. */
export async function runsRoutes(
  request: Request,
  viewer: Viewer,
  about: About,
  watch: StreamWatch,
): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  const { shown } = viewer;
  const [, runId, action] = new RegExp(`^${PATHS.runs}/([0-9A-Z]{26})(?:/([a-z]+))?$`).exec(pathname) ?? [];
  if (request.method === "POST") {
    const refused = rejectForeignPost(request);
    if (refused !== undefined) return refused;
    const body = await bodyOf(request);
    if (body instanceof Response) return body;
    const ofSandbox = await about.sandbox?.answer(request, body.data);
    if (ofSandbox !== undefined) return ofSandbox;
    if (runId === undefined || action === undefined) return nothingHere();
    return actOn({ runId, action, data: body.data, who: viewer.who }, shown);
  }
  if (request.method !== "GET") return refusalAnswer(405, "The page is read by GET.");
  if (pathname === PATHS.stream) {
    const closed = watch.opened();
    const first: readonly Message[] = [helloOf(shown, about)];
    const runs = runUpdates(shown, watch.notice);
    const source = about.sandbox === undefined ? runs : mergeSources(runs, about.sandbox.updates());
    return eventStream(request, source, { first, signal: watch.signal, ended: closed });
  }
  const ofSandbox = await about.sandbox?.answer(request, undefined);
  if (ofSandbox !== undefined) return ofSandbox;
  if (runId === undefined) return nothingHere();
  if (action === "effect") {
    const objects = await effectObjects(runId, searchParams, shown);
    return objects === undefined ? nothingHere() : dataAnswer(objects);
  }
  if (action === "changes" || action === "failures") {
    const list = action === "changes" ? changesOf(runId, searchParams, shown) : problemsOf(runId, searchParams, shown);
    const found = await list;
    return found === undefined ? nothingHere() : dataAnswer(found);
  }
  if (action !== undefined) return (await downloaded(runId, action, shown)) ?? nothingHere();
  const detail = await runDetail(runId, shown);
  return detail === undefined ? refusalAnswer(404, "There is no such run.") : dataAnswer(detail);
}

function helloOf({ services: { readOnly } }: PageScope, { sandbox, ...about }: About): Hello {
  const views = [...OWN_VIEWS, ...(sandbox?.views ?? [])];
  const isBeside = sandbox !== undefined && about.environment.kind === "live";
  const beside = isBeside ? { sandbox: { kind: "sandbox", address: sandbox.address } as const } : {};
  const environment =
    sandbox === undefined || isBeside ? about.environment : { ...about.environment, address: sandbox.address };
  return { kind: "hello", views, ...about, environment, ...beside, ...(readOnly && { readOnly }) };
}

const OWN_VIEWS = ["overview", "approvals", "runs"] as const;

function nothingHere(): Response {
  return refusalAnswer(404, "The page has nothing here.");
}

/** The pause after a read is this many times as long as the read, since reads of many runs are slow. */
const PAUSE_FACTOR = 5;

/** Returns the updates of the runs page: all recent runs, each time one of them has changed. */
function runUpdates(shown: PageScope, notice = () => ""): StreamSource<Message> {
  const ofOthers = runsOfOthers(shown);
  const rowsNow = async () => runRows(shown, await ofOthers());
  let told = "";
  let next = 0;
  return {
    async since(position) {
      const began = performance.now();
      next = Number.POSITIVE_INFINITY;
      const runs = await rowsNow().finally(() => {
        next = performance.now() + PAUSE_FACTOR * (performance.now() - began);
      });
      const now = createHash("sha256").update(JSON.stringify(runs)).digest("base64url");
      const messages: Message[] = now === position ? [] : [{ kind: "runs", whole: true, runs }];
      const text = notice();
      if (text !== told) messages.push({ kind: "notice", text });
      told = text;
      return { messages, position: now };
    },
    watch(changed) {
      const timer = setInterval(() => performance.now() >= next && changed(), LOOK_MS).unref();
      return () => clearInterval(timer);
    },
  };
}
