import { amount, thousands } from "../../platform/text.ts";
import type { Did, RowCounts } from "../../runs/outcome.ts";
import type { RunStatus } from "../../runs/report.ts";
import type { Approval } from "../approval.ts";
import { OUTCOME_WORDS } from "../failures/messages.ts";
import { many } from "../failures/words.ts";
import { shown } from "../fence.ts";
import type { ReportedRun } from "./reported-run.ts";

const STATUS_WORDS: Readonly<Record<RunStatus, string>> = {
  succeeded: "Everything succeeded",
  partial: "A part succeeded",
  failed: "Nothing succeeded",
  unknown: "Nothing is known to have succeeded",
  running: "Still running",
  interrupted: "Interrupted",
  cancelled: "Cancelled",
  planned: "Planned only: nothing was sent",
  needs_confirmation: "Not done yet: a person has to agree first",
};

/** How a run stands, in a line: status, counts, and what was sent. */
export function headline(run: ReportedRun): string {
  const { items, ...outcomes } = run.counts;
  if (items === 0 && run.status === "running") return stillReading(run);
  const counted = new Map(Object.entries(outcomes));
  const parts = Object.entries(OUTCOME_WORDS).flatMap(([outcome, words]) => {
    const count = counted.get(outcome) ?? 0;
    return count === 0 ? [] : [`${count} ${words}${outcome === "succeeded" ? didWords(run) : ""}`];
  });
  const id = run.runId === undefined ? "" : `, run ${run.runId}`;
  const counts = `${amount(items, "item")}${parts.length > 0 ? `: ${parts.join(", ")}` : ""}`;
  return `${STATUS_WORDS[run.status]} (${run.tool}, ${run.environment}${id}). ${counts}.${requestWords(run)}`;
}

/** That requests are counted by their answers, where some have none yet. */
export function unansweredNote({ unanswered = 0 }: ReportedRun): readonly string[] {
  return unanswered === 0 ? [] : [`requests sent: up to ${unanswered} more have no answer yet`];
}

/** What was sent, without what says nothing. */
function requestWords({ requests, unanswered = 0 }: ReportedRun): string {
  if (requests === undefined) return "";
  const { planned, sent, resent, waitedMs } = requests;
  const parts = [
    `${sent}${sent === planned || planned === 0 ? "" : ` (${planned} planned)`}`,
    resent > 0 && `${resent} of them again`,
    waitedMs > 0 && `${seconds(waitedMs)} waited`,
  ].filter((part) => part !== false);
  return ` Requests ${unanswered > 0 ? "answered" : "sent"}: ${parts.join(", ")}.`;
}

const WHOLE_SECONDS_FROM_MS = 10_000;

function seconds(ms: number): string {
  return `${ms < WHOLE_SECONDS_FROM_MS ? Math.max(0.1, Math.round(ms / 100) / 10) : Math.round(ms / 1000)} s`;
}

const DID: readonly Did[] = ["created", "changed", "deleted", "same"];

function didWords({ did, tool }: ReportedRun): string {
  if (did === undefined) return "";
  const words: Readonly<Record<Did, string>> = {
    created: "created",
    changed: tool === "bulk_add_options" ? "got Context IDs" : "changed",
    deleted: "deleted",
    same: "as before",
  };
  const parts = DID.flatMap((each) => (did[each] > 0 ? [`${did[each]} ${words[each]}`] : []));
  return parts.length === 0 ? "" : ` (${parts.join(", ")})`;
}

/** Tools that ask a person where they take away much; others say nothing of it. */
const ASKING_TOOLS: ReadonlySet<string> = new Set([
  "delete_targeting",
  "delete_options",
  "update_contexts",
  "apply_plan",
]);

/** The approval, where a tool asks and the run went past the question. */
export function reportedApproval({ approval, tool, status, tellsAsked }: ReportedRun): Approval | undefined {
  if (approval === undefined || status === "planned" || status === "needs_confirmation") return undefined;
  return tellsAsked || ASKING_TOOLS.has(tool) || approval.decision !== "not_needed" ? approval : undefined;
}

/** What the rows of a file came to, where that is not one item each. */
export function rowsNote({ read, merged, skipped }: RowCounts): readonly string[] {
  if (merged + skipped === 0) return [];
  const parts = [
    `the file's ${many(read, "row")} came to ${many(read - merged, "item")}`,
    merged > 0 && `${many(merged, "row")} went into an item that an earlier row began`,
    skipped > 0 && `${many(skipped, "empty row")} ${skipped === 1 ? "was" : "were"} passed over`,
  ].filter((part) => part !== false);
  return [parts.join("; ")];
}

/** How many names are told that did not match exactly. */
const TAKEN_TOLD = 5;

/** Which names were taken for which others, since none matched exactly. */
export function takenNote({ takenFor = [] }: ReportedRun): readonly string[] {
  if (takenFor.length === 0) return [];
  const told = takenFor.slice(0, TAKEN_TOLD).map(({ given, name }) => `${shown(given)} was taken for ${shown(name)}`);
  const more = takenFor.length - told.length;
  return [`${told.join(", ")}${more > 0 ? `, and ${more} more so` : ""}: no name matched exactly`];
}

/** Which Context IDs look like one that is there already. */
export function nearNote({ nearIds }: Pick<ReportedRun, "nearIds">): readonly string[] {
  if (nearIds === undefined) return [];
  const { count, first } = nearIds;
  const pairs = first.map(({ given, held }) => `${shown(given)} beside ${shown(held)}`).join(", ");
  const [verb, more] = [count === 1 ? "differs" : "differ", count > first.length ? ", …" : ""];
  return [
    `${amount(count, "Context ID")} ${verb} from one of the option only in case, width or composition: ${pairs}${more}`,
  ];
}

/** That the way back cannot take back what may have been there before. */
export function unreadNote({ unread = 0, counts }: ReportedRun): readonly string[] {
  if (unread === 0 || counts.succeeded === 0) return [];
  const options = `${amount(unread, "option")} ${unread === 1 ? "was" : "were"}`;
  return [`${options} not read before, so that undoing this leaves what was added there`];
}

/** How many options are told that hold another number of Context IDs than expected. */
const COUNTS_TOLD = 5;

/** Which options hold another number of Context IDs than expected. */
export function countsNote({ otherCounts = [] }: ReportedRun): readonly string[] {
  if (otherCounts.length === 0) return [];
  const told = otherCounts.slice(0, COUNTS_TOLD).map(({ name, _id = "?", expected, found }) => {
    const which = name === undefined ? _id : `${shown(name)} (${_id})`;
    return `${which} holds ${thousands(found)} Context IDs, and ${thousands(expected)} were expected`;
  });
  const more = otherCounts.length - told.length;
  return [
    `${told.join("; ")}${more > 0 ? `; and ${more} more options so` : ""}: another writer may have changed it meanwhile; ` +
      "what this run was to add or remove is done",
  ];
}

/** What a run that was taken up again did now, and what had been done before. */
export function resumedNote({ resumed, counts }: ReportedRun): readonly string[] {
  if (resumed === undefined) return [];
  const before = resumed.succeeded + resumed.alreadyDone;
  const now = counts.succeeded + counts.alreadyDone - before;
  return [
    `the run was taken up again: ${before} of ${counts.items} had been done before, ${now} ${now === 1 ? "was" : "were"} done since`,
  ];
}

/** Why a run of renames sent more requests than it has items for. */
export function ringsNote({ temporaryNames = 0 }: ReportedRun): readonly string[] {
  if (temporaryNames === 0) return [];
  const names = temporaryNames === 1 ? "one of them was" : `${temporaryNames} of them were`;
  return [`names were passed round in a ring, which takes more requests: ${names} renamed twice`];
}

/** A run that is planned in the background and whose file has not been read to its end. */
function stillReading({ tool, environment, runId }: ReportedRun): string {
  return `Still reading the file; nothing was sent (${tool}, ${environment}${runId === undefined ? "" : `, run ${runId}`}).`;
}
