import type { RejectedError } from "../../api/errors.ts";
import type { ManagementApi } from "../../api/management.ts";
import { addTo } from "../../platform/grouping.ts";
import { findOptions, isMissing, mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { isLeftEmpty } from "../../reads/option-scan.ts";
import type { TargetingMemory } from "../../runs/backend.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionChanges, OptionRecord } from "../../spec/records.ts";
import { bindingOf, type Settlement, type Step, type StepOf, targetOf } from "../rows/entries.ts";
import { sentFields } from "../rows/steps.ts";
import { requestReason } from "../state/api-reasons.ts";
import type { Plan } from "./plan.ts";

interface PredictionContext {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
  /** The only targeting names that are known, because the service cannot list targetings. */
  readonly memory: Pick<TargetingMemory, "recent">;
  /** Returns the object that the previous run of the same call created. */
  readonly madeBefore: (object: number) => { readonly _id: string | undefined } | undefined;
}

/**
 * Predicts the failures of a plan that reading can find: taken names, missing objects, parents that are not groups,
 * emptied groups, and exceeded limits. Objects of the previous run of the same call are already done. Throws the
 * ApiError of a failed read.
 */
export async function preflight({ steps, losses }: Plan, context: PredictionContext): Promise<readonly Settlement[]> {
  const { api, signal } = context;
  const reader = contentsReader(api, signal);
  const adds = new Map<string, StepOf<"addOptions">[]>();
  const updates: Step[] = [];
  const targetings: StepOf<"createTargetings" | "renameTargetings">[] = [];
  const lastOf = new Map(losses.flatMap(({ _id, lastOf }) => (lastOf === undefined ? [] : [[_id, lastOf.name]])));
  const found: Settlement[] = [];
  for (let id = 0; id < steps.length; id += 1) {
    const step = steps.at(id);
    if (step?.operation === "addOptions") {
      const place = bindingOf(step, "targeting")?.id;
      if (place !== undefined) addTo(adds, place, step);
    } else if (step?.operation === "updateOptions") updates.push(step);
    else if (step?.operation === "createTargetings" || step?.operation === "renameTargetings") targetings.push(step);
    else if (step?.operation === "deleteOptions") {
      const group = lastOf.get(targetOf(step) ?? "");
      if (group !== undefined) found.push(...failedStep(step, leavesEmpty(step, group)));
    }
  }
  for (const [targetingId, some] of adds) found.push(...(await predictAddFailures(targetingId, some, reader, context)));
  found.push(...(await predictUpdateFailures(updates, reader, context)));
  found.push(...(await predictNameFailures(targetings, context)));
  return found;
}

async function predictAddFailures(
  targetingId: string,
  steps: readonly StepOf<"addOptions">[],
  reader: ContentsReader,
  context: Pick<PredictionContext, "madeBefore">,
): Promise<readonly Settlement[]> {
  const held = await reader(targetingId);
  if (held instanceof Error) {
    const reason = requestReason("addOptions", held);
    return steps.flatMap(({ objects }) => objects.map((object) => failed(object, reason)));
  }
  const settlements: Settlement[] = [];
  const room = {
    options: LIMITS.targetingOptions.value - held.options.size,
    contextIds: LIMITS.projectContextIds.value - held.contextIds,
  };
  for (const step of steps) {
    const existing = held.names.get(step.item.name) ?? [];
    settlements.push(...(madeSettlements(step, existing, context) ?? predictAddFailure(step, targetingId, held, room)));
  }
  return settlements;
}

function predictAddFailure(
  step: StepOf<"addOptions">,
  targetingId: string,
  held: TargetingContents,
  room: { options: number; contextIds: number },
): readonly Settlement[] {
  const { item } = step;
  const [, ...inside] = step.objects;
  const parent = bindingOf(step, "parent")?.id;
  const reason =
    (parent === undefined ? undefined : badParent(step, held, parent)) ??
    takenBy(step, held, item.name) ??
    overLimit(step, targetingId, held, room);
  if (reason !== undefined) {
    return failedWithInside(step, reason);
  }
  room.options -= step.weight.options;
  room.contextIds -= step.weight.contextIds;
  return (item.children ?? []).flatMap(({ name }, position) => {
    const taken = takenBy(step, held, name);
    const object = inside[position];
    return taken === undefined || object === undefined ? [] : [failed(object, taken)];
  });
}

/** Returns the outcomes of a create whose name belongs to an object of the previous run of the same call. */
function madeSettlements(
  { objects }: Step,
  existing: readonly string[],
  { madeBefore }: Pick<PredictionContext, "madeBefore">,
): readonly Settlement[] | undefined {
  const made = objects.flatMap((object): Settlement[] => {
    const _id = madeBefore(object)?._id;
    return _id === undefined ? [] : [{ object, outcome: "alreadyDone", _id }];
  });
  return made.length === objects.length && existing.includes(made[0]?._id ?? "") ? made : undefined;
}

function takenBy(step: Step, { names }: TargetingContents, name: string): Reason | undefined {
  const existingIds = names.get(name);
  return existingIds && refusal(step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds });
}

/** Returns why a step exceeds a limit. The project holds at least the Context IDs of this targeting. */
function overLimit(
  step: Step,
  targeting: string,
  held: TargetingContents,
  room: { readonly options: number; readonly contextIds: number },
): Reason | undefined {
  if (step.weight.options > room.options) {
    const limit = LIMITS.targetingOptions.value;
    return refusal(step, "TARGETING_CATEGORY_LIMIT_EXCEEDED", { targeting, limit, there: held.options.size });
  }
  if (step.weight.contextIds > room.contextIds) {
    const limit = LIMITS.projectContextIds.value;
    return refusal(step, "TARGETING_CONTEXT_LIMIT_EXCEEDED", { limit, there: held.contextIds });
  }
  return undefined;
}

/** Predicts name conflicts with targetings that were seen before. */
async function predictNameFailures(
  steps: readonly StepOf<"createTargetings" | "renameTargetings">[],
  context: PredictionContext,
): Promise<readonly Settlement[]> {
  const { api, signal, memory } = context;
  if (steps.length === 0) return [];
  const seen = await memory.recent();
  const nameOf = async (id: string): Promise<string | Reason> => {
    try {
      return (await api.getTargeting(id, { signal })).name;
    } catch (thrown) {
      if (isMissing(thrown)) return requestReason("renameTargetings", thrown);
      throw thrown;
    }
  };
  const renamed = new Set(steps.flatMap((step) => targetOf(step) ?? []));
  const settled = await mapConcurrently(steps, async (step): Promise<readonly Settlement[] | undefined> => {
    const id = targetOf(step);
    const own = id === undefined ? undefined : await nameOf(id);
    if (typeof own === "object") return failedStep(step, own);
    const { name } = step.item;
    for (const other of seen) {
      if (other.name !== name || other._id === id || renamed.has(other._id)) continue;
      if ((await nameOf(other._id)) !== name) continue;
      const reason = refusal(step, "TARGETING_NAME_DUPLICATE", { existingId: other._id });
      return step.operation === "renameTargetings"
        ? failedStep(step, reason)
        : (madeSettlements(step, [other._id], context) ?? failedWithInside(step, reason));
    }
    return undefined;
  });
  return settled.flat();
}

function failed(object: number, reason: Reason): Settlement {
  return { object, outcome: "failed", reason };
}

function failedStep({ objects }: Step, reason: Reason): readonly Settlement[] {
  return objects.map((object) => failed(object, reason));
}

/** The objects inside a new object that fails are not applied. */
function failedWithInside({ objects: [main = -1, ...inside] }: Step, reason: Reason): readonly Settlement[] {
  const needsMain = ownReason("NEEDS_FAILED", { needs: main });
  return [
    failed(main, reason),
    ...inside.map((object) => ({ object, outcome: "notApplied" as const, reason: needsMain })),
  ];
}

interface Update {
  readonly step: Step;
  readonly option: OptionRecord;
  readonly wanted: OptionChanges;
}

async function predictUpdateFailures(
  steps: readonly Step[],
  reader: ContentsReader,
  context: Pick<PredictionContext, "api" | "signal">,
): Promise<readonly Settlement[]> {
  const ids = [...new Set(steps.flatMap((step) => targetOf(step) ?? []))];
  const { found, missing } = await findOptions(context.api, ids, context.signal);
  const updates = steps.flatMap((step): Update[] => {
    const option = found.get(targetOf(step) ?? "");
    if (option === undefined || step.operation !== "updateOptions") return [];
    return [{ step, option, wanted: step.item }];
  });
  const renamed = new Set(updates.flatMap(({ option, wanted }) => (renames(option, wanted.name) ? [option._id] : [])));
  const emptying = await lastMoves(updates, reader);
  const refused = await mapConcurrently(updates, async (update) => {
    const reason =
      emptying.get(update) ??
      (await badChange(update, renamed, reader)) ??
      (update.step.after ? undefined : await tooMany(update, context));
    return reason && { step: update.step, reason };
  });
  const gone = steps.flatMap((step) => {
    const error = missing.get(targetOf(step) ?? "");
    return error === undefined ? [] : [{ step, reason: requestReason("updateOptions", error) }];
  });
  return [...gone, ...refused].flatMap(({ step, reason }) => failedStep(step, reason));
}

/** Returns the moves that would leave a group empty. A group that also gets sub-options is not checked. */
async function lastMoves(updates: readonly Update[], reader: ContentsReader): Promise<ReadonlyMap<Update, Reason>> {
  const leaving = new Map<string, Update[]>();
  for (const update of updates) {
    const { option, wanted } = update;
    if (typeof option.parent !== "string" || wanted.parent === undefined || wanted.parent === option.parent) continue;
    addTo(leaving, option.parent, update);
  }
  const reasons = new Map<Update, Reason>();
  for (const [group, some] of leaving) {
    const last = some.at(-1);
    if (last?.option.targeting === undefined || updates.some(({ wanted }) => wanted.parent === group)) continue;
    const held = await reader(last.option.targeting);
    const left = held instanceof Error ? undefined : held.options.get(group);
    if (left !== undefined && isLeftEmpty(left, some.length)) reasons.set(last, leavesEmpty(last.step, left.name));
  }
  return reasons;
}

function leavesEmpty(step: Step, group: string): Reason {
  return refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED", { group });
}

function renames(option: OptionRecord, name: string | undefined): boolean {
  return name !== undefined && name !== option.name;
}

/**
 * Returns why the service would refuse a change: a taken name, a parent that is no group, or the wrong type
 * (management-api 7.4).
 */
async function badChange(
  { step, option, wanted }: Update,
  renamed: ReadonlySet<string>,
  reader: ContentsReader,
): Promise<Reason | undefined> {
  const isGroup = option.type === "collection";
  const unfit = refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED");
  if (wanted.exposeChildren !== undefined && option.type === "atomic") return unfit;
  if (wanted.parent !== undefined && isGroup) return unfit;
  const asks = typeof wanted.parent === "string" || renames(option, wanted.name);
  const held = asks && option.targeting !== undefined ? await reader(option.targeting) : undefined;
  if (held === undefined || held instanceof Error) return undefined;
  const misplaced = typeof wanted.parent === "string" ? badParent(step, held, wanted.parent) : undefined;
  if (misplaced !== undefined || wanted.name === undefined || !renames(option, wanted.name)) return misplaced;
  const existingIds = (held.names.get(wanted.name) ?? []).filter((id) => id !== option._id && !renamed.has(id));
  return existingIds.length > 0 ? refusal(step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds }) : undefined;
}

/** Returns why an option would hold too many Context IDs. It is read only if it is close to the limit. */
async function tooMany(
  { step, option, wanted }: Update,
  { api, signal }: Pick<PredictionContext, "api" | "signal">,
): Promise<Reason | undefined> {
  const add = wanted.contexts?.add ?? [];
  const limit = LIMITS.optionContextIds.value;
  if (add.length === 0 || (option.contextCount ?? limit) + add.length <= limit) return undefined;
  const { contexts } = await readOptionContents(api, option._id, signal);
  if (new Set([...contexts, ...add]).size <= limit) return undefined;
  return refusal(step, "TARGETING_CONTEXT_LIMIT_EXCEEDED", { limit, there: contexts.length });
}

interface TargetingContents {
  readonly options: ReadonlyMap<string, OptionRecord>;
  /** IDs by name. */
  readonly names: ReadonlyMap<string, readonly string[]>;
  readonly contextIds: number;
}

/** Reads each targeting once. Returns the error of the service if it does not exist. */
type ContentsReader = (targetingId: string) => Promise<TargetingContents | RejectedError>;

function contentsReader(api: ManagementApi, signal: AbortSignal): ContentsReader {
  const known = new Map<string, Promise<TargetingContents | RejectedError>>();
  return (targetingId) => {
    const held = known.get(targetingId) ?? readTargetingContents(api, targetingId, signal);
    known.set(targetingId, held);
    return held;
  };
}

async function readTargetingContents(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
): Promise<TargetingContents | RejectedError> {
  const options = new Map<string, OptionRecord>();
  const names = new Map<string, string[]>();
  let contextIds = 0;
  try {
    for await (const option of readOptions(api, targetingId, signal)) {
      options.set(option._id, option);
      addTo(names, option.name, option._id);
      contextIds += option.contextCount ?? 0;
    }
  } catch (thrown) {
    if (isMissing(thrown)) return thrown;
    throw thrown;
  }
  return { options, names, contextIds };
}

/** Returns the reason that the service would give for a refused step. */
function refusal(step: Step, code: ErrorCode, detail?: Readonly<Record<string, unknown>>): Reason {
  const { statusCode } = ERROR_CODES[code];
  const sent = code === "TARGETING_CATEGORY_NOT_SUPPORTED" ? { sent: sentFields(step) } : {};
  return { code, statusCode, operation: step.operation, ...(detail && { detail }), ...sent };
}

/** Returns why an option cannot be a `parent` (management-api 7.4, case 4). */
function badParent(step: Step, { options }: TargetingContents, parent: string): Reason | undefined {
  const group = options.get(parent);
  if (group === undefined) return refusal(step, "TARGETING_CATEGORY_NOT_FOUND");
  const isTopLevelGroup = group.type === "collection" && typeof group.parent !== "string";
  return isTopLevelGroup ? undefined : refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED");
}
