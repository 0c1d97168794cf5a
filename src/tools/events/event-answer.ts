import * as z from "zod";
import { rememberingNearestName } from "../../events/check/near-names.ts";
import { validateEvent } from "../../events/check/validate.ts";
import { EventRunState, resends, settledEntry } from "../../events/run/event-run-state.ts";
import type { EventRun } from "../../events/run/event-runs.ts";
import { type GivenEvent, objectOf } from "../../events/run/event-source.ts";
import { verdictOf } from "../../events/run/verdict-kinds.ts";
import { type RenderedReport, renderReport } from "../../render/changes/report.ts";
import { RESEND_EVENT, verdictRow } from "../../render/events/event-report.ts";
import { toldFailures } from "../../render/failures/failures.ts";
import { countsOf, type ObjectResult, type RunStatus, tellingResults } from "../../runs/report.ts";

/** The argument that says what is to become of events whose answer is lost. */
export const onUnknownArgument = () => ({
  onUnknown: z
    .enum(["report", "resend"])
    .default("report")
    .describe("When an answer is lost: report it as unknown, or send again at the risk of recording it twice"),
});

/** How many results a report looks at: those that fit are shown. */
const RESULTS_READ = 50;

/** The report about events, in the form of every write. */
function eventReport(about: {
  readonly environment: "live" | "sandbox";
  readonly tool: string;
  readonly runId?: string;
  readonly status: RunStatus;
  readonly state: EventRunState;
  readonly nextSteps?: readonly string[];
  readonly hasRejects?: boolean;
  readonly unknownIsFinal?: boolean;
  readonly eventRequests?: { readonly items: number; readonly bytes: number };
}): RenderedReport {
  const { state, nextSteps = [], ...rest } = about;
  const { runId, status } = rest;
  return renderReport({
    ...rest,
    counts: countsOf(state),
    ...(status !== "planned" && { requests: state.requests }),
    failures: toldFailures(state),
    results: runId === undefined ? [] : firstResults(state, rest.tool),
    verdicts: state.verdicts().map(verdictRow),
    nextSteps: [...doubts(state), ...nextSteps],
  });
}

/** What would become of events, none of which is sent. */
export async function plannedEventReport(
  about: { readonly environment: "live" | "sandbox"; readonly tool: string },
  events: AsyncIterable<readonly GivenEvent[]>,
): Promise<RenderedReport> {
  const state = new EventRunState();
  const nearest = rememberingNearestName();
  const requests = { items: 0, bytes: 0 };
  for await (const batch of events) {
    state.apply({ t: "begin", items: batch.length, at: 0 });
    state.apply({ t: "events", objects: batch.map(objectOf), at: 0 });
    for (const { index, event, text, reason } of batch) {
      const predicted = validateEvent(event, nearest);
      const isRefused = predicted.verdict === "ignored" || predicted.verdict === "rejected";
      if (reason !== undefined) {
        state.apply({ t: "settled", object: index, outcome: "failed", reason, attempts: 0, at: 0 });
      } else if (isRefused) {
        state.apply(settledEntry(index, { outcome: "failed", reason: "refused", predicted, attempts: 0 }, 0));
      } else {
        const verdict = verdictOf(predicted, undefined);
        state.apply({ t: "predicted", object: index, at: 0, ...(verdict && { verdict }) });
        requests.items += 1;
        requests.bytes += Buffer.byteLength(text ?? JSON.stringify(event));
      }
    }
  }
  return eventReport({ ...about, status: "planned", state, ...(requests.items > 0 && { eventRequests: requests }) });
}

/** The report about a run of events as it stands. */
export function eventRunReport(
  { header, state, status }: EventRun,
  environment: "live" | "sandbox",
  nextSteps: readonly string[] = [],
): RenderedReport {
  const { tool, input } = header.call;
  const hasRejects = input.events.file !== undefined && status() !== "running" && state.counts().failed > 0;
  const unknownIsFinal = !resends(header.call, state);
  const canResend = tool === "track_event" && unknownIsFinal && status() !== "running" && state.counts().unknown > 0;
  return eventReport({
    environment,
    tool,
    runId: header.runId,
    status: status(),
    state,
    nextSteps: [...nextSteps, ...(canResend ? [RESEND_EVENT] : [])],
    hasRejects,
    unknownIsFinal,
  });
}

/** Says what is not certain about events that succeeded. */
function doubts({ uncertain, maybeTwice }: EventRunState): readonly string[] {
  return [
    uncertain > 0 &&
      `${uncertain} sent although the documents do not say whether the service keeps them: see the verdicts and, in the results, predicted uncertain`,
    maybeTwice > 0 && `${maybeTwice} may have been recorded twice: an answer was lost, and they were sent again`,
  ].filter((step) => step !== false);
}

/** The first results; of a single event only how it ended, since the caller knows it and the verdict says the rest. */
function firstResults(state: EventRunState, tool: string): readonly ObjectResult[] {
  const results = tellingResults(state, RESULTS_READ);
  if (tool !== "track_event") return results;
  return results.map(({ uid, predicted, rule, observed, ...result }) => result);
}
