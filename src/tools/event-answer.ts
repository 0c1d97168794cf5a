import { countsOf, failureGroups, objectResult, type RunStatus } from "../bulk/report.ts";
import { type EventEntry, EventRunState, verdictOf } from "../events/event-run-state.ts";
import { objectOf, settledEntry } from "../events/event-runs.ts";
import { rememberingNearestName } from "../events/near-names.ts";
import { validateEvent } from "../events/validate.ts";
import { verdictRow } from "../render/event-report.ts";
import { type RenderedReport, renderReport, toldFailures } from "../render/report.ts";

/** How many results a report looks at; it shows at most ten. */
const RESULTS_READ = 10;

/** The report about events, in the form of every write. */
export function eventReport(about: {
  readonly environment: "live" | "sandbox";
  readonly tool: string;
  readonly runId?: string;
  readonly status: RunStatus;
  readonly state: EventRunState;
  readonly nextSteps?: readonly string[];
}): RenderedReport {
  const { environment, tool, runId, status, state, nextSteps = [] } = about;
  return renderReport({
    environment,
    tool,
    ...(runId !== undefined && { runId }),
    status,
    counts: countsOf(state),
    ...(status !== "planned" && { requests: state.requests }),
    failures: toldFailures(failureGroups(state)),
    results: runId === undefined ? [] : firstResults(state),
    verdicts: state.verdicts().map((verdict) => verdictRow(state.objects[verdict.object]?.index ?? 0, verdict)),
    nextSteps: [...doubts(state), ...nextSteps],
  });
}

/** What would become of events, none of which is sent. */
export function plannedEventReport(about: {
  readonly environment: "live" | "sandbox";
  readonly tool: string;
  readonly events: readonly unknown[];
}): RenderedReport {
  const { events, ...rest } = about;
  const state = stateOf(events);
  const nearest = rememberingNearestName();
  for (const [index, event] of events.entries()) {
    const predicted = validateEvent(event, nearest);
    const verdict = verdictOf(predicted, undefined);
    const isRefused = predicted.verdict === "ignored" || predicted.verdict === "rejected";
    state.apply(
      isRefused
        ? settledEntry(index, { outcome: "failed", reason: "refused", predicted, attempts: 0 }, 0)
        : { t: "predicted", object: index, at: 0, ...(verdict && { verdict }) },
    );
  }
  return eventReport({ ...rest, status: "planned", state });
}

/** The state of a run of events before anything is sent. */
export function stateOf(events: readonly unknown[]): EventRunState {
  const state = new EventRunState();
  const begin: EventEntry = { t: "events", objects: events.map(objectOf), at: 0 };
  state.apply(begin);
  return state;
}

/** Says what is not certain about events that succeeded. */
function doubts({ uncertain, maybeTwice }: EventRunState): readonly string[] {
  return [
    uncertain > 0 &&
      `${uncertain} sent although the documents do not say whether the service keeps them: see the verdicts`,
    maybeTwice > 0 && `${maybeTwice} may have been recorded twice: an answer was lost, and they were sent again`,
  ].filter((step) => step !== false);
}

function firstResults(state: EventRunState) {
  return state.objects.slice(0, RESULTS_READ).map((_, object) => objectResult(state, object));
}
