import { createHash } from "node:crypto";
import { isApiError, problemOf } from "../api/errors.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { Ending } from "../runs/kind.ts";
import { type OwnCode, ownReason, type ReportedObject, type Standing } from "../runs/outcome.ts";
import type { RunHeader } from "../runs/store.ts";
import type { WriteCall } from "./call.ts";
import { changeOf } from "./change-kinds.ts";
import type { Loss, Plan } from "./plan/plan.ts";
import type { JournalEntry, Step } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import { StepList } from "./rows/steps.ts";
import { RunState } from "./state/change-state.ts";

/** How long a person has to decide, in milliseconds. */
export const CONFIRMATION_MS = 600_000;
/** An `update_contexts` that takes away more Context IDs than this needs a confirmation. */
const UNASKED_CONTEXT_IDS = 100;

/** Whether a plan takes away so much that a person has to agree: decided by what it does, not only by the tool. */
export function needsConfirmation({ losses }: Pick<Plan, "losses">): boolean {
  let contextIds = 0;
  for (const { kind, count, empties } of losses) {
    if (kind !== "contextIds" || empties) return true;
    contextIds += count;
  }
  return contextIds > UNASKED_CONTEXT_IDS;
}

/** A digest of what a plan takes away: a confirmation counts only for the same digest. */
export function lossDigest(losses: readonly Loss[]): string {
  const sorted = [...losses].sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** How many steps that delete or take away Context IDs are about objects that are not known to be done. */
export function leftToTakeAway(state: Pick<RunState, "steps" | "standing">): number {
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
 * Whether a run may be resumed for the same call. A deletion may hit other things by now. A run without a plan would be
 * planned again, and may need a confirmation.
 */
export function mayGoOn({ header, state }: Left): boolean {
  const { deletes, mayTakeAway } = changeOf(header.call);
  return !deletes && (state.planned || !mayTakeAway);
}

/** Whether another process may go on with a run: what a person agreed to is done soon, or not without asking again. */
export function mayBeTakenUp({ header, state }: Left, now: number): boolean {
  const { mayTakeAway } = changeOf(header.call);
  return !mayTakeAway || (state.planned && now - state.updatedAt < CONFIRMATION_MS);
}

/** Limits the length of a line of the journal. */
const OBJECTS_PER_LINE = 500;

/**
 * The state of a run until it is planned: all that the caller gave, pending. `bytes` is the content of the call's file,
 * where it has one. A file that cannot be read is one object, so that the report has an item with the reason.
 */
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

/** A file that cannot be read is one object, which fails with the reason. */
export const UNREADABLE_FILE: JournalEntry = { t: "objects", objects: [{ index: 0 }] };

/** The state of a plan that is still being made: one object, which is the targeting that it is about. */
export function unmadeState({ tool, input }: WriteCall): RunState {
  const state = new RunState();
  if (tool !== "apply_plan") return state;
  const { targetingId, plannedBy } = input;
  state.apply({ t: "objects", objects: [{ index: 0, ...(targetingId !== undefined && { _id: targetingId }) }] });
  state.apply({ t: "facts", facts: { tool: plannedBy } });
  return state;
}

/**
 * How a run ends whose planning failed, or that could not save what it read. A rejection would come again: the run has
 * failed. An error that another try may avoid interrupts it. Undefined for an error of this machine.
 */
export function endingOf(thrown: unknown, code: OwnCode = "NOT_PLANNED"): Ending | undefined {
  if (thrown instanceof FileError) {
    const { message, remedy } = thrown;
    return { cause: "ended", reason: ownReason(code, { effect: "file", message, remedy }) };
  }
  if (!isApiError(thrown)) return undefined;
  const cause = thrown.effect === "rejected" ? "ended" : "interrupted";
  return { cause, reason: ownReason(code, problemOf(thrown)) };
}

/**
 * Whether a run ended before it was started: it was never confirmed, or is a plan that could not be made, and nothing of
 * it may be sent any more.
 */
export function isWithdrawn({ stopped, facts, planned }: RunState): boolean {
  const isPlanAlone = stopped !== undefined && stopped.cause !== "interrupted" && facts.tool !== undefined && !planned;
  return isPlanAlone || UNCONFIRMED.has(stopped?.reason?.code ?? "");
}

const UNCONFIRMED: ReadonlySet<string> = new Set(["WITHDRAWN", "NOT_DECIDED", "DECLINED"]);

/** Whether the way back from a run was begun: it may not be resumed any more. */
export function isUndone({ stopped }: Pick<RunState, "stopped">): boolean {
  return stopped?.reason?.code === "UNDONE";
}

/** The journal entries that name the objects of a run, and the tool that it is told under. */
export function* objectEntries({
  objects,
  facts: { tool },
}: Pick<RunState, "objects" | "facts">): Generator<JournalEntry> {
  if (tool !== undefined) yield { t: "facts", facts: { tool } };
  for (let from = 0; from < objects.length; from += OBJECTS_PER_LINE) {
    const some: ReportedObject[] = [];
    for (let object = from; object < Math.min(from + OBJECTS_PER_LINE, objects.length); object += 1) {
      const about = objects.at(object);
      if (about !== undefined) some.push(about);
    }
    yield { t: "objects", objects: some };
  }
}
