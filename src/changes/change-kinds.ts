import { createHash } from "node:crypto";
import * as z from "zod";
import { isApiError, problemOf } from "../api/errors.ts";
import { type DetectedForm, isUndetected, withDetectedForm } from "../files/detected-form.ts";
import type { InputFile } from "../files/input-file.ts";
import type { Rejected } from "../files/result-sheet.ts";
import {
  type GivenItem,
  givenItems,
  itemsIn,
  placeOf,
  type Row,
  type RowShape,
  rowsOf,
  rowsOfItems,
} from "../files/rows.ts";
import { defined } from "../platform/by-key.ts";
import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import type { Ending } from "../runs/kind.ts";
import { type OwnCode, ownReason, type Reason, type Standing } from "../runs/outcome.ts";
import type { RunHeader } from "../runs/store.ts";
import { INPUTS, type Inputs, type OnExisting, type WriteCall, type WriteTool } from "./call.ts";
import { RunState } from "./change-state.ts";
import type { Loss, Plan, PlanningContext } from "./plan/plan.ts";
import { isDeletion, type JournalEntry, type Step, targetOf } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import { ObjectList, StepList } from "./rows/steps.ts";

interface Targets {
  readonly targetings: readonly string[];
  readonly options: readonly string[];
}

/** What differs between the writing tools. `bytes`: the content of the file in the call. Not read without a file. */
interface ChangeKind<Input> {
  /** Plans a call, and reads from the service if needed. Throws the ApiError of a failed read, or a FileError. */
  plan(input: Input, context: PlanningContext): Promise<Plan> | Plan;
  /**
   * Returns the targetings and options that the plan will report, as far as the input shows them. Called before
   * planning, and reads nothing from the service. Throws a FileError.
   */
  objects(input: Input, bytes: ByteSource | undefined): Promise<ObjectList> | ObjectList;
  targets?(input: Input, bytes: ByteSource | undefined): Promise<Targets> | Targets | undefined;
  deletions?(input: Input): number;
  /** Returns whether the plan may remove something, as far as the input shows it. For deletions: see `deletions`. */
  mayTakeAway?(input: Input): boolean;
  rejects?(bytes: ByteSource, file: InputFile, rejected: Rejected): AsyncIterable<string>;
  /** Returns what the call does with an option whose name already exists. Default: `fail`. */
  onExisting?(input: Input): OnExisting;
}

/** Loads the code for planning only when a call needs it, so that the server starts fast. */
const planners = () => import("./plan/planners.ts");

const optionRows = async () => (await import("./rows/input-rows.ts")).optionRows;
const contextRows = async () => (await import("./rows/input-rows.ts")).contextRows;

const KINDS: { readonly [Tool in WriteTool]: ChangeKind<Inputs[Tool]> } = {
  create_targetings: {
    plan: async (input) => (await planners()).planCreateTargetings(input),
    objects: async (input) => (await planners()).planCreateTargetings(input).objects,
  },
  rename_targetings: {
    async plan(input, context) {
      const { readCurrentNames, planRenameTargetings } = await planners();
      const named = input.items.flatMap(({ _id, currentName }) => (currentName === undefined ? [] : (_id ?? [])));
      return planRenameTargetings(input, await readCurrentNames(named, context));
    },
    objects: async (input) => (await planners()).planRenameTargetings(input).objects,
    targets: ({ items }) => ({ targetings: items.flatMap(({ _id }) => _id ?? []), options: [] }),
  },
  delete_targeting: {
    plan: async (input, context) => (await planners()).planDeleteTargetings(input, context),
    objects: ({ ids, names }) => listed({ ids, names: names?.map(({ currentName }) => currentName) }),
    targets: ({ ids, names = [] }) => ({ targetings: [...ids, ...names.flatMap(({ _id }) => _id ?? [])], options: [] }),
    deletions: ({ ids, names = [] }) => ids.length + names.length,
  },
  bulk_add_options: {
    plan: async (input, context) =>
      (await planners()).planAddOptions(input, rowsIn(input, await optionRows(), context.bytes), context),
    async objects(input, bytes) {
      const { OptionDrafts, Plan } = await planners();
      const plan = new Plan();
      const drafts = new OptionDrafts(plan, input.targetingId);
      for await (const batch of rowsIn(input, await optionRows(), bytes)) drafts.take(batch);
      return plan.objects;
    },
    async targets(input, bytes) {
      const parents = (await itemsOf(input, await optionRows(), bytes)).map(({ parent }) => parent);
      return { targetings: [input.targetingId], options: parents.filter((one) => one !== undefined) };
    },
    rejects: (bytes, of, rejected) => rejectsOf(optionRows(), bytes, of, rejected),
    onExisting: ({ onExisting = "fail" }) => onExisting,
  },
  update_options: {
    async plan(input, context) {
      const { optionFinder, planUpdateOptions } = await planners();
      const hasNames = input.items.some(({ currentName, parentName }) => (currentName ?? parentName) !== undefined);
      const find = await optionFinder(input.targetingId, hasNames, context);
      const plan = planUpdateOptions(input, find);
      plan.known = find.known;
      if (find.takenFor.length > 0) plan.note({ takenFor: find.takenFor });
      return plan;
    },
    objects: async (input) => (await planners()).planUpdateOptions(input).objects,
    targets: ({ targetingId, items }) => ({
      targetings: [targetingId ?? []].flat(),
      options: items.flatMap(({ _id = [], parent }) => (typeof parent === "string" ? [parent] : []).concat(_id)),
    }),
  },
  update_contexts: {
    plan: async (input, context) =>
      (await planners()).planUpdateContexts(input, await givenIn(input, await contextRows(), context.bytes), context),
    async objects(input, bytes) {
      const { targetsOf } = await planners();
      const objects = new ObjectList();
      for (const one of await givenIn(input, await contextRows(), bytes)) {
        const targets = "item" in one ? targetsOf(one.item) : [];
        for (const target of targets) objects.add({ ...placeOf(one), ...target });
        if (targets.length === 0) objects.add(placeOf(one));
      }
      return objects;
    },
    async targets(input, bytes) {
      const items = await itemsOf(input, await contextRows(), bytes);
      const options = items.flatMap(({ _id = [], _ids = [] }) => [_id, _ids].flat());
      return { targetings: [input.targetingId ?? []].flat(), options };
    },
    mayTakeAway: (input) =>
      input.file !== undefined ||
      input.items.some(({ remove, set, removeFrom }) => (remove ?? set ?? removeFrom) !== undefined),
    rejects: (bytes, of, rejected) => rejectsOf(contextRows(), bytes, of, rejected),
  },
  delete_options: {
    plan: async (input, context) => (await planners()).planDeleteOptions(input, context),
    objects: listed,
    targets: ({ targetingId, ids = [] }) => ({ targetings: [targetingId ?? []].flat(), options: ids }),
    deletions: ({ ids = [], names = [] }) => ids.length + names.length,
  },
  apply_plan: {
    async plan(_, { bytes, ...reading }) {
      if (bytes === undefined) throw new RangeError("apply_plan needs the stored plan");
      const { checkStoredPlan } = await import("../plans/look-again.ts");
      const changes = await checkStoredPlan(bytes, reading);
      return (await planners()).planDesired(changes);
    },
    // The objects are not in the call. They are stored with the plan that the call applies.
    objects: () => new ObjectList(),
    // `targetingId` is absent in two cases: the plan of a desired state creates the targeting, which has no ID yet, or
    // an undo plan has nothing to do.
    targets: ({ plannedBy, targetingId, furtherIds = [] }) =>
      plannedBy === "plan_targeting" && targetingId === undefined
        ? undefined
        : { targetings: [targetingId ?? [], furtherIds].flat(), options: [] },
    mayTakeAway: () => true,
  },
};

async function* rejectsOf<Item>(
  shape: Promise<RowShape<Item>>,
  bytes: ByteSource,
  of: InputFile,
  rejected: Rejected,
): AsyncGenerator<string> {
  const { rejectedRows } = await import("../files/result-sheet.ts");
  yield* rejectedRows(bytes, of, await shape, rejected);
}

export const WRITE_TOOLS: readonly string[] = [...Object.keys(KINDS), "plan_targeting", "undo_run"];

export function changeOf<Tool extends WriteTool>({ tool, input }: WriteCall<Tool>) {
  const kind: ChangeKind<Inputs[Tool]> = KINDS[tool];
  return {
    async plan(context: PlanningContext): Promise<Plan> {
      const plan = await kind.plan(input, context);
      const look = await lookAt(tool, { input }, context.bytes);
      if (look !== undefined) plan.note({ look });
      const { notePreviousValues } = await planners();
      // `update_contexts` and `apply_plan` record the previous values while they plan.
      if (tool !== "update_contexts" && tool !== "apply_plan") await notePreviousValues(plan, context);
      return plan;
    },
    objects: (bytes: ByteSource | undefined) => kind.objects(input, bytes),
    targets: (bytes: ByteSource | undefined) => kind.targets?.(input, bytes),
    deletes: kind.deletions !== undefined,
    deletions: kind.deletions?.(input) ?? 0,
    /** Whether the plan may need approval, as far as the input alone shows it. */
    mayTakeAway: kind.deletions !== undefined || kind.mayTakeAway?.(input) === true,
    rejects: kind.rejects,
    onExisting: kind.onExisting?.(input) ?? ("fail" as const),
  };
}

/** Detects how to read the sheet in a call. Undefined if there is no sheet, or if its form is already known. */
async function lookAt(
  tool: WriteTool,
  call: Pick<WriteCall, "input">,
  bytes: ByteSource | undefined,
): Promise<DetectedForm | undefined> {
  const file = fileOf(call);
  if (file === undefined || bytes === undefined || !isUndetected(file)) return undefined;
  const shape = await (tool === "bulk_add_options" ? optionRows() : contextRows());
  const { sheet, seen } = await withDetectedForm(bytes, file, shape);
  return { ...(sheet && { sheet }), ...(seen && { seen }) };
}

export function fileOf({ input }: Pick<WriteCall, "input">): InputFile | undefined {
  return "file" in input ? input.file : undefined;
}

export const writeCall: z.ZodType<WriteCall> = z.discriminatedUnion("tool", [
  callOf("create_targetings"),
  callOf("rename_targetings"),
  callOf("delete_targeting"),
  callOf("bulk_add_options"),
  callOf("update_options"),
  callOf("update_contexts"),
  callOf("delete_options"),
  callOf("apply_plan"),
]);

function callOf<Tool extends WriteTool>(tool: Tool) {
  return z.object({ tool: z.literal(tool), input: INPUTS[tool] });
}

function listed({ ids = [], names = [] }: Inputs["delete_options"]): ObjectList {
  const objects = new ObjectList();
  for (const _id of ids) objects.add({ index: objects.length, _id });
  for (const name of names) objects.add({ index: objects.length, name });
  return objects;
}

interface CallContent<Item> {
  readonly items: readonly Item[];
  readonly file?: InputFile | undefined;
}

/** Returns the items of a call or of its file. An invalid row has a reason instead of an item. */
async function givenIn<Item, Full extends Item>(
  { items, file }: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly GivenItem<Item>[]> {
  return file === undefined ? givenItems(items) : itemsIn(contentOf(bytes), file, shape);
}

async function itemsOf<Item, Full extends Item>(
  rows: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): Promise<readonly Item[]> {
  return (await givenIn(rows, shape, bytes)).flatMap((one) => ("reason" in one ? [] : [one.item]));
}

export function rowsIn<Item, Full extends Item>(
  { items, file }: CallContent<Item>,
  shape: RowShape<Full>,
  bytes: ByteSource | undefined,
): AsyncIterable<readonly Row<Item>[]> {
  return file === undefined ? rowsOfItems(items) : rowsOf(contentOf(bytes), file, shape);
}

function contentOf(bytes: ByteSource | undefined): ByteSource {
  if (bytes === undefined) throw new RangeError("a call with a file needs its content");
  return bytes;
}

/** How long after its request an approval can be given, in milliseconds. */
export const CONFIRMATION_MS = 600_000;
/** The maximum number of Context IDs that a run removes without approval, if it leaves no option without any. */
const MAX_UNCONFIRMED_REMOVALS = 100;

export function needsConfirmation({ losses }: Pick<Plan, "losses">): boolean {
  let contextIds = 0;
  for (const { kind, count, empties } of losses) {
    if (kind !== "contextIds" || empties) return true;
    contextIds += count;
  }
  return contextIds > MAX_UNCONFIRMED_REMOVALS;
}

/** Returns a digest of what a run would remove. An approval is valid only while this digest is the same. */
export function lossDigest(losses: readonly Loss[]): string {
  // `freedNames` is only sometimes known, so the digest does not cover it. Nor does it cover `isInGroup`, because the
  // group of an option does not change what is lost.
  const shown = losses.map(({ freedNames: _, isInGroup: _group, ...loss }) => loss);
  const sorted = shown.sort((a, b) => (a._id < b._id ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("base64url");
}

/** Returns how many steps that may remove something have an object that is pending, not applied or unknown. */
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
  if (isDeletion(step)) return true;
  if (step.operation !== "updateOptions") return false;
  const { remove = [], set } = step.item.contexts ?? {};
  return remove.length > 0 || set !== undefined;
}

type Left = { readonly header: RunHeader<WriteCall>; readonly state: Pick<RunState, "planned" | "updatedAt"> };

/** Returns whether an identical call may resume a run. Not if it deletes, or may remove something and has no plan. */
export function mayGoOn({ header, state }: Left): boolean {
  const { deletes, mayTakeAway } = changeOf(header.call);
  return !deletes && (state.planned || !mayTakeAway);
}

/**
 * Returns whether another process may continue a run without a new approval. A run that may remove something must be
 * planned, and its last journal entry must be less than `CONFIRMATION_MS` old.
 */
export function mayBeClaimed({ header, state }: Left, now: number): boolean {
  const { mayTakeAway } = changeOf(header.call);
  return !mayTakeAway || (state.planned && now - state.updatedAt < CONFIRMATION_MS);
}

/**
 * Returns the state of a run without a plan: all items of the input are pending. If its file cannot be read, the state
 * has a single object for the whole file.
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

export const UNREADABLE_FILE: JournalEntry = { t: "objects", objects: [{ index: 0 }] };

export function unfinishedPlanState({ tool, input }: WriteCall): RunState {
  const state = new RunState();
  if (tool !== "apply_plan") return state;
  const { targetingId, plannedBy } = input;
  state.apply({ t: "objects", objects: [{ index: 0, ...defined({ _id: targetingId }) }] });
  state.apply({ t: "facts", facts: { tool: plannedBy } });
  return state;
}

/**
 * Returns how a run ends when its planning fails. After a FileError, or if the service rejected a request, the cause is
 * `ended`. After any other ApiError, it is `interrupted`. Undefined for all other errors.
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

/** Returns whether a run ended before it started: it was cancelled or not approved, or a plan to store was not made. */
export function isWithdrawn({ stopped, facts, planned }: RunState): boolean {
  const isPlanAlone = stopped !== undefined && stopped.cause !== "interrupted" && facts.tool !== undefined && !planned;
  return isPlanAlone || UNCONFIRMED.has(stopped?.reason?.code ?? "");
}

/**
 * Returns why a run that could not be planned cannot be resumed either, so that its call must be made again. Undefined
 * for all other runs.
 */
export function notPlannedForGood({ stopped }: Pick<RunState, "stopped">): Reason | undefined {
  const { code, detail } = stopped?.reason ?? {};
  const isForGood = detail?.effect === "file" || detail?.isOver === true;
  return code === "NOT_PLANNED" && isForGood ? stopped?.reason : undefined;
}

const UNCONFIRMED: ReadonlySet<string> = new Set(["WITHDRAWN", "NOT_DECIDED", "DECLINED"]);

/** Returns whether an undo of a run has started. The run must then not be resumed. */
export function isUndone({ stopped }: Pick<RunState, "stopped">): boolean {
  return stopped?.reason?.code === "UNDONE";
}

/** Returns the ID of the latest run that undid changes of this run. Undefined if there is none. */
export function undoneByRun({ stopped }: Pick<RunState, "stopped">): string | undefined {
  const by = stopped?.reason?.code === "UNDONE" ? stopped.reason.detail?.by : undefined;
  return typeof by === "string" ? by : undefined;
}

/** Returns the IDs of all runs that undid changes of this run, the latest last. */
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
  /** False if the request for the rename got no answer. The object may then still have its previous name. */
  readonly isSure: boolean;
}

/** Returns the objects that have, or may have, a temporary name. Resuming an ended run sets their final names. */
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

/** Returns the ID of an object in the previous run of an identical call. Undefined if it did not succeed there. */
export function madeBefore(
  before: RunState | undefined,
  objects: RunState["objects"],
  object: number,
): { readonly _id: string | undefined } | undefined {
  const isSame = before?.objects.at(object)?.name === objects.at(object)?.name;
  return isSame && before?.didOf(object) !== undefined ? { _id: before.idOf(object) } : undefined;
}

/** Marks missing objects of a deletion as `alreadyDone` if the last run of an identical call may have deleted them. */
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

/** The standings of objects that a deletion may have removed. `unknown`: the deletion got no answer. */
const DELETED: ReadonlySet<Standing> = new Set(["succeeded", "alreadyDone", "unknown"]);
