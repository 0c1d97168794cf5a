import { ownReason } from "../../runs/reasons.ts";
import type { OptionChanges } from "../../spec/records.ts";
import { badId, badName } from "./checks.ts";
import { Plan } from "./plan.ts";

/** The input of `rename_targetings` (contract, Tools). */
export interface RenameTargetingsInput {
  readonly items: readonly { readonly _id: string; readonly name: string }[];
}

/** Plans renaming targetings. Names that are freed, swapped or passed on are sorted out while sending. */
export function planRenameTargetings(input: RenameTargetingsInput): Plan {
  const plan = new Plan();
  const byId = new Map<string, { readonly index: number; readonly name: string; readonly objects: number[] }>();
  const names = new Map<string, number>();
  input.items.forEach(({ _id, name }, index) => {
    const object = plan.object({ index, _id, name });
    const same = byId.get(_id);
    const first = names.get(name);
    const invalid = badId("_id", _id) ?? badName(name);
    if (invalid !== undefined) plan.fail(object, invalid);
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

/** An item of `update_options` (contract, Tools). */
interface UpdateOptionInput {
  readonly _id: string;
  readonly name?: string | undefined;
  readonly parent?: string | null | undefined;
  readonly exposeChildren?: boolean | undefined;
}

/** The input of `update_options`. */
export interface UpdateOptionsInput {
  readonly items: readonly UpdateOptionInput[];
}

interface Merged {
  readonly index: number;
  readonly changes: Map<"name" | "parent" | "exposeChildren", string | null | boolean>;
  readonly objects: number[];
}

/**
 * Plans renaming, moving and setting options. Items about one option travel as one, since a request may name it once
 * (management-api 4.1); an item that contradicts an earlier one about the same option fails.
 */
export function planUpdateOptions(input: UpdateOptionsInput): Plan {
  const plan = new Plan();
  const byId = new Map<string, Merged>();
  input.items.forEach((item, index) => {
    const { _id, name, parent, exposeChildren } = item;
    const object = plan.object({ index, _id, ...(name === undefined ? {} : { name }) });
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
    const contradicts =
      differs(merged, "name", name) ||
      differs(merged, "parent", parent) ||
      differs(merged, "exposeChildren", exposeChildren);
    if (contradicts) {
      plan.fail(object, ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: merged.index, field: "_id" }));
      return;
    }
    if (name !== undefined) merged.changes.set("name", name);
    if (parent !== undefined) merged.changes.set("parent", parent);
    if (exposeChildren !== undefined) merged.changes.set("exposeChildren", exposeChildren);
    merged.objects.push(object);
    byId.set(_id, merged);
  });
  for (const [id, { changes, objects }] of byId) {
    const fields: OptionChanges = Object.fromEntries(changes);
    plan.add(plan.make.updateOption({ id }, fields, { objects }));
  }
  return plan;
}

function differs(
  merged: Merged,
  field: "name" | "parent" | "exposeChildren",
  value: string | null | boolean | undefined,
) {
  return value !== undefined && merged.changes.has(field) && merged.changes.get(field) !== value;
}
