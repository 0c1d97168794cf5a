import type { ObjectResult } from "../../../src/runs/report.ts";
import type { ApprovalRequest } from "../wishes.ts";
import type { Evidence } from "./evidence.ts";

type UpdateWish = Extract<ApprovalRequest, { readonly kind: "targetingName" | "update" }>;
type Field = "name" | "parent" | "exposeChildren";
type Value = string | boolean | null;

const CHANGES = {
  name: ["targetingRenamed", "optionRenamed"],
  parent: ["moved"],
  exposeChildren: ["exposed"],
} as const;

/** Compares the outcome of changed fields with their values before and after. */
export function checkUpdate(evidence: Evidence, wish: UpdateWish, result: ObjectResult): readonly string[] {
  return fieldsOf(wish).flatMap(([field, value]) => checkField(evidence, { id: wish.id, field, value }, result));
}

/** Returns the fields that a wish changes. */
export function fieldsOf(wish: UpdateWish): readonly (readonly [Field, Value])[] {
  const { name } = wish;
  const { parent, exposeChildren } = wish.kind === "update" ? wish : {};
  return [
    ...(name === undefined ? [] : [["name", name] as const]),
    ...(parent === undefined ? [] : [["parent", parent] as const]),
    ...(exposeChildren === undefined ? [] : [["exposeChildren", exposeChildren] as const]),
  ];
}

interface Changed {
  readonly id: string;
  readonly field: Field;
  readonly value: Value;
}

function checkField(evidence: Evidence, changed: Changed, result: ObjectResult): readonly string[] {
  const { id, field, value } = changed;
  const { before, project } = evidence.of;
  const was = fieldIn(before, id, field);
  const is = fieldIn(project, id, field);
  const isOthers = evidence.isChangedByOther(id, ...CHANGES[field]);
  const isStranded = field === "name" && isLeftBehind(evidence, id, is);
  if (isStranded && result.outcome !== "unknown" && !wishedElsewhere(evidence, changed)) {
    return [`stranded under the name ${is}`];
  }
  switch (result.outcome) {
    case "succeeded":
      if (!evidence.of.before.options.has(id) && !evidence.of.before.targetings.has(id))
        return ["there is no such thing"];
      return is === value || isOthers || wasMovedOut(evidence, changed)
        ? []
        : [`${field} is ${is} instead of ${value}`];
    case "alreadyDone":
      return ["an update is never already done"];
    case "failed":
    case "notApplied": {
      if (is === was || isOthers || wishedElsewhere(evidence, changed)) return [];
      return wasMovedOut(evidence, changed) ? [] : [`${result.outcome}, but ${field} went from ${was} to ${is}`];
    }
    default:
      return [];
  }
}

/**
 * Returns whether the object still has a temporary name that this run gave it. A temporary name of another run is for
 * that run to report.
 */
function isLeftBehind(evidence: Evidence, id: string, name: Value | undefined): boolean {
  if (typeof name !== "string" || !/^tmp /.test(name)) return false;
  return evidence.changes(id).some((change) => change.actor === "run" && "to" in change && change.to === name);
}

/** Returns whether another user deleted the group, so that its sub-options moved to the top level. */
function wasMovedOut(evidence: Evidence, { id, field }: Changed): boolean {
  return field === "parent" && evidence.isChangedByOther(id, "moved");
}

/** Returns whether another item, which was not refused, changes the same field of the same object. */
function wishedElsewhere(evidence: Evidence, { id, field }: Changed): boolean {
  return evidence.judged.some(
    ({ wish, result }) =>
      (wish.kind === "update" || wish.kind === "targetingName") &&
      wish.id === id &&
      (result.outcome === "succeeded" || result.outcome === "unknown") &&
      fieldsOf(wish).some(([other]) => other === field),
  );
}

function fieldIn(
  from: Pick<Evidence["of"]["before"], "options" | "targetings">,
  id: string,
  field: Field,
): Value | undefined {
  const option = from.options.get(id);
  if (field === "name") return option?.name ?? from.targetings.get(id)?.name;
  return field === "parent" ? (option?.parent ?? null) : option?.exposeChildren;
}
