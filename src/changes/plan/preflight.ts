import { orError, type RejectedError } from "../../api/errors.ts";
import type { Reading } from "../../api/management.ts";
import { addTo } from "../../platform/by-key.ts";
import { findOptions, isMissing, mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { isLeftEmpty, readOptions } from "../../reads/option-lists.ts";
import type { TargetingMemory } from "../../runs/backend.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { ERROR_CODES, type ErrorCode } from "../../spec/error-codes.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionRecord } from "../../spec/records.ts";
import { requestReason } from "../api-reasons.ts";
import { bindingOf, type Settlement, type Step, type StepOf, targetOf } from "../rows/entries.ts";
import { sentFields } from "../rows/steps.ts";
import type { Plan } from "./plan.ts";

interface PredictionContext extends Reading {
  /** Targetings that this server remembers. The service cannot list any, so other conflicts of names are not found. */
  readonly memory: Pick<TargetingMemory, "recent">;
  readonly madeBefore: (object: number) => { readonly _id: string | undefined } | undefined;
}

interface Prediction extends PredictionContext {
  /** Returns the contents of a targeting, which are read once, or the service's error if it does not exist. */
  readonly contentsOf: (targetingId: string) => Promise<TargetingContents | RejectedError>;
}

type Predicted = readonly Settlement[];
type NamingStep = StepOf<"createTargetings" | "renameTargetings">;

/**
 * Predicts the failures that reads can show: taken names, missing objects, parents that are no groups, groups that
 * would be empty, and exceeded limits. Objects that the previous run of an identical call created get the outcome
 * `alreadyDone`. Throws the ApiError of a failed read.
 */
export async function preflight({ steps, losses }: Plan, given: PredictionContext): Promise<Predicted> {
  const read = new Map<string, Promise<TargetingContents | RejectedError>>();
  const contentsOf = (targetingId: string): Promise<TargetingContents | RejectedError> => {
    const contents = read.get(targetingId) ?? orError(isMissing, readTargetingContents(targetingId, given));
    read.set(targetingId, contents);
    return contents;
  };
  const context = { ...given, contentsOf };
  const updates: StepOf<"updateOptions">[] = [];
  const targetings: NamingStep[] = [];
  const lastOf = new Map(losses.flatMap(({ _id, lastOf }) => (lastOf === undefined ? [] : [[_id, lastOf.name]])));
  const found: Settlement[] = [];
  for (let id = 0; id < steps.length; id += 1) {
    const step = steps.at(id);
    if (step?.operation === "addOptions") found.push(...(await predictAdd(step, context)));
    else if (step?.operation === "updateOptions") updates.push(step);
    else if (step?.operation === "createTargetings" || step?.operation === "renameTargetings") targetings.push(step);
    else if (step?.operation === "deleteOptions") {
      const group = lastOf.get(targetOf(step) ?? "");
      if (group !== undefined) found.push(...failedStep(step, leavesEmpty(step, group)));
    }
  }
  return [...found, ...(await predictUpdates(updates, context)), ...(await predictNames(targetings, context))];
}

async function predictAdd(step: StepOf<"addOptions">, context: Prediction): Promise<Predicted> {
  const targeting = bindingOf(step, "targeting")?.id;
  if (targeting === undefined) return [];
  const held = await context.contentsOf(targeting);
  if (held instanceof Error) return failedStep(step, requestReason("addOptions", held));
  const { item, weight } = step;
  const made = madeSettlements(step, held.names.get(item.name) ?? [], context);
  if (made !== undefined) return made;
  const parent = bindingOf(step, "parent")?.id;
  const reason =
    (parent === undefined ? undefined : badParent(step, held, parent)) ??
    takenBy(step, held, item.name) ??
    overLimit(step, targeting, held);
  if (reason !== undefined) return failedWithInside(step, reason);
  held.room.options -= weight.options;
  held.room.contextIds -= weight.contextIds;
  const children = item.children ?? [];
  const refused = children.flatMap(({ name }, position) => {
    const taken = takenBy(step, held, name);
    const object = step.objects[position + 1];
    return taken === undefined || object === undefined ? [] : [failed(object, taken)];
  });
  // The service refuses a new group that would have neither sub-options nor Context IDs.
  const isEmptied = refused.length > 0 && refused.length === children.length && (item.contexts ?? []).length === 0;
  const [group] = step.objects;
  return isEmptied && group !== undefined ? [failed(group, ownReason("EMPTY_GROUP")), ...refused] : refused;
}

/** Marks a create as `alreadyDone` if the object with its name was created by the previous run of an identical call. */
function madeSettlements(
  { objects }: Step,
  existing: readonly string[],
  { madeBefore }: Prediction,
): Predicted | undefined {
  const made = objects.flatMap((object): Predicted => {
    const _id = madeBefore(object)?._id;
    return _id === undefined ? [] : [{ object, outcome: "alreadyDone", _id }];
  });
  return made.length === objects.length && existing.includes(made[0]?._id ?? "") ? made : undefined;
}

function takenBy(step: Step, { names }: TargetingContents, name: string): Reason | undefined {
  const existingIds = names.get(name);
  return existingIds && refusal(step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds });
}

/** Returns a reason if a step would exceed a limit. Context IDs of the project's other targetings are not counted. */
function overLimit(step: Step, targeting: string, { options, contextIds, room }: TargetingContents) {
  if (step.weight.options > room.options) {
    const limit = LIMITS.targetingOptions.value;
    return refusal(step, "TARGETING_CATEGORY_LIMIT_EXCEEDED", { targeting, limit, there: options.size });
  }
  if (step.weight.contextIds <= room.contextIds) return undefined;
  const limit = LIMITS.projectContextIds.value;
  return refusal(step, "TARGETING_CONTEXT_LIMIT_EXCEEDED", { limit, there: contextIds });
}

async function predictNames(steps: readonly NamingStep[], context: Prediction): Promise<Predicted> {
  const { api, signal, memory } = context;
  if (steps.length === 0) return [];
  const seen = await memory.recent();
  const nameOf = async (id: string): Promise<string | Reason> => {
    const there = await orError(isMissing, api.getTargeting(id, { signal }));
    return there instanceof Error ? requestReason("renameTargetings", there) : there.name;
  };
  const renamed = new Set(steps.flatMap((step) => targetOf(step) ?? []));
  const settled = await mapConcurrently(steps, async (step): Promise<Predicted | undefined> => {
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

function failedStep({ objects }: Step, reason: Reason): Predicted {
  return objects.map((object) => failed(object, reason));
}

/** Returns the outcomes if the main object of a step fails. The objects inside it are then not applied. */
function failedWithInside({ objects: [main = -1, ...inside] }: Step, reason: Reason): Predicted {
  const needsMain = ownReason("NEEDS_FAILED", { needs: main });
  return [
    failed(main, reason),
    ...inside.map((object) => ({ object, outcome: "notApplied" as const, reason: needsMain })),
  ];
}

interface Update {
  readonly step: StepOf<"updateOptions">;
  readonly option: OptionRecord;
}

async function predictUpdates(steps: readonly StepOf<"updateOptions">[], context: Prediction): Promise<Predicted> {
  const ids = [...new Set(steps.flatMap((step) => targetOf(step) ?? []))];
  const { found, missing } = await findOptions(context.api, ids, context.signal);
  const updates = steps.flatMap((step): Update[] => {
    const option = found.get(targetOf(step) ?? "");
    return option === undefined ? [] : [{ step, option }];
  });
  const renamed = new Set(updates.filter(isRename).map(({ option }) => option._id));
  const emptying = await lastMoves(updates, context);
  const refused = await mapConcurrently(updates, async (update): Promise<Refused | undefined> => {
    const reason =
      emptying.get(update) ??
      (await badChange(update, renamed, context)) ??
      (update.step.after ? undefined : await tooMany(update, context));
    return reason && { ...update, reason };
  });
  const gone = steps.flatMap((step) => {
    const error = missing.get(targetOf(step) ?? "");
    return error === undefined ? [] : [{ step, reason: requestReason("updateOptions", error) }];
  });
  return [...gone, ...withNotFreed(refused, updates)].flatMap(({ step, reason }) => failedStep(step, reason));
}

interface Refused extends Update {
  readonly reason: Reason;
}

/** Adds the renames to names that stay taken, because the options with these names would keep them. */
function withNotFreed(refused: readonly Refused[], updates: readonly Update[]): readonly Refused[] {
  const all = [...refused];
  const failing = new Set(refused.map(({ step }) => step));
  const keyOf = ({ targeting }: OptionRecord, name = "") => `${targeting} ${name}`;
  const renames = new Map(updates.filter(isRename).map((to) => [keyOf(to.option, to.step.item.name), to]));
  // The loop also visits the elements that it adds.
  for (const update of all) {
    const { option } = update;
    const next = isRename(update) ? renames.get(keyOf(option, option.name)) : undefined;
    if (next === undefined || failing.has(next.step)) continue;
    failing.add(next.step);
    const reason = refusal(next.step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds: [option._id] });
    all.push({ ...next, reason });
  }
  return all;
}

/** Returns the moves that would empty a group. A group that also gets sub-options in this call is not checked. */
async function lastMoves(updates: readonly Update[], { contentsOf }: Prediction): Promise<ReadonlyMap<Update, Reason>> {
  const leaving = new Map<string, Update[]>();
  for (const update of updates) {
    const from = update.option.parent;
    const to = update.step.item.parent;
    if (typeof from === "string" && to !== undefined && to !== from) addTo(leaving, from, update);
  }
  const reasons = new Map<Update, Reason>();
  for (const [group, some] of leaving) {
    const last = some.at(-1);
    if (last?.option.targeting === undefined || updates.some(({ step }) => step.item.parent === group)) continue;
    const held = await contentsOf(last.option.targeting);
    const left = held instanceof Error ? undefined : held.options.get(group);
    if (left !== undefined && isLeftEmpty(left, some.length)) reasons.set(last, leavesEmpty(last.step, left.name));
  }
  return reasons;
}

function leavesEmpty(step: Step, group: string): Reason {
  return refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED", { group });
}

function isRename({ step: { item }, option }: Update): boolean {
  return item.name !== undefined && item.name !== option.name;
}

/** Returns a reason if the service would refuse an option's name, parent or `exposeChildren` (management-api 7.2). */
async function badChange(
  update: Update,
  renamed: ReadonlySet<string>,
  { contentsOf }: Prediction,
): Promise<Reason | undefined> {
  const { step, option } = update;
  const { name, parent, exposeChildren } = step.item;
  const unfit = (kind: string) => refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED", undefined, [kind]);
  if (exposeChildren !== undefined && option.type === "atomic") return unfit("topLevel");
  if (parent !== undefined && option.type === "collection") return unfit("group");
  const asks = typeof parent === "string" || isRename(update);
  const held = asks && option.targeting !== undefined ? await contentsOf(option.targeting) : undefined;
  if (held === undefined || held instanceof Error) return undefined;
  const misplaced = typeof parent === "string" ? badParent(step, held, parent) : undefined;
  if (misplaced !== undefined || name === undefined || !isRename(update)) return misplaced;
  const existingIds = (held.names.get(name) ?? []).filter((id) => id !== option._id && !renamed.has(id));
  return existingIds.length > 0 ? refusal(step, "TARGETING_CATEGORY_NAME_DUPLICATE", { existingIds }) : undefined;
}

/** Returns a reason if an option would have too many Context IDs. Only options near the limit are read. */
async function tooMany({ step, option }: Update, { api, signal }: Prediction): Promise<Reason | undefined> {
  const add = step.item.contexts?.add ?? [];
  const limit = LIMITS.optionContextIds.value;
  if (add.length === 0 || (option.contextCount ?? limit) + add.length <= limit) return undefined;
  const { contexts } = await readOptionContents(api, option._id, signal);
  if (new Set([...contexts, ...add]).size <= limit) return undefined;
  return refusal(step, "TARGETING_CONTEXT_LIMIT_EXCEEDED", { limit, there: contexts.length });
}

type TargetingContents = Awaited<ReturnType<typeof readTargetingContents>>;

async function readTargetingContents(id: string, { api, signal }: PredictionContext) {
  const options = new Map<string, OptionRecord>();
  const names = new Map<string, string[]>();
  let contextIds = 0;
  for await (const option of readOptions(api, id, signal)) {
    options.set(option._id, option);
    addTo(names, option.name, option._id);
    contextIds += option.contextCount ?? 0;
  }
  // How many more fit, after the creates of this plan that were checked before.
  const room = {
    options: LIMITS.targetingOptions.value - options.size,
    contextIds: LIMITS.projectContextIds.value - contextIds,
  };
  return { options, names, contextIds, room };
}

/**
 * Returns the reason with which the service would refuse a step. If its error code can have several causes, the reason
 * also contains the names of the sent fields and `facts`, such as the kind of the option.
 */
function refusal(
  step: Step,
  code: ErrorCode,
  detail?: Readonly<Record<string, unknown>>,
  facts: readonly string[] = [],
): Reason {
  const { statusCode } = ERROR_CODES[code];
  const isAmbiguous = code === "TARGETING_CATEGORY_NOT_SUPPORTED" || facts.length > 0;
  const sent = isAmbiguous ? { sent: [...sentFields(step), ...facts] } : {};
  return { code, statusCode, operation: step.operation, ...(detail && { detail }), ...sent };
}

/** Returns a reason if an option cannot be a `parent` (management-api 7.4, case 4). */
function badParent(step: Step, { options }: TargetingContents, parent: string): Reason | undefined {
  const group = options.get(parent);
  if (group === undefined) return refusal(step, "TARGETING_CATEGORY_NOT_FOUND", undefined, ["noGroup"]);
  const isTopLevelGroup = group.type === "collection" && typeof group.parent !== "string";
  return isTopLevelGroup ? undefined : refusal(step, "TARGETING_CATEGORY_NOT_SUPPORTED", undefined, ["topLevel"]);
}
