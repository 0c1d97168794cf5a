import * as z from "zod";
import { continuedRunNote, repeatedEventWords, repeatedPurchaseNotes } from "../answers/event-messages.ts";
import type { EventRun } from "../events/run/event-runs.ts";
import {
  countEvents,
  type EventCounts,
  eventsIn,
  repeatedPurchases,
  rowsOfEvents,
  type SourceEvent,
  sourceOfEvents,
  sourceOfFile,
} from "../events/run/source.ts";
import { parseNestedJson } from "../events/spelling.ts";
import { thousands } from "../platform/text.ts";
import type { EarlierRuns } from "../runs/kind-runs.ts";
import { fileWithinWait, sendingOf, undefinedIfLate } from "./apis.ts";
import {
  checkJsonValues,
  eventFileArguments,
  fileArgumentsOf,
  onUnknownArgument,
  openedFile,
  openObject,
} from "./arguments.ts";
import { type ToolDefinition, ToolError, timeLeft, type Waiting } from "./define-tool.ts";
import {
  checkNotSentWithoutResult,
  eventRunReport,
  planEvents,
  plannedEventReport,
  storeDryRun,
} from "./event-report.ts";
import { followRun, interruptedHints } from "./write/within-call.ts";
import { dryRunArgument, runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    events: z
      .array(openObject())
      .optional()
      .describe("Each with uid, eventName, platform?, and the event's own parameters at its top level"),
    items: z.array(openObject()).optional().describe("The same as events"),
    ...eventFileArguments("columns uid, eventName, one a parameter"),
    autocorrect: z.boolean().optional().describe("Correct misspelt event and parameter names before sending"),
    ...onUnknownArgument(),
    ...dryRunArgument(),
  });

export const trackEvents = {
  name: "track_events",
  title: "Send events",
  description:
    "Sends any number of conversion events, a batch or a log file; those of one uid keep their order. Events that the service would drop or refuse are not sent; failures say how to fix them.",
  toolset: "events",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ items: sameAsEvents, autocorrect, onUnknown, dryRun, ...all }, context) {
    const { about, others: given } = fileArgumentsOf(all);
    const { environment, caller, arrivedAt, requested } = context;
    if (given.events !== undefined && sameAsEvents !== undefined) {
      throw new ToolError("events and items were both given, and mean the same", "Give only one of them.");
    }
    const events = given.events ?? sameAsEvents;
    const opened = await openedFile(about, { events }, rowsOfEvents(autocorrect ? { mend: true } : {}), context);
    // JSON would change values that it cannot represent, so events with such values are refused.
    const meant = (events ?? []).map(parseNestedJson);
    for (const [index, event] of meant.entries()) checkJsonValues(event, `event ${index + 1}`);
    const source = opened === undefined ? sourceOfEvents(meant, autocorrect) : sourceOfFile(opened, autocorrect);
    const inTime = () => checked(eventsIn(source), context, opened !== undefined);
    if (dryRun) {
      const autocorrects = autocorrect === true;
      const about = { environment, tool: "track_events", file: opened?.file, autocorrects };
      const continued = await context.sending?.runToContinue({ source, onUnknown }, caller);
      const planned = await fileWithinWait(context, planEvents(inTime(), { ...context, autocorrects }, continued));
      const runId = continued?.run.header.runId;
      const notes = runId === undefined ? [] : [continuedRunNote({ runId, sends: planned.requests.items > 0 })];
      const stored = await storeDryRun({ source, onUnknown, requested }, planned, context);
      if ("runId" in stored) {
        return plannedEventReport({ ...about, runId: stored.runId }, planned, { ...context, notes });
      }
      return plannedEventReport(about, planned, { ...context, notes: [...notes, stored.note] });
    }
    const counting = opened === undefined ? undefined : countEvents(eventsIn(source));
    const counts = counting === undefined ? countGiven(meant) : await undefinedIfLate(context, counting);
    if (counts?.items === 0) throw noEvents(opened !== undefined);
    // Keeps a rejection from being unhandled. If counting takes too long for the call, the run goes on with it.
    counting?.catch(() => undefined);
    const planned =
      counts === undefined ? { source: { ...source, ...(counting && { counting }) } } : { source, ...counts };
    if (counts !== undefined) await checkNotSentWithoutResult({ source, onUnknown }, context);
    const { run, before, repeat } = await sendingOf(context).once(
      { ...planned, onUnknown, requested },
      caller,
      arrivedAt,
    );
    await followRun(run, context);
    const nextSteps = await interruptedHints(context, run.header.runId);
    const earlier = repeat === undefined ? earlierCallNotes(before) : [repeatedEventWords(repeat, false)];
    const notes = [...earlier, ...repeatedPurchaseNotes(counts?.repeatedPurchases, opened?.file)];
    return eventRunReport(run, context, { nextSteps, notes }, source);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

function earlierCallNotes({ going, ended }: EarlierRuns<EventRun>): readonly string[] {
  if (going !== undefined) {
    return ["this call was made before and had not finished: its run goes on, and only what was left is sent"];
  }
  if (ended === undefined) return [];
  const { runId, status, open } = ended;
  const left = open ? `; resume_run {"runId":"${runId}"} would have sent only what was left` : "";
  return [
    `the same call was made before and ended ${status} (run ${runId}); this is a new run of all its events, and the counts are of this run alone${left}`,
  ];
}

function countGiven(events: readonly unknown[]): EventCounts {
  const purchases = repeatedPurchases();
  for (const [index, event] of events.entries()) purchases.take({ event, index });
  return { items: events.length, repeatedPurchases: purchases.found };
}

function noEvents(isFile: boolean): ToolError {
  if (isFile) return new ToolError("the file contains no events", "Give a file with at least one event.");
  return new ToolError("there are no events to send", "Give events, or a file with rows.");
}

/** Yields the events. Throws a ToolError if there are none, or if reading them takes too long for the call. */
async function* checked(
  events: AsyncIterable<readonly SourceEvent[]>,
  waiting: Waiting,
  isFile: boolean,
): AsyncGenerator<readonly SourceEvent[]> {
  let count = 0;
  for await (const batch of events) {
    if (count > 0 && timeLeft(waiting) === 0) {
      throw new ToolError(
        `the call reached its time limit after reading ${thousands(count)} events; nothing was sent`,
        `Split the file and send ${thousands(count)} events in each call.`,
      );
    }
    for (const { index, line, event } of batch) {
      checkJsonValues(event, line === undefined ? `event ${index + 1}` : `the event on line ${line}`);
    }
    count += batch.length;
    yield batch;
  }
  if (count === 0) throw noEvents(isFile);
}
