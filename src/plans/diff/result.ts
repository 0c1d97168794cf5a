import { LIMITS } from "../../spec/limits.ts";
import type { ServiceOption } from "../base.ts";
import { type Problems, quoted, type Spot } from "../file/desired.ts";
import type { DesiredRow } from "./match.ts";
import type { ChangeItem, CreateItem, ExceededLimit, ParentRef, PlanItem } from "./plan.ts";

/** An option as it would be after the plan. */
interface After {
  /** Absent where it is created. */
  readonly there?: ServiceOption | undefined;
  readonly item?: CreateItem | ChangeItem | undefined;
  readonly row?: DesiredRow | undefined;
  readonly name: string;
  readonly isGroup: boolean;
  readonly parent: ParentRef;
  /** How many Context IDs it would hold. */
  readonly count: number;
}

/** What is looked at once all changes are known. */
export interface Result {
  readonly options: readonly ServiceOption[];
  readonly items: readonly PlanItem[];
  /** The row of each item. */
  readonly rows: ReadonlyMap<PlanItem, DesiredRow>;
  /** The row of each option that is there and stands in the file. */
  readonly rowOf: ReadonlyMap<string, DesiredRow>;
  readonly problems: Problems;
}

/** Looks at what the targeting would be: names, groups and limits. Gives the limits that would be exceeded. */
export function checkResult(result: Result): readonly ExceededLimit[] {
  const after = afterPlan(result);
  checkNames(after, result);
  checkGroups(after, result);
  checkOwnContexts(after, result);
  return limitsOf(after, result.options);
}

function afterPlan({ options, items, rows, rowOf }: Result): readonly After[] {
  const changes = new Map<string, ChangeItem>();
  const deleted = new Set<string>();
  for (const item of items) {
    if (item.kind === "change") changes.set(item._id, item);
    if (item.kind === "delete") deleted.add(item._id);
  }
  const after: After[] = [];
  for (const there of options) {
    if (deleted.has(there._id)) continue;
    const item = changes.get(there._id);
    // A group that is deleted leaves its sub-options at the top level.
    const kept: ParentRef = there.parent === null || deleted.has(there.parent) ? null : { _id: there.parent };
    const { contexts } = item ?? {};
    after.push({
      there,
      item,
      row: rowOf.get(there._id),
      name: item?.name ?? there.name,
      isGroup: there.type === "collection",
      parent: item?.parent === undefined ? kept : item.parent,
      count: there.contexts.length + (contexts?.add.length ?? 0) - (contexts?.remove.length ?? 0),
    });
  }
  for (const item of items) {
    if (item.kind !== "create") continue;
    const { name, parent, contexts, type } = item;
    after.push({ item, row: rows.get(item), name, isGroup: type === "collection", parent, count: contexts.length });
  }
  return after;
}

function checkNames(after: readonly After[], { problems }: Result): void {
  const named = new Map<string, After>();
  for (const one of after) {
    const other = named.get(one.name);
    named.set(one.name, one);
    // Names that were double before are not this plan's doing.
    const taker = [one, other].find(
      (each) => each?.item?.kind === "create" || (each?.item?.kind === "change" && each.item.name !== undefined),
    );
    if (other === undefined || taker?.row === undefined) continue;
    const holder = taker === one ? other : one;
    problems.add(
      taker.row.option.spots.name ?? taker.row.option,
      `the name ${quoted(one.name)} is that of ${holder.there === undefined ? "another new option" : `option ${holder.there._id}`}, which would keep it`,
      holder.row === undefined
        ? "Choose another name, or put that option into the file under another one."
        : "Give each option its own name.",
      holder.row && [taker.row.option.line, holder.row.option.line],
    );
  }
}

function keyOf(ref: ParentRef): string | undefined {
  if (ref === null) return undefined;
  return "_id" in ref ? ref._id : `item ${ref.item}`;
}

/** A group has sub-options or own Context IDs (management-api 7.4, cases 1, 6 and 7). */
function checkGroups(after: readonly After[], { problems, items, rows, options }: Result): void {
  const positions = new Map(items.map((item, index) => [item, index]));
  const filled = new Set(after.flatMap(({ parent }) => keyOf(parent) ?? []));
  const before = new Set(options.flatMap(({ parent }) => parent ?? []));
  const leaving = new Map(
    items.flatMap((item) =>
      item.kind === "change" && item.seen.parent !== null ? [[item.seen.parent, item] as const] : [],
    ),
  );
  for (const group of after) {
    if (!group.isGroup || group.count > 0) continue;
    const key = group.there?._id ?? `item ${group.item && positions.get(group.item)}`;
    if (filled.has(key)) continue;
    const wasEmpty = group.there !== undefined && group.there.contexts.length === 0 && !before.has(key);
    if (wasEmpty) continue;
    const left = leaving.get(key);
    const row = group.row ?? (left && rows.get(left));
    const spot: Spot = group.row?.option.spots.contexts ?? row?.option ?? FIRST;
    problems.add(
      spot,
      `the group ${quoted(group.name)} would have neither sub-options nor own Context IDs`,
      "Leave it a sub-option or a Context ID, or delete the group as a whole.",
    );
  }
}

const FIRST: Spot = { line: 1, column: 1 };

/** Groups share no own Context IDs (management-api 7.2); what changes hands within the plan is no problem. */
function checkOwnContexts(after: readonly After[], { problems }: Result): void {
  const holders = new Map<string, After>();
  for (const group of after) {
    if (!group.isGroup) continue;
    for (const id of contextsAfter(group)) {
      const other = holders.get(id);
      holders.set(id, group);
      if (other === undefined) continue;
      const taker = [group, other].find((one) => adds(one, id));
      if (taker?.row === undefined) continue;
      const holder = taker === group ? other : group;
      problems.add(
        taker.row.option.spots.contexts ?? taker.row.option,
        `the Context ID ${quoted(id)} is to be an own one of the group ${quoted(taker.name)}, and the group ${quoted(holder.name)} would hold it too`,
        "Groups share no own Context IDs: take it out of one of the two in the file.",
      );
    }
  }
}

function contextsAfter({ there, item }: After): readonly string[] {
  if (item?.kind === "create") return item.contexts;
  const held = there?.contexts ?? [];
  if (item?.contexts === undefined) return held;
  const removed = new Set(item.contexts.remove);
  return [...held.filter((id) => !removed.has(id)), ...item.contexts.add];
}

function adds({ item }: After, id: string): boolean {
  if (item === undefined) return false;
  return item.kind === "create" ? item.contexts.includes(id) : (item.contexts?.add.includes(id) ?? false);
}

/** Limits on what is stored, looked at only where the plan increases it (management-api 8.2 rule 1). */
function limitsOf(after: readonly After[], options: readonly ServiceOption[]): readonly ExceededLimit[] {
  const exceeded: ExceededLimit[] = [];
  const check = (limit: string, most: number, of: string, there: number, wanted: number): void => {
    if (wanted > most && wanted > there) exceeded.push({ limit, of, there, wanted, fits: most });
  };
  const total = options.reduce((sum, { contexts }) => sum + contexts.length, 0);
  let wanted = 0;
  for (const one of after) {
    wanted += one.count;
    if (one.item === undefined) continue;
    const held = one.there?.contexts.length ?? 0;
    check("Context IDs of an option", LIMITS.optionContextIds.value, one.name, held, one.count);
    // A Context ID has 256 bytes at most, so that few of them need not be weighed.
    if (one.count * LIMITS.contextIdBytes.value <= LIMITS.optionContextBytes.value) continue;
    const bytes = bytesOf(contextsAfter(one));
    check(
      "bytes of an option's Context IDs",
      LIMITS.optionContextBytes.value,
      one.name,
      bytesOf(one.there?.contexts ?? []),
      bytes,
    );
  }
  check("options of a targeting", LIMITS.targetingOptions.value, "the targeting", options.length, after.length);
  check(
    "Context IDs of a project, of which this targeting has at least",
    LIMITS.projectContextIds.value,
    "the project",
    total,
    wanted,
  );
  return exceeded;
}

function bytesOf(contexts: readonly string[]): number {
  return contexts.reduce((sum, id) => sum + Buffer.byteLength(id, "utf8"), 0);
}
