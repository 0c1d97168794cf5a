import { approvalWords } from "../answers/approvals.ts";
import { messageFor } from "../answers/failures.ts";
import { placeWords } from "../answers/fence.ts";
import { isApproval } from "../approvals/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import { objectResult } from "../runs/report.ts";
import { approvalOfRun } from "../tools/run-reports.ts";
import { forPeople } from "./people-words.ts";
import type { FailureRow, ProblemList, ProblemRow, RunRow, StoryStep } from "./wire.ts";

const MINUTE_MS = 60_000;

/** The most rows of one answer, and the longest value in it. */
const MOST_ROWS = 100;
const MOST_LETTERS = 300;

/** What happened to a run, in its order: requested, decided, checked again, applied. */
export function storyOf(run: Run, row: RunRow): readonly StoryStep[] {
  const { createdAt, call } = run.header;
  const isPlan = call.tool === "apply_plan";
  const first: StoryStep = { title: isPlan ? "Planned" : "Requested", at: createdAt, tone: "good" };
  return [first, ...decisionOf(run), ...endOf(run, row)];
}

function decisionOf(run: Run): readonly StoryStep[] {
  if (!(isChangeRun(run) || isApproval(run))) return [];
  const approval = approvalOfRun(run);
  const words = approval && approvalWords(approval)?.replace(/\.$/, "");
  if (approval === undefined || words === undefined) return [];
  const isApproved = approval.decision === "approved";
  const { at } = run.state.facts.decided ?? {};
  const step: StoryStep = { title: words, at, tone: isApproved ? "good" : "bad" };
  if (!isApproved || !isChangeRun(run)) return [step];
  const isStale = run.state.facts.stale !== undefined;
  const title = isStale ? "Checked again: it had changed" : "Checked again: nothing had changed";
  return [step, ...(run.state.planned ? [{ title, tone: isStale ? ("bad" as const) : ("good" as const) }] : [])];
}

const ENDS = {
  succeeded: ["Done", "good"],
  partial: ["Partly done", "warn"],
  failed: ["Failed", "bad"],
  unknown: ["Result unknown", "warn"],
  running: ["Running", "idle"],
  interrupted: ["Interrupted", "warn"],
  cancelled: ["Cancelled", "idle"],
  planned: ["Not applied yet", "idle"],
  needs_confirmation: ["Waits for approval", "warn"],
} as const satisfies Record<RunRow["status"], readonly [string, StoryStep["tone"]]>;

function endOf(run: Run, { status, counts, updatedAt }: RunRow): readonly StoryStep[] {
  const [title, tone] = ENDS[status];
  if (status === "planned" || status === "needs_confirmation") return [{ title, tone }];
  const done = counts.succeeded + counts.alreadyDone + (counts.skipped ?? 0);
  const says = counts.items > 0 ? `${thousands(done)} of ${thousands(counts.items)}` : undefined;
  const step: StoryStep = { title, tone, says, at: status === "running" ? undefined : updatedAt };
  const wait = waitWords(run);
  return wait === undefined ? [step] : [{ title: wait, tone: "warn" }, step];
}

/** Retries and waits, where there were some. */
function waitWords({ state: { requests } }: Run): string | undefined {
  const { resent, waitedMs } = requests;
  const seconds = Math.round(waitedMs / 1000);
  const parts = [
    resent > 0 && (resent === 1 ? "1 request was sent again" : `${thousands(resent)} requests were sent again`),
    seconds > 0 && `waited ${waitedMs >= 2 * MINUTE_MS ? `${Math.round(waitedMs / MINUTE_MS)} min` : `${seconds} s`}`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** A page of what did not succeed, each row or item by itself. */
export function problemList({ state }: Run, query: URLSearchParams): ProblemList {
  const from = Math.max(0, Math.trunc(Number(query.get("from"))) || 0);
  const rows: ProblemRow[] = [];
  let total = 0;
  for (let object = 0; object < state.objects.length; object += 1) {
    const outcome = outcomeOf(state.standing(object));
    const reason = state.reason(object);
    if (outcome === undefined || reason === undefined) continue;
    total += 1;
    if (total <= from || rows.length === MOST_ROWS) continue;
    const result = objectResult(state, object);
    const { message, remedy } = messageFor(reason);
    const value = result.name ?? result._id ?? "";
    rows.push({
      ...{ outcome, place: placeWords(result), value: value.slice(0, MOST_LETTERS) },
      ...{ problem: forPeople(message), suggestion: forPeople(remedy) },
    });
  }
  return { rows, total };
}

function outcomeOf(standing: string): FailureRow["outcome"] | undefined {
  return (["skipped", "failed", "notApplied", "unknown"] as const).find((one) => one === standing);
}
