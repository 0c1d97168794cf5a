import { defined } from "../../platform/by-key.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionChanges, OptionRecord } from "../../spec/records.ts";
import { requestReason } from "../api-reasons.ts";
import type { Inputs } from "../call.ts";
import { contextCount, optionCount } from "../rows/steps.ts";
import {
  type CurrentNames,
  type FindOption,
  isOption,
  noteJoinedIds,
  reasonIfRenamed,
  unnamed,
} from "./current-values.ts";

import {
  checkOption,
  givenContextIds,
  type NamesInUse,
  type NewOption,
  optionItem,
  planOption,
} from "./option-drafts.ts";
import { badId, badName, Plan } from "./plan.ts";

interface TargetingCandidate {
  readonly object: number;
  readonly name: string;
  readonly options: readonly NewOption[];
}

/**
 * Plans creating targetings. Options that do not fit into the request that creates their targeting are added in later
 * requests (management-api 8.1).
 */
export function planCreateTargetings(input: Inputs["create_targetings"]): Plan {
  const plan = new Plan();
  const candidates: TargetingCandidate[] = [];
  const names = new Map<string, number>();
  input.items.forEach((item, index) => {
    const object = plan.object({ index, name: item.name });
    const options = (item.options ?? []).map((option, child) => ({
      option,
      object: plan.object({ index, child, name: option.name }),
      grandchildren: (option.children ?? []).map((grandchild, position) =>
        plan.object({ index, child, grandchild: position, name: grandchild.name }),
      ),
    }));
    const first = names.get(item.name);
    const reason =
      badName(item.name) ??
      (first === undefined ? undefined : ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: first, field: "name" }));
    if (reason !== undefined) {
      plan.fail(object, reason);
      const left = ownReason("NEEDS_FAILED", { needs: object });
      for (const inside of options) {
        for (const each of [inside.object, ...inside.grandchildren]) plan.leaveOut(each, left);
      }
      return;
    }
    names.set(item.name, index);
    const optionNames: NamesInUse = new Map();
    const good = options.flatMap(({ option, object: at, grandchildren }) => {
      const place = { object: at, child: (position: number): number => grandchildren[position] ?? at };
      return checkOption(plan, option, place, optionNames, false) ?? [];
    });
    candidates.push({ object, name: item.name, options: good });
  });
  planAll(plan, candidates);
  noteJoinedIds(plan, givenContextIds(input.items.flatMap(({ options = [] }) => options)));
  return plan;
}

function planAll(plan: Plan, candidates: readonly TargetingCandidate[]): void {
  const requests = Math.ceil(candidates.length / LIMITS.targetingItems.value);
  const room = {
    options: requests * LIMITS.targetingCreateOptions.value,
    contextIds: requests * LIMITS.requestContextIds.value,
  };
  const left: { readonly option: NewOption; readonly targeting: number }[] = [];
  for (const { object, name, options } of candidates) {
    const inside: NewOption[] = [];
    const ofItem = { options: LIMITS.targetingCreateOptions.value, contextIds: LIMITS.requestContextIds.value };
    for (const option of options) {
      const size = { options: optionCount(option), contextIds: contextCount(option) };
      const hasRoom = [room, ofItem].every((r) => size.options <= r.options && size.contextIds <= r.contextIds);
      if (hasRoom) {
        inside.push(option);
        for (const each of [room, ofItem]) {
          each.options -= size.options;
          each.contextIds -= size.contextIds;
        }
      } else left.push({ option, targeting: object });
    }
    const objects = [object, ...inside.flatMap((option) => [option.object, ...option.children.map((c) => c.object)])];
    const items = inside.map((option) => optionItem(option, option.contexts, option.children));
    plan.add(plan.make.createTargeting(items.length > 0 ? { name, options: items } : { name }, { objects }));
  }
  for (const { option, targeting } of left) planOption(plan, option, { targeting: { object: targeting } });
}

type GivenTargeting = Omit<Inputs["rename_targetings"]["items"][number], "name">;

/** Plans renaming targetings. `now`: the current names of the targetings that the caller gave by name. */
export function planRenameTargetings(input: Inputs["rename_targetings"], now: CurrentNames = new Map()): Plan {
  const plan = new Plan();
  const byId = new Map<string, { readonly index: number; readonly name: string; readonly objects: number[] }>();
  const names = new Map<string, number>();
  input.items.forEach(({ name, ...given }, index) => {
    const { _id } = given;
    const object = plan.object({ index, ...defined({ _id }), name });
    const same = byId.get(_id ?? "");
    const first = names.get(name);
    const invalid = badTargeting(given, now) ?? badName(name);
    if (invalid !== undefined || _id === undefined) plan.fail(object, invalid ?? badReference(given));
    else if (same !== undefined && same.name === name) same.objects.push(object);
    else if (same !== undefined || first !== undefined) {
      const field = same === undefined ? "name" : "_id";
      plan.fail(object, ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: same?.index ?? first, field }));
    } else {
      byId.set(_id, { index, name, objects: [object] });
      names.set(name, index);
    }
  });
  for (const [id, { name, objects }] of byId) plan.add(plan.make.renameTargeting(id, name, { objects }));
  return plan;
}

/** Returns a reason if it is known before sending that a targeting cannot be renamed. */
function badTargeting({ _id, currentName }: GivenTargeting, now: CurrentNames): Reason | undefined {
  if (_id === undefined) return undefined;
  const name = currentName === undefined ? undefined : now.get(_id);
  if (typeof name === "string") return badId("_id", _id) ?? reasonIfRenamed(currentName, name);
  return name === undefined ? badId("_id", _id) : requestReason("renameTargetings", name);
}

function badReference({ currentName, ...found }: GivenTargeting): Reason {
  if (currentName !== undefined) return unnamed({ currentName, ...found });
  return ownReason("INVALID_ITEM", { problem: "noTargeting" });
}

interface Merged {
  readonly index: number;
  readonly changes: Map<string, string | null | boolean | undefined>;
  readonly objects: number[];
}

/** Plans changes of options, one step for each (management-api 4.1). An item that contradicts an earlier one fails. */
export function planUpdateOptions(input: Inputs["update_options"], find: FindOption = unread): Plan {
  const plan = new Plan();
  const byId = new Map<string, Merged>();
  const renamedHere = new Map(input.items.map((item) => [item.name, item]));
  // If the same call renames a group, the caller may use its new name.
  const groupOf = (item: Inputs["update_options"]["items"][number]) => {
    const group = referred(item, "parent", "parentName", find);
    const renamed = item.parentName === undefined ? undefined : renamedHere.get(item.parentName);
    const isUnknown = typeof group === "object" && !isOption(group) && group.code === "NAME_NOT_FOUND";
    return isUnknown && renamed !== undefined ? referred(renamed, "_id", "currentName", find) : group;
  };
  input.items.forEach((item, index) => {
    const { name, exposeChildren } = item;
    const found = referred(item, "_id", "currentName", find);
    const option = idOf(found);
    const parent = item.parentName === undefined ? item.parent : idOf(groupOf(item));
    const _id = typeof option === "string" ? option : undefined;
    const known = name ?? (isFound(found) ? found.name : item.currentName);
    const object = plan.object({ index, ...defined({ _id, name: known }) });
    if (_id === undefined || isReason(option) || isReason(parent)) {
      const reason = [option, parent].find(isReason);
      plan.fail(object, reason ?? ownReason("INVALID_ITEM", { problem: "noOption" }));
      return;
    }
    const wanted = Object.entries({ name, parent, exposeChildren }).filter(([, value]) => value !== undefined);
    const invalid =
      badId("_id", _id) ??
      (name === undefined ? undefined : badName(name)) ??
      (typeof parent === "string" ? badId("parent", parent) : undefined) ??
      (wanted.length === 0 ? ownReason("INVALID_ITEM", { problem: "noChange" }) : undefined) ??
      (parent === _id ? ownReason("INVALID_ITEM", { problem: "ownParent" }) : undefined);
    if (invalid !== undefined) {
      plan.fail(object, invalid);
      return;
    }
    const merged: Merged = byId.get(_id) ?? { index, changes: new Map(), objects: [] };
    if (wanted.some(([field, value]) => merged.changes.has(field) && merged.changes.get(field) !== value)) {
      plan.fail(object, ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: merged.index, field: "_id" }));
      return;
    }
    for (const [field, value] of wanted) merged.changes.set(field, value);
    merged.objects.push(object);
    byId.set(_id, merged);
  });
  for (const [id, { changes, objects }] of byId) {
    const fields: OptionChanges = Object.fromEntries(changes);
    plan.add(plan.make.updateOption({ id }, fields, { objects }));
  }
  return plan;
}

const unread: FindOption = (value, field) => ownReason("NAME_NOT_FOUND", { field, value });

/** Returns the ID in an item, or the option that it names. Returns a reason if it has both, or the name is unknown. */
function referred(
  item: Inputs["update_options"]["items"][number],
  idField: "_id" | "parent",
  nameField: "currentName" | "parentName",
  find: FindOption,
): string | OptionRecord | Reason | undefined {
  const id = item[idField];
  const name = item[nameField];
  if (name === undefined) return id ?? undefined;
  if (id !== undefined) {
    return ownReason("INVALID_ITEM", { problem: idField === "_id" ? "idAndCurrentName" : "parentAndParentName" });
  }
  return find(name, nameField);
}

function isFound(given: string | OptionRecord | Reason | undefined): given is OptionRecord {
  return typeof given === "object" && isOption(given);
}

function idOf(given: string | OptionRecord | Reason | undefined): string | Reason | undefined {
  return isFound(given) ? given._id : given;
}

function isReason(given: string | null | Reason | undefined): given is Reason {
  return typeof given === "object" && given !== null;
}
