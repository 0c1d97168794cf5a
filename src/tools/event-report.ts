import type { RenderedReport } from "../answers/budget.ts";
import {
  basisNotes,
  correctionNotes,
  MAX_USERS_NAMED,
  orderNotes,
  predictedNotes,
  repeatedPurchaseNotes,
  unrenamedNote,
  verdictRow,
} from "../answers/event-messages.ts";
import { groupFailures, type SummarizedFailure, UIDS_OF } from "../answers/failures.ts";
import { joinedRanges, placesWords } from "../answers/fence.ts";
import { many } from "../answers/message-words.ts";
import { failedOfDryRun } from "../answers/next-steps.ts";
import { renderReport } from "../answers/run-report.ts";
import type { ReportedRun } from "../answers/run-results.ts";
import { PREVIEW_ROWS, type PreviewRow, previewNotes } from "../answers/sheets.ts";
import { type EventDryRun, type EventRun, isEventRun, type PlannedEvents } from "../events/run/event-runs.ts";
import {
  ANSWER_LOST,
  autocorrects,
  type EventEntry,
  EventRunState,
  resendsUnknown,
  settledEntry,
} from "../events/run/run-state.ts";
import type { ContinuedRun } from "../events/run/sent-before.ts";
import {
  type EventSource,
  objectOf,
  type RepeatedPurchases,
  repeatedPurchases,
  type SourceEvent,
} from "../events/run/source.ts";
import { verdictOf, withUncorrected } from "../events/run/verdicts.ts";
import { nearestName, remembering } from "../events/spelling.ts";
import { validateEvent } from "../events/validate.ts";
import { defined } from "../platform/by-key.ts";
import { isJsonObject } from "../platform/json.ts";
import { thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import type { ReportedObject, Standing } from "../runs/outcome.ts";
import { countsOf, failureGroups, failuresFirst, type ObjectResult } from "../runs/report.ts";
import { RunStoreError } from "../runs/store.ts";
import { sendingOf, undefinedIfLate } from "./apis.ts";
import { LEAST_READ_MS, type ToolContext, ToolError } from "./define-tool.ts";
import { eventsAt, originalItemsOf } from "./original-items.ts";

/** Throws a ToolError if an event was sent recently with an unknown result, unless `onUnknown` is `resend`. */
export async function checkNotSentWithoutResult(planned: PlannedEvents, context: ToolContext): Promise<void> {
  if (planned.onUnknown === "resend") return;
  const sent = await sendingOf(context).sentWithoutResult(planned, context.caller);
  if (sent === undefined) return;
  const { runId, events } = sent;
  const isOne = events.length === 1;
  const them = isOne ? "it" : "them";
  const byLine = events.some(({ line }) => line !== undefined);
  const places = joinedRanges(events.map(({ index, line = index + 1 }) => [line, line]));
  const shown = { byLine, omitted: places.length > PLACES_SHOWN };
  const which =
    planned.tool === "track_event" ? "" : ` (${placesWords(places.slice(0, PLACES_SHOWN), shown)} of this call)`;
  throw new ToolError(
    `${isOne ? "an identical event was" : `${many(events.length, "identical event")} were`} sent less than 10 minutes ago, ` +
      `and the result is unknown${which}; nothing was sent`,
    `get_run {"runId":"${runId}"} shows that run.${which === "" ? "" : ` To send only the others: leave ${them} out.`} ` +
      `To send ${them} anyway, and risk recording ${them} twice: the same call with onUnknown "resend".`,
  );
}

const PLACES_SHOWN = 10;
const RESULTS_READ = 50;

type UidOf = (object: number) => string | undefined;

interface ReportedEvents extends Omit<ReportedRun, "counts" | "failures" | "results"> {
  readonly state: EventRunState;
  readonly uidOf: UidOf;
  readonly overtaken: Overtaken;
}

function eventReport({ state, uidOf, overtaken, notes = [], ...rest }: ReportedEvents): RenderedReport {
  const { runId, status } = rest;
  const verdicts = state.verdicts().map((group) => verdictRow(group, state.objects));
  // Failed events were not recorded, so their corrections are not reported.
  const hasFailed = (_: unknown, object: number): boolean => state.standing(object) === "failed";
  const corrections = correctionNotes(
    state.objects.filter((_, object) => !hasFailed(_, object)),
    { leavesOut: state.objects.filter(hasFailed).some(({ mended }) => mended !== undefined) },
  );
  return renderReport({
    ...rest,
    counts: countsOf(state),
    ...(status !== "planned" && { requests: state.requests, unanswered: state.lost().length }),
    failures: groupFailures(state).map((failure) => withUids(failure, uidOf)),
    results: runId === undefined ? [] : firstResults(state, rest, uidOf),
    verdicts,
    ...state.facts,
    notes: [
      ...notes,
      ...doubts(state),
      ...orderNotes(overtaken, status, uidOf),
      ...corrections,
      ...(rest.autocorrects ? unrenamedNote(state.verdicts()) : []),
      ...predictedNotes(state.verdicts(), rest),
      ...basisNotes(verdicts),
    ],
    lastAt: state.updatedAt,
    ...(state.resumed !== undefined && { resumed: state.resumed.counts }),
  });
}

/** Later events of a user that were sent, or would be, before an earlier one. `first`: of each user, that earlier one. */
interface Overtaken {
  readonly later: number;
  readonly first: readonly ReportedObject[];
}

function overtakenIn(state: EventRunState, sent: "succeeded" | "pending"): Overtaken {
  const notSent: readonly Standing[] = sent === "pending" ? ["failed"] : ["failed", "notApplied", "unknown"];
  const counts = state.counts();
  const behind = new Map<string, { readonly object: ReportedObject; later: number }>();
  for (const [at, object] of notSent.every((one) => counts[one] === 0) ? [] : state.objects.entries()) {
    if (object.uid === undefined) continue;
    const standing = state.standing(at);
    const known = behind.get(object.uid);
    if (known !== undefined && standing === sent) known.later += 1;
    else if (known === undefined && notSent.includes(standing)) behind.set(object.uid, { object, later: 0 });
  }
  const users = [...behind.values()].filter(({ later }) => later > 0);
  return { later: users.reduce((sum, user) => sum + user.later, 0), first: users.map(({ object }) => object) };
}

/** Returns whether a dry run would send an event of a user before an earlier one that would fail. */
export function isOvertaken(state: EventRunState): boolean {
  return overtakenIn(state, "pending").later > 0;
}

/** What a call with `dryRun` has found out: what would happen to each event. */
interface PlannedEventRun extends EventDryRun {
  readonly uids: ReadonlyMap<number, string>;
  readonly requests: NonNullable<ReportedRun["eventRequests"]>;
  readonly first: readonly PreviewRow[];
  readonly repeatedPurchases: RepeatedPurchases;
}

export async function planEvents(
  events: AsyncIterable<readonly SourceEvent[]>,
  { clock, autocorrects = false }: Pick<ToolContext, "clock"> & Pick<ReportedRun, "autocorrects">,
  continued?: ContinuedRun,
): Promise<PlannedEventRun> {
  const state = new EventRunState();
  const entries: EventEntry[] = [];
  const record = (entry: EventEntry): void => {
    entries.push(entry);
    state.apply(entry);
  };
  const at = clock.now();
  const nearest = remembering(nearestName);
  const uids = new Map<number, string>();
  const requests = { items: 0, bytes: 0 };
  const first: PreviewRow[] = [];
  const purchases = repeatedPurchases();
  for await (const batch of events) {
    const skipped = batch.reduce((sum, one) => sum + (one.skipped ?? 0), 0);
    record({ t: "begin", items: batch.length, ...(skipped > 0 && { skipped }), at });
    record({ t: "events", objects: batch.map(objectOf), at });
    for (const one of batch) {
      const { index, line, event, text, reason } = one;
      purchases.take(one);
      const predicted = validateEvent(event, nearest);
      const uid = uidIn(event);
      const isRefused = predicted.verdict === "ignored" || predicted.verdict === "rejected";
      const before = continued?.run.state.standing(index);
      if (before === "succeeded" || (before === "unknown" && continued?.resends === false)) {
        const outcome = before === "unknown" ? before : "alreadyDone";
        record({ t: "settled", object: index, outcome, attempts: 0, at, ...(before === "unknown" && LOST) });
      } else if (reason !== undefined) {
        record({ t: "settled", object: index, outcome: "failed", reason, attempts: 0, at });
      } else if (isRefused) {
        if (uid !== undefined && uids.size < UIDS_KEPT) uids.set(index, uid);
        const refused = { outcome: "failed", reason: "refused", predicted, attempts: 0 } as const;
        record(settledEntry(index, autocorrects ? withUncorrected(refused, event) : refused, at));
      } else {
        const verdict = verdictOf(predicted, undefined);
        record({ t: "predicted", object: index, at, ...(verdict && { verdict }) });
        requests.items += 1;
        requests.bytes += Buffer.byteLength(text ?? JSON.stringify(event));
      }
      if (line !== undefined && first.length < PREVIEW_ROWS) {
        first.push({ line, event, ...(reason && { reason }), isLeft: state.standing(index) === "failed" });
      }
    }
  }
  return { entries, state, uids, requests, first, repeatedPurchases: purchases.found };
}

const LOST = { reason: ANSWER_LOST } as const;

/** Stores a dry run, so that get_run can show it. If that fails, returns a note that says why. */
export async function storeDryRun(
  planned: PlannedEvents,
  dryRun: EventDryRun,
  context: ToolContext,
): Promise<{ readonly runId: string } | { readonly note: string }> {
  try {
    return { runId: await sendingOf(context).keepDryRun(planned, context.caller, dryRun) };
  } catch (thrown) {
    if (!(thrown instanceof RunStoreError)) throw thrown;
    return { note: `the dry run was not stored, so get_run cannot show it: ${thrown.message}` };
  }
}

/** Returns the report of a dry run. `runId` is absent if the dry run is not stored. */
export function plannedEventReport(
  about: Pick<ReportedRun, "environment" | "tool" | "file" | "runId" | "autocorrects">,
  { state, uids, requests, first, repeatedPurchases: repeated }: PlannedEventRun,
  { allowedDirs, notes = [] }: Pick<ToolContext, "allowedDirs"> & { readonly notes?: readonly string[] },
): RenderedReport {
  return eventReport({
    ...about,
    notes: [
      ...notes,
      ...previewNotes(about.file, { columns: [], rows: first }),
      ...repeatedPurchaseNotes(repeated, about.file),
    ],
    status: "planned",
    state,
    overtaken: overtakenIn(state, "pending"),
    uidOf: (object) => uids.get(object),
    nextSteps: dryRunOfEventsSteps(about, state, { allowedDirs }),
    hasRejects: about.file !== undefined && state.counts().failed > 0,
    ...(requests.items > 0 && { eventRequests: requests }),
  });
}

/** Returns the next steps after a dry run of events: sending the events, and seeing all events that would fail. */
function dryRunOfEventsSteps(
  { runId, tool, file, autocorrects }: Pick<ReportedRun, "runId" | "tool" | "file" | "autocorrects">,
  state: EventRunState,
  { allowedDirs }: Pick<ToolContext, "allowedDirs">,
): readonly string[] {
  const { pending, failed, unknown } = state.counts();
  const all =
    runId !== undefined && failed > 0 && (file !== undefined || failed > MOST_EXAMPLES)
      ? [failedOfDryRun(runId, { failed, file, maySave: allowedDirs.length > 0, isOvertaken: isOvertaken(state) })]
      : [];
  const verdicts = state.verdicts();
  const isCorrectable = verdicts.some(
    ({ predicted, findings }) =>
      (predicted === "ignored" || predicted === "rejected") &&
      findings.some(({ fix }) => /^(?:send|rename) "/.test(fix)),
  );
  const mayCorrect = tool === "track_events" && !autocorrects && isCorrectable;
  const unclear = verdicts.filter(({ predicted }) => predicted === "uncertain");
  const uncertain = unclear.reduce((sum, { count }) => sum + count, 0);
  if (pending + failed === 0) {
    return unknown === 0 ? [] : [`the same call with onUnknown "resend" may record ${many(unknown, "event")} twice`];
  }
  return [sendingStep({ sent: pending, failed, uncertain, mayCorrect }), ...all];
}

/** If at most this many events would fail and they are not from a file, the answer names all of them. */
const MOST_EXAMPLES = 20;

interface Sending {
  readonly sent: number;
  readonly failed: number;
  readonly uncertain: number;
  /** Whether the same call with autocorrect could correct misspelt names. */
  readonly mayCorrect: boolean;
}

/** Returns the next step that sends the events of a dry run. `failed`: how many of them would not be sent. */
function sendingStep({ sent, failed, uncertain, mayCorrect }: Sending): string {
  const fix = `fix what would fail${mayCorrect ? ' ("autocorrect": true corrects misspelt names)' : ""}`;
  if (sent === 0) return `${fix}, then make the same call without dryRun`;
  const which =
    uncertain === 0 ? "" : `, ${uncertain === sent ? "all" : thousands(uncertain)} with an uncertain result`;
  if (failed === 0) return `the same call without dryRun sends ${many(sent, "event")}${which}`;
  return `${fix}. The same call without dryRun sends only the other ${many(sent, "event")}${which}`;
}

/** Returns what the report of a run of events, or of a stored dry run, has in addition to other reports. */
export function eventReportExtras(run: EventRun, context: ToolContext): Partial<ReportedRun> {
  const { header, state, status } = run;
  const orders = orderNotes(overtakenIn(state, header.dryRun ? "pending" : "succeeded"), status());
  const verdicts = state.verdicts().map((group) => verdictRow(group, state.objects));
  return {
    notes: [...doubts(state), ...orders, ...basisNotes(verdicts)],
    verdicts,
    ...defined({ nextSteps: dryRunSteps(run, context) }),
  };
}

/** Returns the next steps of a stored dry run of events. Undefined for other runs. */
function dryRunSteps({ header, state }: EventRun, context: ToolContext): readonly string[] | undefined {
  const { runId, call } = header;
  const about = { runId, tool: call.tool, file: call.input.events.file, autocorrects: autocorrects(call) };
  return header.dryRun ? dryRunOfEventsSteps(about, state, context) : undefined;
}

/** Throws a ToolError if a run is a dry run of events. `cannot`: the clause of the message that says what follows. */
export function checkNoEventDryRun(run: Run, cannot: string): void {
  if (!isEventRun(run) || !run.header.dryRun) return;
  throw new ToolError(
    `this run is a dry run of events: nothing was sent, so ${cannot}`,
    "To send the events: the same track_events call without dryRun.",
  );
}

const UIDS_KEPT = 2000;

/**
 * Returns the report of a run of events. Events that failed, were not applied or have an unknown result are shown with
 * their `uid`, which is read from `source` or from the stored input.
 */
export async function eventRunReport(
  run: EventRun,
  context: ToolContext,
  {
    nextSteps = [],
    notes = [],
  }: { readonly nextSteps?: readonly string[]; readonly notes?: readonly string[] | undefined } = {},
  source?: EventSource,
): Promise<RenderedReport> {
  const { header, state, status } = run;
  const first = failureGroups(state).flatMap(({ indexes }) => indexes.slice(0, UIDS_OF));
  const rows = failuresFirst(state, RESULTS_READ).flatMap(({ index, outcome }) =>
    outcome === "failed" || outcome === "unknown" || outcome === "notApplied" ? [index] : [],
  );
  const overtaken = overtakenIn(state, header.dryRun ? "pending" : "succeeded");
  const behind = overtaken.first.slice(0, MAX_USERS_NAMED).map(({ index }) => index);
  const wanted = [...new Set([...first, ...rows, ...behind])];
  const events = source === undefined ? originalItemsOf(run, wanted, context) : eventsAt(source, wanted);
  // If a large file takes too long to read, the original events are omitted.
  const given =
    (await undefinedIfLate({ ...context, waitMs: context.waitMs + LEAST_READ_MS }, events)) ??
    new Map<number, unknown>();
  const { tool, input } = header.call;
  const hasRejects = input.events.file !== undefined && status() !== "running" && failedRowCount(run) > 0;
  const unknownIsFinal = !resendsUnknown(header.call, state);
  return eventReport({
    environment: context.environment,
    tool,
    runId: header.runId,
    uidOf: (object) => uidIn(given.get(object)),
    status: status(),
    state,
    overtaken,
    nextSteps: [...nextSteps, ...(dryRunSteps(run, context) ?? [])],
    notes,
    hasRejects,
    autocorrects: autocorrects(header.call),
    file: input.events.file,
    unknownIsFinal,
  });
}

/** Returns how many rows of a run failed. A file that cannot be read counts as a failed item, but has no rows. */
export function failedRowCount(run: Run): number {
  return isEventRun(run) && run.state.isUnread ? 0 : run.state.counts().failed;
}

const TWICE_SHOWN = 20;

function doubts({ uncertain, maybeTwice, objects }: EventRunState): readonly string[] {
  const { length } = maybeTwice;
  const lines = maybeTwice.map((at) => objects[at]?.line ?? at + 1);
  const places = joinedRanges(lines.toSorted((one, other) => one - other).map((line) => [line, line]));
  const byLine = maybeTwice.some((at) => objects[at]?.line !== undefined);
  const which = placesWords(places.slice(0, TWICE_SHOWN), { byLine, omitted: places.length > TWICE_SHOWN });
  return [
    uncertain > 0 &&
      `it is not documented whether the service drops ${many(uncertain, "sent event")}; the expected result is uncertain`,
    length > 0 &&
      `${many(length, "event")} may be recorded twice (${which}): an answer was lost, and ${length === 1 ? "it was" : "they were"} sent again`,
  ].filter((step) => step !== false);
}

function uidIn(event: unknown): string | undefined {
  return isJsonObject(event) && typeof event.uid === "string" ? event.uid : undefined;
}

function withUids(failure: SummarizedFailure, uidOf: UidOf): SummarizedFailure {
  const uids = failure.indexes.slice(0, UIDS_OF).flatMap((index) => uidOf(index) ?? []);
  return uids.length === 0 ? failure : { ...failure, uids: [...new Set(uids)] };
}

/** Returns the first results of a run of events. For a single event, which the caller knows, only its outcome. */
function firstResults(
  state: EventRunState,
  { tool, status }: Pick<ReportedRun, "tool" | "status">,
  uidOf: UidOf,
): readonly ObjectResult[] {
  // In a dry run, "pending" means that the event would be sent. Only the other events are results.
  const first = failuresFirst(state, RESULTS_READ).filter(
    ({ outcome }) => status !== "planned" || outcome !== "pending",
  );
  const results = first.map((result): ObjectResult => {
    const uid = uidOf(result.index);
    const { uid: hash, ...rest } = result;
    return uid === undefined ? rest : { ...rest, uid };
  });
  if (tool !== "track_event") return results;
  return results.map(({ uid, predicted, rule, observed, ...result }) => result);
}
