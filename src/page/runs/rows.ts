import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import { askedWords } from "../../render/asked.ts";
import { toldFailures } from "../../render/failures/failures.ts";
import { placesWords } from "../../render/places.ts";
import type { ListedRun, Run } from "../../runs/kind.ts";
import { countsOf } from "../../runs/report.ts";
import type { ToolServices } from "../../tools/context.ts";
import { waitingRun } from "../../tools/writing/confirmation/deciding.ts";
import type { FailureRow, RunAction, RunDetail, RunRow, Waiting } from "../wire.ts";

/** What rows are made of: the runs of one caller, and whether anything may be changed. */
export interface Shown {
  readonly services: ToolServices;
  /** Whose runs are shown. */
  readonly caller: string;
  /** The project that this process could drive runs of; a name to show. */
  readonly project: { readonly id: string; readonly name: string };
}

const MOST_RUNS = 200;
const ENDED = "The server that asked has ended: ask the agent again.";
const STALE = "Changed since it was planned.";

/** The recent runs, the newest first. */
export async function runRows(shown: Shown): Promise<readonly RunRow[]> {
  const rows: RunRow[] = [];
  for await (const listed of shown.services.runs.list(shown.caller)) {
    rows.push(await listedRow(listed, shown));
    if (rows.length === MOST_RUNS) break;
  }
  return rows;
}

async function listedRow(listed: ListedRun, shown: Shown): Promise<RunRow> {
  const { runId, tool, caller, targetingId, startedAt, updatedAt, status } = listed;
  const counts = { ...NO_COUNTS, ...listed.counts };
  const row = { runId, tool, caller, status: STATUSES.find((one) => one === status) ?? "unknown", counts };
  const run = status === "needs_confirmation" ? await waitingRun(runId, shown.services) : undefined;
  return {
    ...{ ...row, startedAt, updatedAt },
    ...(targetingId !== undefined && { targeting: { _id: targetingId } }),
    ...(run ? waitingParts(run, shown) : { actions: actionsOf(row.status, listed.open, shown) }),
  };
}

/** One run with everything beneath its row; undefined where there is none that this person may see. */
export async function runDetail(runId: string, shown: Shown): Promise<RunDetail | undefined> {
  const run = await shown.services.runs.find(runId);
  if (run === undefined || run.header.caller !== shown.caller) return undefined;
  return { run: await foundRow(run, shown), failures: toldFailures(run.state).map(failureRow), downloads: [] };
}

async function foundRow(run: Run, shown: Shown): Promise<RunRow> {
  const { header, state } = run;
  const { runId, caller, createdAt, environment } = header;
  const waiting = await waitingRun(runId, shown.services);
  const asked = isChangeRun(run) ? run.state.facts.asked : undefined;
  const { unknown, unattempted, pending } = state.counts();
  return {
    ...{ runId, caller, environment, tool: header.call.tool, status: run.status(), counts: countsOf(state) },
    ...{ startedAt: createdAt, updatedAt: state.updatedAt, requests: state.requests },
    ...(asked !== undefined && { decided: askedWords(asked) }),
    ...(waiting
      ? waitingParts(waiting, shown)
      : { actions: actionsOf(run.status(), unknown + unattempted + pending > 0, shown) }),
  };
}

/** What a row says of a run that waits for a decision. */
function waitingParts(run: ChangeRun, shown: Shown): Pick<RunRow, "project" | "waiting" | "actions" | "disabled"> {
  const { waits } = run.state.facts;
  const { readOnly, changes } = shown.services;
  if (waits === undefined || readOnly) return { actions: [] };
  const isDriven = changes !== undefined && run.header.project === shown.project.id;
  const why = waits.stale === undefined ? (isDriven ? undefined : ENDED) : STALE;
  const waiting: Waiting = {
    ...{ effect: run.state.facts.effect ?? "", parts: waits.parts, lost: [], undoable: [], expiresAt: waits.until },
    ...(waits.stale !== undefined && { stale: [waits.stale] }),
    ...(!isDriven && { ended: true }),
  };
  return {
    ...{ project: isDriven ? shown.project.name : run.header.project, waiting },
    actions: ["approve", "decline"],
    ...(why !== undefined && { disabled: { approve: why } }),
  };
}

function actionsOf(status: string, isOpen: boolean, { services }: Shown): readonly RunAction[] {
  if (services.readOnly) return [];
  if (status === "running") return ["cancel"];
  return status === "interrupted" && isOpen ? ["resume", "cancel"] : [];
}

function failureRow({ outcome, count, places, byLine, message, remedy }: ReturnType<typeof toldFailures>[number]) {
  const kind = outcome === "failed" || outcome === "unattempted" ? outcome : "unknown";
  return { outcome: kind, count, places: placesWords(places, { byLine }), message, remedy } satisfies FailureRow;
}

const NO_COUNTS = { items: 0, succeeded: 0, alreadyDone: 0, failed: 0, unattempted: 0, unknown: 0, pending: 0 };
const STATUSES = [
  ...(["succeeded", "partial", "failed", "unknown", "running"] as const),
  ...(["interrupted", "cancelled", "planned", "needs_confirmation"] as const),
];
