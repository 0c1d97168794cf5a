import { settledStatus } from "../bulk/report.ts";
import type { SendCounts } from "../events/send.ts";
import type { Settlement } from "../events/settlement.ts";
import { validateEvent } from "../events/validate.ts";
import { eventErrorCode, eventMessage, eventRef, verdictRow } from "../render/event-report.ts";
import { type RenderedReport, renderReport, type ToldFailure } from "../render/report.ts";

/** One event of a call with what became of it. */
export interface SettledEvent {
  readonly index: number;
  readonly event: unknown;
  readonly settlement: Settlement;
}

/** The report about events that were sent, in the form of every write. */
export function eventReport(about: {
  readonly environment: "live" | "sandbox";
  readonly tool: string;
  readonly runId?: string;
  readonly counts: SendCounts;
  readonly settled: readonly SettledEvent[];
  readonly nextSteps?: readonly string[];
}): RenderedReport {
  const { environment, tool, runId, settled, nextSteps = [] } = about;
  const { sent, resent, waitedMs, ...outcomes } = about.counts;
  const counts = { ...outcomes, alreadyDone: 0, pending: 0 };
  return renderReport({
    environment,
    tool,
    ...(runId !== undefined && { runId }),
    status: settledStatus(counts),
    counts,
    requests: { planned: counts.items, sent, resent, waitedMs },
    failures: groupedFailures(settled),
    results: [],
    verdicts: settled.map(({ index, settlement }) => verdictRow(index, settlement)),
    nextSteps: [...uncertaintySteps(settled), ...nextSteps],
  });
}

/** What would become of events, none of which is sent. */
export function plannedEventReport(about: {
  readonly environment: "live" | "sandbox";
  readonly tool: string;
  readonly events: readonly unknown[];
}): RenderedReport {
  const settled = about.events.map((event, index): SettledEvent => {
    const predicted = validateEvent(event);
    const refused = predicted.verdict === "ignored" || predicted.verdict === "rejected";
    const fate = refused ? ({ outcome: "failed", reason: "refused" } as const) : ({ outcome: "succeeded" } as const);
    return { index, event, settlement: { predicted, attempts: 0, ...fate } };
  });
  const failed = settled.filter(({ settlement }) => settlement.outcome === "failed").length;
  const items = settled.length;
  return renderReport({
    environment: about.environment,
    tool: about.tool,
    status: "planned",
    counts: { items, succeeded: 0, alreadyDone: 0, failed, unattempted: 0, unknown: 0, pending: items - failed },
    failures: groupedFailures(settled),
    results: [],
    verdicts: settled.map(({ index, settlement }) => verdictRow(index, settlement)),
  });
}

/** Says that an event was sent although it cannot be told whether the service keeps it. */
function uncertaintySteps(settled: readonly SettledEvent[]): readonly string[] {
  const uncertain = settled.filter(
    ({ settlement }) => settlement.outcome === "succeeded" && settlement.predicted.verdict === "uncertain",
  ).length;
  if (uncertain === 0) return [];
  return [`${uncertain} sent although the documents do not say whether the service keeps them: see the verdicts`];
}

const INDEXES_SHOWN = 20;

function groupedFailures(settled: readonly SettledEvent[]): readonly ToldFailure[] {
  const groups = new Map<string, ToldFailure & { count: number; indexes: number[] }>();
  for (const { index, event, settlement } of settled) {
    const errorCode = eventErrorCode(settlement);
    if (errorCode === undefined || settlement.outcome === "succeeded") continue;
    const [first] = settlement.predicted.findings;
    const key = `${errorCode} ${first?.rule ?? ""} ${first?.path ?? ""}`;
    const group = groups.get(key);
    if (group !== undefined) {
      group.count += 1;
      if (group.indexes.length < INDEXES_SHOWN) group.indexes.push(index);
      continue;
    }
    const { outcome, statusCode } = settlement;
    groups.set(key, {
      outcome,
      errorCode,
      statusCode,
      count: 1,
      indexes: [index],
      ref: eventRef(event),
      ...eventMessage(settlement),
    });
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}
