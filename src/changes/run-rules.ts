import { createHash } from "node:crypto";
import { isApiError, problemOf } from "../api/errors.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { Ending } from "../runs/kind.ts";
import { type OwnCode, ownReason, type Standing } from "../runs/outcome.ts";
import type { RunHeader } from "../runs/store.ts";
import type { WriteCall } from "./call.ts";
import { changeOf } from "./change-kinds.ts";
import type { Loss, Plan } from "./plan/plan.ts";
import { type JournalEntry, type Step, targetOf } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import { StepList } from "./rows/steps.ts";
import { RunState } from "./state/change-state.ts";

/** For how many milliseconds a person can approve. */
export const CONFIRMATION_MS = 600_000;
/** The maximum number of Context IDs that `update_contexts` removes without approval. */
const MAX_UNCONFIRMED_REMOVALS = 100;

/** Returns whether a plan removes so much that a person must approve it. */
export function needsConfirmation({ losses }: Pick<Plan, "losses">): boolean {
  let contextIds = 0;
  for (const { kind, count, empties } of losses) {
    if (kind !== "contextIds" || empties) return true;
    contextIds += count;
  }
  return contextIds > MAX_UNCONFIRMED_REMOVALS;
}

/** Returns a digest of what would be removed. An approval is valid only for the same digest. */
export function lossDigest(losses: readonly Loss[]): string {
  // `freedNames` is known only if the sub-options were read for another reason, so the digest leaves it out.
  const shown = losses.map(({ freedNames: _, ...loss }) => loss);
  const sorted = shown.sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** Returns the number of steps that remove something and are not known to be applied. */
export function countOpenRemovals(state: Pick<RunState, "steps" | "standing">): number {
  let left = 0;
  for (const step of state.steps.parts()) {
    if (step instanceof RowBlock || !takesAway(step)) continue;
    if (step.objects.some((object) => OPEN.has(state.standing(object)))) left += 1;
  }
  return left;
}

const OPEN: ReadonlySet<Standing> = new Set(["pending", "notApplied", "unknown"]);

function takesAway(step: Step): boolean {
  if (step.operation === "deleteOptions" || step.operation === "deleteTargetings") return true;
  if (step.operation !== "updateOptions") return false;
  const { remove = [], set } = step.item.contexts ?? {};
  return remove.length > 0 || set !== undefined;
}

type Left = { readonly header: RunHeader<WriteCall>; readonly state: Pick<RunState, "planned" | "updatedAt"> };

/**
 * Returns whether an identical call may resume a run. It may not resume a deletion, or an unplanned run that may need
 * approval.
 */
export function mayGoOn({ header, state }: Left): boolean {
  const { deletes, mayTakeAway } = changeOf(header.call);
  return !deletes && (state.planned || !mayTakeAway);
}

/**
 * Returns whether another process may continue a run without a new approval. The approval of a removal expires after a
 * while.
 */
export function mayBeClaimed({ header, state }: Left, now: number): boolean {
  const { mayTakeAway } = changeOf(header.call);
  return !mayTakeAway || (state.planned && now - state.updatedAt < CONFIRMATION_MS);
}

/** Returns a state that lists the whole input as not applied. A file that cannot be read is listed as one object. */
export async function unplannedState(call: WriteCall, bytes: ByteSource | undefined): Promise<RunState> {
  try {
    return new RunState({ objects: await changeOf(call).objects(bytes), steps: new StepList(), settlements: [] });
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    const state = new RunState();
    state.apply(UNREADABLE_FILE);
    return state;
  }
}

export const UNREADABLE_FILE: JournalEntry = { t: "objects", objects: [{ index: 0 }] };

/** Returns a state that lists the targeting of the plan as the only object. */
export function unfinishedPlanState({ tool, input }: WriteCall): RunState {
  const state = new RunState();
  if (tool !== "apply_plan") return state;
  const { targetingId, plannedBy } = input;
  state.apply({ t: "objects", objects: [{ index: 0, ...(targetingId !== undefined && { _id: targetingId }) }] });
  state.apply({ t: "facts", facts: { tool: plannedBy } });
  return state;
}

/** Returns how a run ends if planning failed: for good after a rejection. Undefined for an error of this machine. */
export function endingOf(thrown: unknown, code: OwnCode = "NOT_PLANNED"): Ending | undefined {
  if (thrown instanceof FileError) {
    const { message, remedy } = thrown;
    return { cause: "ended", reason: ownReason(code, { effect: "file", message, remedy }) };
  }
  if (!isApiError(thrown)) return undefined;
  const cause = thrown.effect === "rejected" ? "ended" : "interrupted";
  return { cause, reason: ownReason(code, problemOf(thrown)) };
}

/** Returns whether a run ended before it started, because it was not approved or its planning failed. */
export function isWithdrawn({ stopped, facts, planned }: RunState): boolean {
  const isPlanAlone = stopped !== undefined && stopped.cause !== "interrupted" && facts.tool !== undefined && !planned;
  return isPlanAlone || UNCONFIRMED.has(stopped?.reason?.code ?? "");
}

const UNCONFIRMED: ReadonlySet<string> = new Set(["WITHDRAWN", "NOT_DECIDED", "DECLINED"]);

/** Returns whether the undo of a run has started. Such a run must not be resumed. */
export function isUndone({ stopped }: Pick<RunState, "stopped">): boolean {
  return stopped?.reason?.code === "UNDONE";
}

/** Returns the ID of the latest run that undid a part of this run. Undefined if no run did. */
export function undoneByRun({ stopped }: Pick<RunState, "stopped">): string | undefined {
  const by = stopped?.reason?.code === "UNDONE" ? stopped.reason.detail?.by : undefined;
  return typeof by === "string" ? by : undefined;
}

/** Returns the IDs of all runs that undid a part of this run, the latest last. */
export function undoingRuns(state: Pick<RunState, "stopped">): readonly string[] {
  const by = undoneByRun(state);
  const earlier = by === undefined ? [] : state.stopped?.reason?.detail?.earlier;
  const others = Array.isArray(earlier) ? earlier.filter((one) => typeof one === "string") : [];
  return by === undefined ? [] : [...others, by];
}

/** Returns the journal entries that list the objects of a run and the tool under which it is reported. */
export function* objectEntries({
  objects,
  facts: { tool },
}: Pick<RunState, "objects" | "facts">): Generator<JournalEntry> {
  if (tool !== undefined) yield { t: "facts", facts: { tool } };
  yield* objects.entries();
}

export interface LeftoverName {
  readonly _id: string;
  readonly temporaryName: string;
  readonly formerName: string;
  /** False if the rename got no answer. The object may then still have its previous name. */
  readonly isSure: boolean;
}

/** Returns the objects that have a temporary name now. After the run has ended, only `resume_run` renames them. */
export function leftoverNames(state: RunState): readonly LeftoverName[] {
  return state.preparingSteps().flatMap(({ step, isSure }) => {
    const _id = targetOf(step);
    const temporaryName = step.item?.name;
    const { formerName } = step;
    if (_id === undefined || temporaryName === undefined || formerName === undefined) return [];
    const names = state.stepsChanging(_id).filter((other) => other.id !== step.id && other.item?.name !== undefined);
    return names.some(({ id }) => state.isDone(id)) ? [] : [{ _id, temporaryName, formerName, isSure }];
  });
}

/** Returns the object that the previous run of the same call created, with its ID if known. */
export function madeBefore(
  before: RunState | undefined,
  objects: RunState["objects"],
  object: number,
): { readonly _id: string | undefined } | undefined {
  const isSame = before?.objects.at(object)?.name === objects.at(object)?.name;
  return isSame && before?.didOf(object) !== undefined ? { _id: before.idOf(object) } : undefined;
}

/**
 * Marks objects as `alreadyDone` if a deletion no longer finds them and the previous run of the same call deleted them.
 */
export function settleDeletedBefore(plan: Plan, call: WriteCall, before: RunState | undefined): void {
  if (before === undefined || !changeOf(call).deletes) return;
  for (const [at, { object, outcome, reason }] of plan.settlements.entries()) {
    const { _id, name } = plan.objects.at(object) ?? {};
    const then = before.objects.at(object);
    const isSame = _id === undefined ? name !== undefined && then?.name === name : then?._id === _id;
    const isMissing = outcome === "failed" && NOT_THERE.has(reason?.code ?? "");
    if (isSame && isMissing && DELETED.has(before.standing(object))) {
      plan.settlements[at] = { object, outcome: "alreadyDone" };
    }
  }
}

const NOT_THERE: ReadonlySet<string> = new Set([
  "TARGETING_NOT_FOUND",
  "TARGETING_CATEGORY_NOT_FOUND",
  "NAME_NOT_FOUND",
]);

/** The standings of an object that is gone after a deletion. A deletion without an answer counts as done. */
const DELETED: ReadonlySet<Standing> = new Set(["succeeded", "alreadyDone", "unknown"]);
