import { createHash } from "node:crypto";
import { actOn } from "./actions.ts";
import { eventStream, type StreamSource } from "./event-stream.ts";
import { dataAnswer, orRefused, type PageApp } from "./page.ts";
import { downloaded, LIST_NAMES, listOfRun, runDetail, runRows } from "./rows.ts";
import { mergeSources, type PageSandbox } from "./sandbox-beside.ts";
import { type PageScope, runsOfOthers } from "./seen.ts";
import { type Hello, type Message, PATHS } from "./wire.ts";

/** A person who is logged in: the name for the audit log, and the runs that this person may see. */
export interface Viewer {
  readonly who: string;
  readonly shown: PageScope;
}

interface About extends Pick<Hello, "environment" | "returns" | "logsOut"> {
  /** The sandbox whose views are shown next to the runs. Absent if there is none. */
  readonly sandbox?: PageSandbox | undefined;
}

export interface StreamWatch {
  /** Called when the session opens a stream. The returned function is called when the stream closes. */
  readonly opened: () => () => void;
  readonly notice?: () => string;
  /** Aborted if the session has ended or its server stops. */
  readonly signal?: AbortSignal;
}

/** How often an open stream checks the session and the runs, in milliseconds. Other processes may change them. */
const LOOK_MS = 500;

/** Returns a watch whose streams end with the session. The session is checked while a stream is open. */
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
      // A failed check is ignored, because the next check decides.
      const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref();
      return () => {
        clearInterval(timer);
        closed?.();
      };
    },
    signal: signal === undefined ? ending.signal : AbortSignal.any([ending.signal, signal]),
  };
}

/** What a person with a session sees, and the watch of their streams. */
export interface Viewing {
  readonly viewer: Viewer;
  readonly about: About;
  readonly watch: StreamWatch;
}

const RUN = `${PATHS.runs}/:runId{[0-9A-Z]{26}}` as const;

/** Adds the routes for the data of runs and for decisions. All of them require a session. */
export function addRuns<Session extends Viewing>(app: PageApp<Session>): void {
  app.get(PATHS.stream, ({ req, var: { session } }) => {
    const { viewer, about, watch } = session;
    const closed = watch.opened();
    const first: readonly Message[] = [helloOf(viewer.shown, about)];
    const runs = runUpdates(viewer.shown, watch.notice);
    const source = about.sandbox === undefined ? runs : mergeSources(runs, about.sandbox.updates());
    return eventStream(req.raw, source, { first, signal: watch.signal, ended: closed });
  });
  app.use(async ({ req, var: { session, posted } }, next) => {
    return (await session.about.sandbox?.answer(req.raw, posted)) ?? next();
  });
  app.post(`${RUN}/:action{[a-z]+}`, async ({ req, var: { session, posted } }) => {
    const { who, shown } = session.viewer;
    return dataAnswer(await actOn({ ...req.param(), data: posted, who }, shown));
  });
  for (const name of LIST_NAMES) {
    app.get(`${RUN}/${name}`, async ({ req, var: { session } }) => {
      const asked = { runId: req.param("runId"), query: new URL(req.url).searchParams };
      return dataAnswer(orRefused(await listOfRun(name, asked, session.viewer.shown)));
    });
  }
  app.get(`${RUN}/:file{[a-z]+}`, async ({ req, var: { session } }) =>
    orRefused(await downloaded(req.param("runId"), req.param("file"), session.viewer.shown)),
  );
  app.get(RUN, async ({ req, var: { session } }) =>
    dataAnswer(orRefused(await runDetail(req.param("runId"), session.viewer.shown), "There is no such run.")),
  );
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

/** The pause after reading the runs is this many times as long as the read, because reading many runs is slow. */
const PAUSE_FACTOR = 5;

/** Returns the updates of the runs page: all recent runs whenever one of them has changed. */
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
