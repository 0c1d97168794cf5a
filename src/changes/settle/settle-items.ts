import { isApiError, orError } from "../../api/errors.ts";
import { defined } from "../../platform/by-key.ts";
import { type OptionNames, optionNamesOnce } from "../../reads/option-lists.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import type { BulkResult } from "../../spec/records.ts";
import { itemReason, requestReason } from "../api-reasons.ts";
import { contextParts } from "../plan/context-changes.ts";
import {
  type Bound,
  bindingOf,
  type Create,
  isCreate,
  isDeletion,
  type OptionItem,
  type Settlement,
  type Step,
  type StepChange,
  type StepOf,
  targetOf,
  type UnexpectedCount,
  unchangedOption,
} from "../rows/entries.ts";
import { StepMaker, sentFields } from "../rows/steps.ts";
import { type ChangeDriver, type Consequences, type MadeStep, withInsideIds } from "./evidence.ts";

import { existingIds, type InDoubtNameConflict, mayWorkLater, reconcileCreates } from "./reconcile.ts";
import { isPartOfReversal, takeBack } from "./take-back.ts";

export interface Answered {
  readonly step: Step;
  readonly result: BulkResult;
}

const GONE = new Set(["TARGETING_NOT_FOUND", "TARGETING_CATEGORY_NOT_FOUND"]);
const NAME_TAKEN = new Set(["TARGETING_NAME_DUPLICATE", "TARGETING_CATEGORY_NAME_DUPLICATE"]);

/**
 * Records the service's answers about the items of one request. A refused item does not always fail: its own earlier
 * attempt may have taken its name; it may be split into smaller steps; another change of this run may free what it
 * needs. `wasFree`: the name of another item in the request was still free. The service creates all items of such a
 * request or none, so no earlier attempt has created any.
 */
export async function settleAnswers(
  driver: ChangeDriver,
  request: readonly Step[],
  answered: readonly Answered[],
  wasFree = false,
): Promise<void> {
  const changes: StepChange[] = [];
  const steps: Step[] = [];
  const settlements: Settlement[] = [];
  const met: InDoubtNameConflict[] = [];
  const made: MadeStep[] = [];
  const namesIn = optionNamesOnce(driver.api, driver.signal);
  const means = { maker: StepMaker.after(driver.state.steps), namesIn };
  const follow = (then: Consequences): void => {
    changes.push(...then.changes);
    steps.push(...(then.steps ?? []));
    settlements.push(...(then.settlements ?? []));
  };
  let madeNow = wasFree;
  for (const { step, result } of answered) {
    if (result.success) {
      const change = { ...doneChange(step, result), ...unexpectedCount(driver, step, result) };
      if (isCreate(step) && step.objects.length > 1) made.push({ step, change });
      else changes.push(change);
      madeNow ||= driver.state.isSuspect(step.id);
      continue;
    }
    const reason = withCallerPositions(
      driver,
      request,
      withSentFields(driver, step, itemReason(step.operation, result.error)),
    );
    const isInDoubt = isCreate(step) && driver.state.isSuspect(step.id);
    if (isInDoubt && NAME_TAKEN.has(reason.code) && existingIds(reason).length > 0) {
      met.push({ step, reason });
      continue;
    }
    const inDoubtName = isInDoubt ? await findInDoubtName(driver, step, reason, namesIn) : "free";
    if (inDoubtName === "free") follow(await afterRefusal(driver, step, reason, means));
    else if (inDoubtName !== "unreadable") met.push(inDoubtName);
    else {
      const inDoubt = ownReason("NO_ANSWER", { ...reason.detail, because: reason.code });
      changes.push({ step: step.id, to: "unknown", reason: inDoubt });
    }
  }
  for (const change of await reconcileCreates(driver, met, madeNow, namesIn)) {
    const step = driver.state.steps.at(change.step);
    const added = step && change.to === "unknown" ? addToExisting(driver, step, change.reason, means.maker) : undefined;
    if (added !== undefined) follow(added);
    else if (step !== undefined && change.to === "failed") {
      follow(await afterRefusal(driver, step, change.reason, means));
    } else if (step !== undefined && change.to === "done" && step.objects.length > 1) made.push({ step, change });
    else changes.push(change);
  }
  changes.push(...(await withInsideIds(driver, made)));
  driver.change(changes, { steps, settlements });
}

/** Returns whether a create was refused because its name is taken, perhaps by its own first attempt. */
export function isInDoubtNameConflict(driver: ChangeDriver, step: Step, { success, error }: BulkResult): boolean {
  return !success && isCreate(step) && driver.state.isSuspect(step.id) && NAME_TAKEN.has(error?.errorCode ?? "");
}

/**
 * Reads whether the name of a refused create exists, of which an earlier attempt got no answer. The service checks
 * names of targetings first: after a refusal for another reason, that name is free. For options, this proves nothing.
 */
async function findInDoubtName(
  driver: ChangeDriver,
  step: Create,
  reason: Reason,
  namesIn: OptionNames,
): Promise<InDoubtNameConflict | "free" | "unreadable"> {
  const targetingId = driver.state.boundId(step, "targeting");
  if (NAME_TAKEN.has(reason.code) || targetingId === undefined) return "free";
  try {
    const names = await namesIn(targetingId);
    const existing = names.get(step.item.name);
    return existing === undefined ? "free" : { step, reason: { ...reason, detail: { existingIds: [existing] } } };
  } catch (thrown) {
    if (isApiError(thrown) && thrown.effect === "rejected" && thrown.errorCode === "TARGETING_NOT_FOUND") return "free";
    if (isApiError(thrown) || driver.signal.aborted) return "unreadable";
    throw thrown;
  }
}

interface Means {
  readonly maker: StepMaker;
  readonly namesIn: OptionNames;
}

async function afterRefusal(driver: ChangeDriver, step: Step, reason: Reason, means: Means): Promise<Consequences> {
  const { maker } = means;
  const { state } = driver;
  const isReversal = step.undoes !== undefined || isPartOfReversal(step);
  if (GONE.has(reason.code) && ((isDeletion(step) && state.isSuspect(step.id)) || isReversal)) {
    return { changes: [{ step: step.id, to: "alreadyDone" }] };
  }
  if (isCreate(step) && NAME_TAKEN.has(reason.code) && driver.onExisting === "fail") {
    const then = await madeByRepeatedRun(driver, step, reason);
    if (then !== undefined) return then;
  }
  if (step.operation === "addOptions" && step.objects.length === 1 && NAME_TAKEN.has(reason.code)) {
    const then = existingOption(driver, step, reason, maker);
    if (then !== undefined) return then;
  }
  if (isCreate(step) && step.objects.length > 1) return unbundle(driver, step, reason, means);
  const parts = splitFurther(driver, step, reason, maker);
  if (parts !== undefined) return parts;
  if (mayWorkLater(state, step, reason)) return { changes: [{ step: step.id, to: "deferred", reason }] };
  return takeBack(driver, step, reason, maker) ?? { changes: [{ step: step.id, to: "failed", reason }] };
}

/** Ends a create as already done if the object with its name was created by the earlier run that this run repeats. */
async function madeByRepeatedRun(
  driver: ChangeDriver,
  step: Create,
  reason: Reason,
): Promise<Consequences | undefined> {
  const settlements: Settlement[] = [];
  for (const [at, object] of step.objects.entries()) {
    const made = await driver.madeBefore(object);
    const isHolder = at > 0 || existingIds(reason).includes(made?._id ?? "");
    if (made === undefined || !isHolder) return undefined;
    settlements.push({ object, outcome: "alreadyDone", ...defined({ _id: made._id }) });
  }
  return { changes: [{ step: step.id, to: "replaced" }], settlements };
}

/**
 * For `addContexts`: adds the Context IDs to the option that has the name, although this run itself may have created
 * it. The update counts as perhaps applied from the start. Otherwise, if the run stops before the update, it would
 * report the option as not applied.
 */
function addToExisting(driver: ChangeDriver, step: Step, reason: Reason, maker: StepMaker): Consequences | undefined {
  if (step.operation !== "addOptions" || step.objects.length > 1) return undefined;
  if (reason.code !== "OWNER_UNCLEAR" || driver.onExisting !== "addContexts") return undefined;
  const then = existingOption(driver, step, reason, maker);
  // Without an update, the create ends as `unknown`, because this run itself may have created the option.
  if (then?.steps === undefined) return undefined;
  return { ...then, changes: [...then.changes, ...then.steps.map(({ id }) => ({ step: id, to: "suspect" }) as const)] };
}

function doneChange(step: Step, { data = {} }: BulkResult): StepChange {
  const _id = typeof data?._id === "string" ? data._id : undefined;
  const children = data?.children;
  const isList = Array.isArray(children) && children.every((child) => typeof child === "string");
  const hasChildIds = step.operation === "addOptions" && step.objects.length > 1 && isList;
  return { step: step.id, to: "done", ...defined({ _id }), ...(hasChildIds && { childIds: children }) };
}

/**
 * Returns the expected number of Context IDs and the one in an answer, if they differ. Expected is the number that a
 * create sent or, after the last update of an option, the planned number.
 */
function unexpectedCount(
  { state }: ChangeDriver,
  step: Step,
  { data }: BulkResult,
): { readonly contextCount?: UnexpectedCount } {
  const found = data?.contextCount;
  const [object = -1] = step.objects;
  if (typeof found !== "number" || step.undoes !== undefined) return {};
  const isLast = step.operation === "updateOptions" && state.openSteps(object).every(({ id }) => id === step.id);
  const afterAll = isLast ? state.objects.at(object)?.contextCount : undefined;
  const expected = step.operation === "addOptions" ? (step.item.contexts ?? []).length : afterAll;
  return expected === undefined || expected === found ? {} : { contextCount: { expected, found } };
}

/**
 * Adds the sent fields, and the number of Context IDs or the kind of the option, to a reason whose code is ambiguous
 * (management-api 7.4, 8.1).
 */
function withSentFields({ state }: ChangeDriver, step: Step, reason: Reason): Reason {
  if (reason.code === "TARGETING_CONTEXT_LIMIT_EXCEEDED") {
    const [object = -1] = step.objects;
    const parts = [step, ...state.doneSteps(object), ...state.openSteps(object).filter(({ id }) => id !== step.id)];
    const given = parts.filter((part) => part.prepares === undefined && part.undoes === undefined);
    const contextIds = given.reduce((sum, { weight }) => sum + weight.contextIds, 0);
    return { ...reason, detail: { ...reason.detail, contextIds }, sent: sentFields(step) };
  }
  if (reason.code !== "TARGETING_CATEGORY_NOT_SUPPORTED") return reason;
  const { optionKind } = state.objects.at(step.objects[0] ?? -1) ?? {};
  return { ...reason, sent: [...sentFields(step), ...(optionKind === undefined ? [] : [optionKind])] };
}

/** Converts `duplicateOfIndex` from an index in the request to an index in the caller's items. */
function withCallerPositions(driver: ChangeDriver, request: readonly Step[], reason: Reason): Reason {
  const at = reason.detail?.duplicateOfIndex;
  const [first] = typeof at === "number" ? (request[at]?.objects ?? []) : [];
  const about = first === undefined ? undefined : driver.state.objects.at(first);
  if (about === undefined) return reason;
  const line = about.line === undefined ? {} : { duplicateOfLine: about.line };
  return { ...reason, detail: { ...reason.detail, duplicateOfIndex: about.index, ...line } };
}

const NO_GROWTH = { ids: 0, bytes: 0 };

/**
 * Splits a change of Context IDs further if one of its several parts was refused because of a limit (management-api
 * 8.1). The plan cannot avoid such refusals, because the service adds before it removes, and the total of the project
 * is unknown. At first, each part removes as many Context IDs as it adds. If such a part is refused, parts only remove
 * or only add. Returns undefined if splitting does not help, or if the change has only one part.
 */
function splitFurther(driver: ChangeDriver, step: Step, reason: Reason, maker: StepMaker): Consequences | undefined {
  const [object] = step.objects;
  const id = targetOf(step);
  const isLimit = reason.code === "TARGETING_CONTEXT_LIMIT_EXCEEDED" && step.operation === "updateOptions";
  if (!isLimit || object === undefined || id === undefined || step.undoes !== undefined || step.prepares) return;
  const later = driver.state.openSteps(object).filter((other) => other.id !== step.id && targetOf(other) === id);
  const own = contextsIn(step);
  const rest = later.map(contextsIn);
  const add = [own, ...rest].flatMap((each) => each.add);
  const remove = [own, ...rest].flatMap((each) => each.remove);
  const isPart = later.length > 0 || driver.state.doneSteps(object).length > 0;
  const grows = own.add.length > own.remove.length;
  const mayHelp = own.add.length > 0 && (grows ? remove.length > own.remove.length : own.remove.length > 0);
  if (!isPart || !mayHelp) return;
  const steps: Step[] = [];
  for (const contexts of contextParts({ add, remove }, { growth: NO_GROWTH, isPure: !grows })) {
    const after = steps.slice(-1).map((previous) => previous.id);
    steps.push(maker.updateOption({ id }, { contexts }, { objects: step.objects, after }));
  }
  return { changes: [step, ...later].map((old) => ({ step: old.id, to: "replaced" })), steps };
}

function contextsIn(step: Step): { readonly add: readonly string[]; readonly remove: readonly string[] } {
  const { add = [], remove = [] } = step.operation === "updateOptions" ? (step.item.contexts ?? {}) : {};
  return { add, remove };
}

/** Applies `onExisting` to an option that already exists. Returns undefined if the step must fail. */
export function existingOption(
  driver: ChangeDriver,
  step: StepOf<"addOptions">,
  reason: Reason,
  maker: StepMaker,
): Consequences | undefined {
  const [object] = step.objects;
  const [existing] = existingIds(reason);
  if (driver.onExisting === "fail" || object === undefined || existing === undefined) return undefined;
  const { contexts = [] } = step.item;
  const changes: readonly StepChange[] = [{ step: step.id, to: "replaced" }];
  if (driver.onExisting !== "addContexts" || contexts.length === 0) {
    return { changes, settlements: [unchangedOption(object, existing, driver.onExisting)] };
  }
  return {
    changes,
    steps: [maker.updateOption({ id: existing }, { contexts: { add: contexts } }, { objects: [object] })],
  };
}

type ChildItem = NonNullable<OptionItem["children"]>[number];

/** Codes of refusals that concern the group itself and not its sub-options. */
const ABOUT_THE_GROUP = new Set([
  "TARGETING_NOT_FOUND",
  "TARGETING_CATEGORY_NOT_FOUND",
  "TARGETING_COLLECTION_CONTEXT_DUPLICATED",
  "AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED",
]);

/** Splits a refused group or targeting into several steps, so that only its invalid parts fail. */
async function unbundle(driver: ChangeDriver, step: Create, reason: Reason, means: Means): Promise<Consequences> {
  const { maker } = means;
  if (step.operation === "createTargetings") return unbundleTargeting(step, reason, maker);
  const group = { item: step.item, step, object: step.objects[0] ?? 0 };
  if (reason.code === "TARGETING_CATEGORY_NAME_DUPLICATE") return nameTaken(driver, group, reason, means);
  if (ABOUT_THE_GROUP.has(reason.code)) return failed(step, reason);
  const children = group.item.children ?? [];
  const standsAlone = (group.item.contexts ?? []).length > 0;
  if (!standsAlone && children.length === 1) return failed(step, reason);
  return regroup(group, standsAlone ? [] : lightest(children), maker);
}

interface Group {
  readonly item: OptionItem;
  readonly step: Step;
  readonly object: number;
}

function failed(step: Step, reason: Reason): Consequences {
  return { changes: [{ step: step.id, to: "failed", reason }] };
}

/** Creates the targeting first, and then each option on its own, so that each option gets its own answer. */
function unbundleTargeting(step: StepOf<"createTargetings">, reason: Reason, maker: StepMaker): Consequences {
  const [object, ...inside] = step.objects;
  if (reason.code === "TARGETING_NAME_DUPLICATE" || object === undefined) return failed(step, reason);
  const { name, options = [] } = step.item;
  const steps: Step[] = [maker.createTargeting({ name }, { objects: [object] })];
  let taken = 0;
  for (const item of options) {
    const count = 1 + (item.children?.length ?? 0);
    const objects = inside.slice(taken, taken + count);
    taken += count;
    steps.push(maker.addOption(item, { targeting: { object } }, { objects }));
  }
  return { changes: [{ step: step.id, to: "replaced" }], steps };
}

async function nameTaken(driver: ChangeDriver, group: Group, reason: Reason, means: Means): Promise<Consequences> {
  const { maker, namesIn } = means;
  const targetingId = driver.state.boundId(group.step, "targeting");
  const names = targetingId === undefined ? undefined : await orError(isApiError, namesIn(targetingId));
  if (names instanceof Error) return unread(driver, group.step, requestReason(group.step.operation, names));
  const existing = names?.get(group.item.name);
  if (existing !== undefined) return groupExists(driver, group, existing, reason, maker);
  const children = group.item.children ?? [];
  const taken = children.filter((candidate) => names?.has(candidate.name));
  if (taken.length === 0) {
    // None of these names is taken exactly, but the service may ignore case. Creating the group with a single
    // sub-option shows which name is taken.
    return children.length < 2 ? failed(group.step, reason) : regroup(group, lightest(children), maker);
  }
  const settlements: Settlement[] = taken.map((candidate) => {
    const id = names?.get(candidate.name);
    const object = objectOf(group, candidate);
    if (driver.onExisting === "skip" && id !== undefined) return unchangedOption(object, id, "skip");
    return { object, outcome: "failed", reason: { ...reason, detail: { existingIds: [id] } } };
  });
  const free = children.filter((candidate) => !taken.includes(candidate));
  if (free.length === 0 && (group.item.contexts ?? []).length === 0) {
    settlements.push({ object: group.object, outcome: "failed", reason: ownReason("EMPTY_GROUP") });
    return { changes: [{ step: group.step.id, to: "replaced" }], settlements };
  }
  return { ...regroup(group, free, maker, taken), settlements };
}

/** Ends a step because the names that exist could not be read. A resumed run tries again. */
function unread(driver: ChangeDriver, step: Step, reason: Reason): Consequences {
  const to = driver.state.isSuspect(step.id) ? "unknown" : "notApplied";
  return { changes: [{ step: step.id, to, reason }] };
}

/**
 * Decides about a new group whose name is taken. With `onExisting: "fail"`, the group fails. Otherwise its sub-options
 * are added to the existing group and, with `addContexts`, its Context IDs.
 */
function groupExists(
  driver: ChangeDriver,
  group: Group,
  existing: string,
  reason: Reason,
  maker: StepMaker,
): Consequences {
  const { item, object, step } = group;
  if (driver.onExisting === "fail") {
    return failed(step, { ...reason, detail: { ...reason.detail, existingIds: [existing] } });
  }
  const contexts = driver.onExisting === "addContexts" ? (item.contexts ?? []) : [];
  const steps: Step[] = (item.children ?? []).map((candidate) => addChild(group, candidate, { id: existing }, maker));
  if (contexts.length > 0) {
    steps.push(maker.updateOption({ id: existing }, { contexts: { add: contexts } }, { objects: [object] }));
    return { changes: [{ step: step.id, to: "replaced" }], steps };
  }
  const settlements = [unchangedOption(object, existing, driver.onExisting)];
  return { changes: [{ step: step.id, to: "replaced" }], steps, settlements };
}

/** Creates a group with the sub-options `inside`. The others become steps of their own, except those in `settled`. */
function regroup(
  group: Group,
  inside: readonly ChildItem[],
  maker: StepMaker,
  settled: readonly ChildItem[] = [],
): Consequences {
  const { children = [], ...bare } = group.item;
  const targeting = bindingOf(group.step, "targeting") ?? {};
  const objects = [group.object, ...inside.map((candidate) => objectOf(group, candidate))];
  const item: OptionItem = inside.length > 0 ? { ...bare, children: [...inside] } : { ...bare, type: "collection" };
  const steps: Step[] = [maker.addOption(item, { targeting }, { objects })];
  for (const candidate of children) {
    if (inside.includes(candidate) || settled.includes(candidate)) continue;
    steps.push(addChild(group, candidate, { object: group.object }, maker));
  }
  return { changes: [{ step: group.step.id, to: "replaced" }], steps };
}

function addChild(group: Group, candidate: ChildItem, parent: Bound, maker: StepMaker): Step {
  const place = { targeting: bindingOf(group.step, "targeting") ?? {}, parent };
  return maker.addOption(candidate, place, { objects: [objectOf(group, candidate)] });
}

function objectOf(group: Group, candidate: ChildItem): number {
  const position = (group.item.children ?? []).indexOf(candidate);
  return group.step.objects[position + 1] ?? group.object;
}

function lightest(children: readonly ChildItem[]): readonly ChildItem[] {
  return children.toSorted((a, b) => (a.contexts?.length ?? 0) - (b.contexts?.length ?? 0)).slice(0, 1);
}
