import { createHash } from "node:crypto";
import * as z from "zod";
import { undoCounts } from "../answers/plan-answers.ts";
import { requestFailure } from "../answers/request-messages.ts";
import { isApiError } from "../api/errors.ts";
import { FileError } from "../platform/files.ts";
import { ExecutionRefusedError, type Run } from "../runs/kind.ts";
import { callerContext, grant, resumeFor } from "../tools/decide-run.ts";
import { ToolError, type ToolServices } from "../tools/define-tool.ts";
import { checkApplicable } from "../tools/kept-plan.ts";
import { waitingAnywhere } from "../tools/write/awaiting-decision.ts";
import { decide, type Outcome, type Person, type Refused } from "../tools/write/decide.ts";
import { keepWaiting } from "../tools/write/on-page.ts";
import { eventStream, type StreamSource, streamLimit } from "./event-stream.ts";
import { dataAnswer, orRefused, type PageApp, RefusedRequest } from "./page.ts";
import {
  canBeDriven,
  DAMAGED,
  downloaded,
  ENDED,
  LIST_NAMES,
  listOfRun,
  runDetail,
  runRows,
  STALE,
  targetingOf,
  whyNotDriven,
} from "./rows.ts";
import { mergeSources, type PageSandbox } from "./sandbox-beside.ts";
import { OWN_REQUEST, type PageScope, runsOfOthers, unlessDamaged, visibleRun } from "./seen.ts";
import { isTyped, textToType } from "./waiting.ts";
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
  /** Called when a page of the session opens a stream. The returned function is called when the stream closes. */
  readonly opened: () => () => void;
  readonly notice?: () => string;
  /** Aborted when the session has ended or its server stops. */
  readonly signal?: AbortSignal;
}

/** How often an open stream checks the session and the runs, which other processes may change, in milliseconds. */
const LOOK_MS = 500;

/** Returns a watch that ends the streams of a session when the session ends. Each open stream checks this regularly. */
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

/** What a person with a session may see. `watch` ends their streams when the session ends. */
export interface Viewing {
  readonly viewer: Viewer;
  readonly about: About;
  readonly watch: StreamWatch;
}

const RUN = `${PATHS.runs}/:runId{[0-9A-Z]{26}}` as const;

/** Adds the routes for the data of runs and for decisions. All of them require a session. */
export function addRuns<Session extends Viewing>(app: PageApp<Session>): void {
  const openStream = streamLimit();
  app.get(PATHS.stream, ({ req, var: { session } }) => {
    const { viewer, about, watch } = session;
    const counted = orRefused(openStream(viewer.who), "Too many pages are open. Close some of them.", 503);
    const closed = watch.opened();
    const first: readonly Message[] = [helloOf(viewer.shown, about)];
    const runs = runUpdates(viewer.shown, watch.notice);
    const source = about.sandbox === undefined ? runs : mergeSources(runs, about.sandbox.updates());
    const ended = (): void => {
      counted();
      closed();
    };
    return eventStream(req.raw, source, { first, signal: watch.signal, ended });
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

/** Reading many runs takes long. So they are not read again for this many times the duration of the last read. */
const PAUSE_FACTOR = 5;

/** Returns the updates for the page of runs: all recent runs whenever one of them has changed. */
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
      const messages: Message[] = now === position ? [] : [{ kind: "runs", runs }];
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

const DECIDED = "This change does not wait any more: it was approved, declined or cancelled, or has expired.";
const ELSEWHERE = "This change can be approved only in the agent's client, not on this page.";
const UNKNOWN = "There is no such run.";
const ONLY_READS = "This server is read-only. To change that, start it without TARGETING_MCP_READ_ONLY.";
const NOT_TYPED = "Nothing was approved: the typed text differs from the text that this change asks for.";
const CHANGED =
  "The effect of this change is different from what the page showed. Read the new effect, then decide again.";

/** The body of a decision: the digest of the effect that the page showed, and the text that the person typed. */
const decision = z.object({ digest: z.string().optional(), typed: z.string().optional() });

interface PageAction {
  readonly runId: string;
  readonly action: string;
  readonly data: unknown;
  readonly who: string;
}

/** The result of an action. `runId`: the undo run that the action planned, which now waits for approval. */
interface Acted {
  readonly runId?: string;
}

/** Executes a person's action on a run. Throws a RefusedRequest if it is not executed. */
async function actOn({ runId, action, data, who }: PageAction, shown: PageScope): Promise<Acted> {
  const seen = await unlessDamaged(visibleRun(runId, shown));
  if (seen === "damaged") throw new RefusedRequest(409, DAMAGED);
  // For a run of another caller, a person can only approve or decline. Other actions are for the person's own runs.
  if (seen === undefined || !(seen.isOwn || isDecision(action))) throw new RefusedRequest(404, UNKNOWN);
  const { run } = seen;
  const { services } = seen.shown;
  if (services.readOnly) throw new RefusedRequest(403, ONLY_READS);
  if (action === "cancel") {
    await services.runs.cancel(runId);
    return {};
  }
  // Declining sends nothing to the service, so this process can decline a run even without the project's key.
  if (action !== "decline" && !(await canBeDriven(run, seen.shown))) {
    throw new RefusedRequest(409, whyNotDriven(run, seen.shown, shown));
  }
  try {
    if (action === "undo") return await undo(run, who, services);
    if (action === "resume") {
      await resumeFor(run, personOf(who, shown), services);
      return {};
    }
    if (!isDecision(action)) throw new RefusedRequest(404, "There is nothing at this address.");
    const answer = action === "approve" ? "approved" : "declined";
    const { digest, typed } = decision.safeParse(data).data ?? {};
    const wanted = answer === "approved" ? await requiredTextOf(runId, seen.shown) : undefined;
    if (wanted !== undefined && !isTyped(typed, wanted)) throw new RefusedRequest(409, NOT_TYPED);
    const saw = (seen: string): boolean => seen === digest;
    const person = personOf(who, shown);
    checkDecided(await decide(runId, { answer, channel: "page", person, saw }, services, { grant }));
    return {};
  } catch (thrown) {
    if (isApiError(thrown)) throw new RefusedRequest(502, requestFailure(thrown).message);
    if (thrown instanceof ExecutionRefusedError) throw new RefusedRequest(403, `${thrown.message}. ${thrown.remedy}`);
    if (!(thrown instanceof ToolError || thrown instanceof FileError)) throw thrown;
    throw new RefusedRequest(409, `${thrown.message}.`);
  }
}

/** Returns the text that a person must type to approve a run. Undefined if no text or no approval is required. */
async function requiredTextOf(runId: string, shown: PageScope): Promise<string | undefined> {
  const run = await waitingAnywhere(runId, shown.services);
  const { parts } = run?.state.facts.waits ?? {};
  if (run === undefined || parts === undefined) return undefined;
  return textToType(parts, await targetingOf(run, shown));
}

function isDecision(action: string): action is "approve" | "decline" {
  return action === "approve" || action === "decline";
}

/** Returns the person who decides, with the runs that they may approve or decline. */
function personOf(who: string, { caller, approves }: PageScope): Person {
  return { who, caller, approves: approves && ((run) => approves.of(run) !== undefined), except: approves?.except };
}

function checkDecided(outcome: Outcome): void {
  if (outcome.is === "done") return;
  const [status, message] = outcome.is === "refused" ? REFUSED[outcome.why] : ([409, TOO_LATE[outcome.is]] as const);
  throw new RefusedRequest(status, message);
}

const TOO_LATE: Readonly<Record<Exclude<Outcome["is"], "done" | "refused">, string>> = {
  stale: STALE,
  changed: CHANGED,
  decided: DECIDED,
  expired: DECIDED,
};

const REFUSED: Readonly<Record<Refused, readonly [status: number, message: string]>> = {
  NOT_THEIRS: [404, UNKNOWN],
  READ_ONLY: [403, ONLY_READS],
  NOT_HERE: [409, ENDED],
  ELSEWHERE: [409, ELSEWHERE],
  OWN_REQUEST: [403, OWN_REQUEST],
  // These reasons occur only for views in hosts and for confirmation tokens, not for the web page.
  VIEWS_NOT_TRUSTED: [403, UNKNOWN],
  NO_TOKENS: [403, UNKNOWN],
};

/** Plans the undo of a run for the person `who`; the undo needs approval. Throws an error if nothing can be undone. */
async function undo(run: Run, who: string, services: ToolServices): Promise<Acted> {
  const { runId } = run.header;
  // Imported only when needed, because few runs are undone.
  const { keepUndoPlan } = await import("../tools/undo-run.ts");
  const { rows, already, document, kept } = await keepUndoPlan(runId, {
    ...callerContext(run, services),
    requested: { person: who },
  });
  if (kept === undefined) throw new RefusedRequest(409, `Nothing can be undone: ${undoCounts(rows, already)}.`);
  const { header, plan } = kept;
  checkApplicable(document, services);
  await keepWaiting(header, plan, services);
  return { runId: header.runId };
}
