import { isApiError } from "../../api/errors.ts";
import type { OptionNames } from "../../reading/option-lists.ts";
import type { Reason } from "../../runs/outcome.ts";
import { ownReason } from "../../runs/reasons.ts";
import type { Binding, OptionItem, Settlement, Step, StepOf } from "../rows/entries.ts";
import { leftAsItIs } from "../rows/existing.ts";
import type { StepMaker } from "../rows/step-maker.ts";
import { requestReason } from "../state/api-reasons.ts";
import type { ChangeDriver, Consequences } from "./change-driver.ts";

type ChildItem = NonNullable<OptionItem["children"]>[number];

/** Refusals that are about a targeting itself, whatever options it is to hold. */
const ABOUT_THE_TARGETING = new Set(["TARGETING_NAME_DUPLICATE"]);

/** Refusals that are about a group itself, whatever sub-options it is to hold. */
const ABOUT_THE_GROUP = new Set([
  "TARGETING_NOT_FOUND",
  "TARGETING_CATEGORY_NOT_FOUND",
  "TARGETING_COLLECTION_CONTEXT_DUPLICATED",
  "AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED",
]);

/** What is needed to make further steps. */
interface Means {
  readonly maker: StepMaker;
  readonly namesIn: OptionNames;
}

/**
 * A group or targeting was refused together with its contents: finds the part at fault, so that a bad sub-option or
 * option fails alone and the rest is created.
 */
export async function unbundle(
  driver: ChangeDriver,
  step: StepOf<"createTargetings" | "addOptions">,
  reason: Reason,
  means: Means,
): Promise<Consequences> {
  const { maker } = means;
  if (step.operation === "createTargetings") return unbundleTargeting(step, reason, maker);
  const group = { item: step.item, step, object: step.objects[0] ?? 0 };
  if (reason.code === "TARGETING_CATEGORY_NAME_DUPLICATE") return nameTaken(driver, group, reason, means);
  if (ABOUT_THE_GROUP.has(reason.code)) return failed(step, reason);
  const children = group.item.children ?? [];
  const standsAlone = (group.item.contexts ?? []).length > 0;
  if (!standsAlone && children.length === 1) return failed(step, reason);
  const seed = standsAlone ? undefined : lightest(children);
  return regroup(group, seed === undefined ? [] : [seed], maker);
}

interface Group {
  readonly item: OptionItem;
  readonly step: Step;
  readonly object: number;
}

function failed(step: Step, reason: Reason): Consequences {
  return { changes: [{ step: step.id, to: "failed", reason }] };
}

/** The bare targeting first, then its options, where each has an answer of its own. */
function unbundleTargeting(step: StepOf<"createTargetings">, reason: Reason, maker: StepMaker): Consequences {
  const [object, ...inside] = step.objects;
  if (ABOUT_THE_TARGETING.has(reason.code) || object === undefined) return failed(step, reason);
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

/** A name in the group's item is taken: the group's own, or those of some sub-options. */
async function nameTaken(
  driver: ChangeDriver,
  group: Group,
  reason: Reason,
  { maker, namesIn }: Means,
): Promise<Consequences> {
  const place = group.step.bindings.find(({ field }) => field === "targeting");
  const targetingId = place === undefined ? undefined : driver.state.boundId(place);
  const names = targetingId === undefined ? undefined : await namesOrReason(namesIn, group.step, targetingId);
  if (names !== undefined && "code" in names) return unread(driver, group.step, names);
  const existing = names?.get(group.item.name);
  if (existing !== undefined) return groupExists(driver, group, existing, reason, maker);
  const children = group.item.children ?? [];
  const taken = children.filter((candidate) => names?.has(candidate.name));
  if (taken.length === 0)
    return regroup(
      group,
      [lightest(children)].flatMap((seed) => seed ?? []),
      maker,
    );
  const settlements: Settlement[] = taken.map((candidate) => {
    const id = names?.get(candidate.name);
    const object = objectOf(group, candidate);
    if (driver.onExisting === "skip" && id !== undefined) return leftAsItIs(object, id, "skip");
    return { object, outcome: "failed", reason: { ...reason, detail: { existingIds: [id] } } };
  });
  const free = children.filter((candidate) => !taken.includes(candidate));
  if (free.length === 0 && (group.item.contexts ?? []).length === 0) {
    settlements.push({ object: group.object, outcome: "failed", reason: ownReason("EMPTY_GROUP") });
    return { changes: [{ step: group.step.id, to: "replaced" }], settlements };
  }
  return { ...regroup(group, free, maker, taken), settlements };
}

async function namesOrReason(
  namesIn: OptionNames,
  { operation }: Step,
  targetingId: string,
): Promise<ReadonlyMap<string, string> | Reason> {
  try {
    return await namesIn(targetingId);
  } catch (thrown) {
    if (isApiError(thrown)) return requestReason(operation, thrown);
    throw thrown;
  }
}

/** Without the names the part at fault cannot be found: the group is left for a resumed run. */
function unread(driver: ChangeDriver, step: Step, reason: Reason): Consequences {
  const to = driver.state.suspectSince(step.id) === undefined ? "notApplied" : "unknown";
  return { changes: [{ step: step.id, to, reason }] };
}

/** The group is there already: `onExisting` decides, and its sub-options are added to the existing one. */
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
  const settlements = [leftAsItIs(object, existing, driver.onExisting)];
  return { changes: [{ step: step.id, to: "replaced" }], steps, settlements };
}

/** The group with some of its sub-options; the others follow by themselves, but for those that are settled. */
function regroup(
  group: Group,
  inside: readonly ChildItem[],
  maker: StepMaker,
  settled: readonly ChildItem[] = [],
): Consequences {
  const { children = [], ...bare } = group.item;
  const place = group.step.bindings.filter(({ field }) => field === "targeting");
  const [targetingBinding] = place;
  const objects = [group.object, ...inside.map((candidate) => objectOf(group, candidate))];
  const item: OptionItem = inside.length > 0 ? { ...bare, children: [...inside] } : { ...bare, type: "collection" };
  const steps: Step[] = [maker.addOption(item, { targeting: targetingBinding ?? {} }, { objects })];
  for (const candidate of children) {
    if (inside.includes(candidate) || settled.includes(candidate)) continue;
    steps.push(addChild(group, candidate, { object: group.object }, maker));
  }
  return { changes: [{ step: group.step.id, to: "replaced" }], steps };
}

function addChild(group: Group, candidate: ChildItem, parent: Omit<Binding, "field">, maker: StepMaker): Step {
  const [targetingBinding] = group.step.bindings.filter(({ field }) => field === "targeting");
  const place = { targeting: targetingBinding ?? {}, parent };
  return maker.addOption(candidate, place, { objects: [objectOf(group, candidate)] });
}

function objectOf(group: Group, candidate: ChildItem): number {
  const position = (group.item.children ?? []).indexOf(candidate);
  return group.step.objects[position + 1] ?? group.object;
}

function lightest(children: readonly ChildItem[]): ChildItem | undefined {
  return [...children].sort((a, b) => (a.contexts?.length ?? 0) - (b.contexts?.length ?? 0))[0];
}
