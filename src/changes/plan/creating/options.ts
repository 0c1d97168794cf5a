import type { Reason } from "../../../runs/outcome.ts";
import { ownReason } from "../../../runs/reasons.ts";
import type { OptionToCreate } from "../../../spec/records.ts";
import { REQUEST_LIMITS } from "../../pack/request-limits.ts";
import type { Binding } from "../../rows/entries.ts";
import type { ChildInput, OptionInput } from "../../rows/inputs.ts";
import { badName, checkContextIds, parts, tooManyForOption } from "../checks.ts";
import type { Plan } from "../plan.ts";

/** A valid name, and Context IDs as they are sent. */
export interface CheckedOption {
  readonly name: string;
  readonly contexts: readonly string[];
}

/** A valid sub-option. */
interface Child extends CheckedOption {
  readonly object: number;
}

/** A valid option or group, with its valid sub-options. */
export interface NewOption extends Child {
  readonly isGroup: boolean;
  readonly exposeChildren: boolean | undefined;
  readonly children: Child[];
}

/** Names that a targeting's new options use, each with the caller's index of its first use. */
export interface NamesInUse {
  get(name: string): number | undefined;
  set(name: string, index: number): unknown;
  /** The line of its first use, where that was in a file. */
  lineOf?(name: string): number | undefined;
}

/**
 * Checks one option and its sub-options against management-api 7.4, 8.1 and 8.3, and against the names used before in
 * the call. `place` says how its objects are reported. An invalid option fails in the plan; an invalid sub-option fails
 * alone. Gives the option when it is valid. A group that still waits for sub-options of other items may be empty here.
 */
export function checkOption(
  plan: Plan,
  input: OptionInput,
  place: { readonly object: number; readonly index: number; child(position: number): number },
  names: NamesInUse,
  mayBeEmpty: boolean,
): NewOption | undefined {
  const children = (input.children ?? []).map((child, position) => ({ child, object: place.child(position) }));
  const refuse = (reason: Reason): undefined => {
    plan.fail(place.object, reason);
    for (const { object } of children) plan.leaveOut(object, ownReason("NEEDS_FAILED", { needs: place.object }));
    return undefined;
  };
  const misfit = badTypes(input);
  if (misfit !== undefined) return refuse(misfit);
  const own = checkOne(input, names);
  if ("code" in own) return refuse(own);
  names.set(own.name, place.index);
  const good: Child[] = [];
  for (const { child, object } of children) {
    const checked = checkOne(child, names);
    if ("code" in checked) {
      plan.fail(object, checked);
      continue;
    }
    names.set(checked.name, place.index);
    good.push({ object, ...checked });
  }
  const isGroup = input.type === "collection" || input.children !== undefined;
  if (isGroup && !mayBeEmpty && good.length === 0 && own.contexts.length === 0) {
    plan.fail(place.object, ownReason("EMPTY_GROUP"));
    return undefined;
  }
  return { object: place.object, ...own, isGroup, exposeChildren: input.exposeChildren, children: good };
}

function badTypes(input: OptionInput): Reason | undefined {
  const hasChildren = input.children !== undefined;
  if (hasChildren && input.type === "atomic") return ownReason("INVALID_ITEM", { problem: "childrenOfAtomic" });
  if (input.exposeChildren !== undefined && input.type !== "collection" && !hasChildren) {
    return ownReason("INVALID_ITEM", { problem: "exposeChildrenOfAtomic" });
  }
  return undefined;
}

/** Checks a name and its Context IDs; gives them as they are sent, or why they cannot be. */
export function checkOne(input: ChildInput, names: Pick<NamesInUse, "get" | "lineOf">): CheckedOption | Reason {
  const invalid = badName(input.name);
  if (invalid !== undefined) return invalid;
  const checked = checkContextIds(input.contexts ?? []);
  if (!checked.ok) return checked.reason;
  const tooMany = tooManyForOption(checked.ids);
  if (tooMany !== undefined) return tooMany;
  const first = names.get(input.name);
  if (first !== undefined) {
    const line = names.lineOf?.(input.name);
    const at = line === undefined ? {} : { duplicateOfLine: line };
    return ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: first, ...at, field: "name" });
  }
  return { name: input.name, contexts: checked.ids };
}

/** Where new options go: their targeting, and the group they belong to. */
export interface OptionTarget {
  readonly targeting: Omit<Binding, "field">;
  readonly parent?: Omit<Binding, "field">;
  /** Steps that must be settled before. */
  readonly after?: readonly number[];
}

/**
 * Plans the steps that make one option: a group travels with as many of its sub-options as one request takes, the
 * others follow with `parent`; Context IDs beyond one request follow as updates. Gives the step that makes the option.
 */
export function planOption(plan: Plan, option: NewOption, place: OptionTarget): number {
  const [first = [], ...rest] = parts(option.contexts);
  const after = place.after === undefined || place.after.length === 0 ? {} : { after: place.after };
  if (!option.isGroup) {
    const item = { name: option.name, ...(first.length > 0 ? { contexts: first } : {}) };
    const { id } = plan.add(plan.make.addOption(item, place, { objects: [option.object], ...after }));
    addRest(plan, option.object, rest);
    return id;
  }
  const { inside, outside } = splitChildren(option, first);
  const objects = [option.object, ...inside.map(({ object }) => object)];
  const { id } = plan.add(plan.make.addOption(groupItem(option, first, inside), place, { objects, ...after }));
  addRest(plan, option.object, rest);
  for (const child of inside) addRest(plan, child.object, parts(child.contexts).slice(1));
  for (const child of outside) {
    planOption(
      plan,
      { ...child, isGroup: false, exposeChildren: undefined, children: [] },
      {
        targeting: place.targeting,
        parent: { object: option.object },
      },
    );
  }
  return id;
}

/** An option group as it travels. */
export function groupItem(
  group: NewOption,
  contexts: readonly string[],
  inside: readonly Child[],
): Omit<OptionToCreate, "parent"> {
  const children = inside.map((child) => ({ name: child.name, ...withContexts(parts(child.contexts)[0] ?? []) }));
  return {
    name: group.name,
    type: "collection",
    ...withContexts(contexts),
    ...(children.length > 0 ? { children } : {}),
    ...(group.exposeChildren === undefined ? {} : { exposeChildren: group.exposeChildren }),
  };
}

function withContexts(contexts: readonly string[]): { readonly contexts?: readonly string[] } {
  return contexts.length > 0 ? { contexts } : {};
}

/** Sub-options that travel inside their group's item, and those for which there is no room. */
function splitChildren(
  group: NewOption,
  contexts: readonly string[],
): { readonly inside: readonly Child[]; readonly outside: readonly Child[] } {
  const limits = REQUEST_LIMITS.addOptions;
  const inside: Child[] = [];
  const outside: Child[] = [];
  let contextIds = contexts.length;
  let bytes = 512 + contexts.reduce((sum, id) => sum + jsonBytes(id), 0);
  for (const child of group.children) {
    const [first = []] = parts(child.contexts);
    const size = 32 + jsonBytes(child.name) + first.reduce((sum, id) => sum + jsonBytes(id), 0);
    const hasRoom =
      inside.length + 2 <= limits.options &&
      contextIds + first.length <= limits.contextIds &&
      bytes + size < limits.bytes;
    const whole = first.length === child.contexts.length;
    const mustBeInside = contexts.length === 0 && inside.length === 0;
    if (hasRoom && (whole || mustBeInside)) {
      inside.push(child);
      contextIds += first.length;
      bytes += size;
    } else outside.push(child);
  }
  return { inside, outside };
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text), "utf8") + 1;
}

/** Context IDs that did not fit into the request that makes the option follow one part after the other. */
function addRest(plan: Plan, object: number, rest: readonly (readonly string[])[]): void {
  let after: readonly number[] = [];
  for (const add of rest) {
    const step = plan.add(plan.make.updateOption({ object }, { contexts: { add } }, { objects: [object], after }));
    after = [step.id];
  }
}
