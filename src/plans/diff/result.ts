import { type Conflict, conflicts } from "../../model/conflicts.ts";
import type { Ref } from "../../model/targeting-model.ts";
import type { Change } from "../../model/work.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { ServiceOption } from "../base.ts";
import { type Problems, quoted, type Spot } from "../file/desired.ts";
import { changeOf, knownOption, positionOf } from "../modelled.ts";
import type { DesiredRow } from "./match.ts";
import type { ChangeItem, CreateItem, ExceededLimit, PlanItem } from "./plan.ts";

export interface Result {
  readonly options: readonly ServiceOption[];
  readonly items: readonly PlanItem[];
  /** In the order of the items. Items that delete come last and have no row. */
  readonly rows: readonly DesiredRow[];
  /** By ID of an existing option. */
  readonly rowOf: ReadonlyMap<string, DesiredRow>;
  readonly problems: Problems;
}

/** Checks the names, groups and limits of the targeting after the plan. Returns the exceeded limits. */
export function checkResult(result: Result): readonly ExceededLimit[] {
  const { options, items } = result;
  const known = new Map(options.map((option) => [option._id, knownOption(option)]));
  const changes = new Map<Ref, Change>();
  for (const [at, item] of items.entries()) {
    const change = changeOf(item, at);
    changes.set(change.ref, change);
  }
  const rowOf = (ref: Ref): DesiredRow | undefined => result.rows[positionOf(ref) ?? -1] ?? result.rowOf.get(ref);
  const nameOf = (ref: Ref): string => {
    const change = changes.get(ref);
    return (change?.kind === "delete" ? undefined : change?.name) ?? known.get(ref)?.name ?? "";
  };
  for (const conflict of conflicts(known, changes)) {
    addProblem(conflict, { rowOf, nameOf, problems: result.problems });
  }
  return limitsOf(items, options);
}

interface ConflictContext extends Pick<Result, "problems"> {
  readonly rowOf: (ref: Ref) => DesiredRow | undefined;
  readonly nameOf: (ref: Ref) => string;
}

function addProblem(conflict: Conflict, { rowOf, nameOf, problems }: ConflictContext): void {
  const row = rowOf(conflict.ref);
  if (conflict.kind === "name" && row !== undefined) {
    const holder = rowOf(conflict.holder);
    const isNew = positionOf(conflict.holder) !== undefined;
    problems.add(
      row.option.spots.name ?? row.option,
      `the name ${quoted(conflict.value)} is already used by ${isNew ? "another new option" : `option ${conflict.holder}`}, which keeps it`,
      holder === undefined
        ? "Choose another name, or add the other option to the file with a new name."
        : "Give each option its own name.",
      holder && [row.option.line, holder.option.line],
    );
  }
  if (conflict.kind === "empty") {
    const last = row ?? conflict.leaving.map(rowOf).findLast((left) => left !== undefined);
    const spot: Spot = row?.option.spots.contexts ?? last?.option ?? FIRST;
    problems.add(
      spot,
      `the group ${quoted(nameOf(conflict.ref))} would have neither sub-options nor own Context IDs`,
      "Keep a sub-option or a Context ID in it, or delete the whole group.",
    );
  }
  if (conflict.kind === "owner" && row !== undefined) {
    problems.add(
      row.option.spots.contexts ?? row.option,
      `the groups ${quoted(nameOf(conflict.ref))} and ${quoted(nameOf(conflict.holder))} would both have the Context ID ${quoted(conflict.value)}`,
      "Two groups cannot have the same Context ID of their own: remove it from one of them in the file.",
    );
  }
}

const FIRST: Spot = { line: 1, column: 1 };

/** Returns the limits that the plan would exceed further than now (management-api 8.2 rule 1). */
function limitsOf(items: readonly PlanItem[], options: readonly ServiceOption[]): readonly ExceededLimit[] {
  const exceeded: ExceededLimit[] = [];
  const check = (limit: string, most: number, of: string, there: number, wanted: number): void => {
    if (wanted > most && wanted > there) exceeded.push({ limit, of, there, wanted, fits: most });
  };
  const { optionContextIds, optionContextBytes, contextIdBytes } = LIMITS;
  const itemOf = new Map(items.map((item) => [item.kind === "create" ? "" : item._id, item]));
  const byId = new Map(options.map((option) => [option._id, option]));
  const total = options.reduce((sum, { contexts }) => sum + contexts.length, 0);
  let [count, contextIds] = [options.length, total];
  const ordered = [
    ...options.flatMap(({ _id }) => itemOf.get(_id) ?? []),
    ...items.filter(({ kind }) => kind === "create"),
  ];
  for (const item of ordered) {
    const there = item.kind === "create" ? undefined : byId.get(item._id);
    const held = there?.contexts ?? [];
    if (item.kind === "create") count += 1;
    if (item.kind === "delete") count -= 1;
    const after = item.kind === "delete" ? [] : contextsAfter(item, held);
    contextIds += after.length - held.length;
    if (item.kind === "delete") continue;
    const name = item.name ?? there?.name ?? "";
    check("Context IDs of an option", optionContextIds.value, name, held.length, after.length);
    // If Context IDs of the maximum size would fit, their bytes need not be counted.
    if (after.length * contextIdBytes.value <= optionContextBytes.value) continue;
    check("bytes of an option's Context IDs", optionContextBytes.value, name, bytesOf(held), bytesOf(after));
  }
  check("options of a targeting", LIMITS.targetingOptions.value, "the targeting", options.length, count);
  const project = "Context IDs of a project, of which this targeting has at least";
  check(project, LIMITS.projectContextIds.value, "the project", total, contextIds);
  return exceeded;
}

function contextsAfter(item: CreateItem | ChangeItem, held: readonly string[]): readonly string[] {
  if (item.kind === "create") return item.contexts;
  if (item.contexts === undefined) return held;
  const removed = new Set(item.contexts.remove);
  return [...held.filter((id) => !removed.has(id)), ...item.contexts.add];
}

function bytesOf(contexts: readonly string[]): number {
  return contexts.reduce((sum, id) => sum + Buffer.byteLength(id, "utf8"), 0);
}
