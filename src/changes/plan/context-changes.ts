import type { OptionContents } from "../../reads/option-contents.ts";
import type { Reason } from "../../runs/outcome.ts";
import { ERROR_CODES } from "../../spec/error-codes.ts";
import { LIMITS } from "../../spec/limits.ts";
import { bytesOf } from "../../spec/names-and-contexts.ts";
import type { ContextChanges } from "../../spec/records.ts";
import { groupMark, notePreviousContents } from "./current-values.ts";
import { bytesInBody, contextIdLoss, PART_BYTES, type Plan, parts, tooManyForOption } from "./plan.ts";

export interface RequestedContextChange {
  readonly optionId: string;
  readonly objects: number[];
  readonly asked: ItemContextChange[];
  add: Set<string>;
  remove: Set<string>;
  set: Set<string> | undefined;
}

/** The requested change of one option. `contents`: the option with its current Context IDs, if they were read. */
interface PlannedChange {
  readonly wish: RequestedContextChange;
  readonly contents: OptionContents | undefined;
  readonly held: ReadonlySet<string>;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/**
 * Plans changes of Context IDs, in several requests for one option if needed. `contents`: each option as it was read,
 * or why it could not be read.
 */
export function planContextChanges(
  plan: Plan,
  wishes: readonly RequestedContextChange[],
  contents: ReadonlyMap<string, OptionContents | Reason>,
): void {
  const changes = wishes.flatMap((wish) => {
    const read = contents.get(wish.optionId);
    if (read === undefined || !("code" in read)) return changeOf(wish, read);
    for (const object of wish.objects) plan.fail(object, read);
    return [];
  });
  const room = roomInProject(changes);
  const moving = movingBetweenGroups(changes);
  for (const change of changes) {
    if (change.contents !== undefined) {
      noteRows(plan, change.wish.asked, change.contents);
      notePreviousContents(plan, change.contents, changedIn(change.wish, change.held));
    }
    if (leavesGroupEmpty(change)) {
      for (const object of change.wish.objects) plan.fail(object, EMPTIES_GROUP);
      continue;
    }
    noteLoss(plan, change);
    planChange(plan, change, { room, moving });
  }
}

/** The error of the service if a group would have neither Context IDs nor sub-options (management-api 7.4, case 7). */
const EMPTIES_GROUP: Reason = {
  code: "TARGETING_CATEGORY_NOT_SUPPORTED",
  statusCode: ERROR_CODES.TARGETING_CATEGORY_NOT_SUPPORTED.statusCode,
  operation: "updateOptions",
  sent: ["contexts", "onlyLoss"],
};

function leavesGroupEmpty({ contents, held, add, remove }: PlannedChange): boolean {
  const { type, childCount } = contents?.option ?? {};
  const isBare = type === "collection" && childCount === 0 && held.size > 0;
  return isBare && add.length === 0 && keptFrom(remove, held) === held.size;
}

function changedIn({ set, add, remove }: RequestedContextChange, held: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(set === undefined ? [...add, ...remove] : [...set, ...held]);
}

function changeOf(wish: RequestedContextChange, contents: OptionContents | undefined): PlannedChange {
  const held = new Set(contents?.contexts ?? []);
  const wanted = wish.set;
  return {
    wish,
    contents,
    held,
    add: wanted === undefined ? [...wish.add] : [...wanted].filter((id) => !held.has(id)),
    remove: wanted === undefined ? [...wish.remove] : [...held].filter((id) => !wanted.has(id)),
  };
}

interface Together {
  readonly room: { left: number };
  readonly moving: ReadonlySet<string>;
}

/**
 * Returns how many more Context IDs the project can have after these changes (management-api 8.1). Of those that exist,
 * only the Context IDs of options that were read are counted.
 */
function roomInProject(changes: readonly PlannedChange[]): { left: number } {
  let left: number = LIMITS.projectContextIds.value;
  for (const { held, add, remove } of changes)
    left -= held.size + Math.max(0, newOf(add, held) - keptFrom(remove, held));
  return { left: Math.max(0, left) };
}

const newOf = (add: readonly string[], held: ReadonlySet<string>): number => add.filter((id) => !held.has(id)).length;
const keptFrom = (remove: readonly string[], held: ReadonlySet<string>): number =>
  remove.filter((id) => held.has(id)).length;

/** Returns the Context IDs that move between groups. The old group must lose them first (management-api 7.2). */
function movingBetweenGroups(changes: readonly PlannedChange[]): ReadonlySet<string> {
  const groups = changes.filter(({ contents }) => contents?.option.type !== "atomic");
  const leaving = new Set(groups.flatMap(({ held, remove }) => remove.filter((id) => held.has(id))));
  return new Set(groups.flatMap(({ held, add }) => add.filter((id) => !held.has(id) && leaving.has(id))));
}

function planChange(plan: Plan, change: PlannedChange, together: Together): void {
  const { wish, held, add, remove } = change;
  const whole: ContextChanges =
    wish.set === undefined
      ? { ...(wish.add.size > 0 ? { add } : {}), ...(wish.remove.size > 0 ? { remove } : {}) }
      : { set: [...wish.set] };
  const all = [...(whole.set ?? []), ...(whole.add ?? []), ...(whole.remove ?? [])];
  if (parts(all).length === 1) {
    addStep(plan, change, all.length === 0 && whole.set === undefined ? { add: [] } : whole, []);
    return;
  }
  const after = new Set([...held, ...add]);
  for (const id of remove) after.delete(id);
  const tooMany = tooManyForOption([...after]);
  if (tooMany !== undefined && after.size > held.size) {
    for (const object of wish.objects) plan.fail(object, tooMany);
    return;
  }
  const work = workOf(change, together.moving);
  const growth = growthOf(change, after, together.room);
  const sequence = contextParts(work, { growth });
  if (sequence.length === 0) addStep(plan, change, { add: [] }, []);
  let previous: readonly number[] = [];
  for (const contexts of sequence) previous = [addStep(plan, change, contexts, previous)];
}

function workOf({ contents, held, ...change }: PlannedChange, moving: ReadonlySet<string>): ContextWork {
  const add = change.add.filter((id) => !held.has(id));
  const remove = change.remove.filter((id) => held.has(id));
  if (moving.size === 0 || contents?.option.type === "atomic") return { add, remove };
  const early = remove.filter((id) => moving.has(id));
  // A group without sub-options must not be empty between two requests (management-api 7.4, case 7). So one Context ID
  // stays until the end.
  if (early.length === held.size && (contents?.option.childCount ?? 0) === 0) early.pop();
  const isEarly = new Set(early);
  return {
    add: add.filter((id) => !moving.has(id)),
    late: add.filter((id) => moving.has(id)),
    early,
    remove: remove.filter((id) => !isEarly.has(id)),
  };
}

/** Returns by how much an option may grow between two requests, within its own limit and that of the project. */
function growthOf({ held, add }: PlannedChange, after: ReadonlySet<string>, room: Together["room"]): Growth {
  const needed = Math.max(0, after.size - held.size);
  const peak = Math.min(newOf(add, held), Math.max(0, LIMITS.optionContextIds.value - held.size));
  const more = Math.min(room.left, Math.max(0, peak - needed));
  room.left -= more;
  const bytes = Math.max(bytesOf(after), LIMITS.optionContextBytes.value) - bytesOf(held);
  return { ids: needed + more, bytes: Math.max(0, bytes) };
}

function addStep(plan: Plan, { wish }: PlannedChange, contexts: ContextChanges, after: readonly number[]): number {
  const { optionId: id, objects } = wish;
  return plan.add(plan.make.updateOption({ id }, { contexts }, { objects, after })).id;
}

function noteLoss(plan: Plan, { wish, contents, held, add, remove }: PlannedChange): void {
  const removed = remove.filter((id) => held.has(id));
  if (contents === undefined || removed.length === 0) return;
  const about = { name: contents.option.name, _id: wish.optionId };
  const sizes = { held: contents.contexts.length, removed: removed.length, added: add.length };
  plan.losses.push(contextIdLoss(about, sizes));
  plan.removed.push({ kind: "row", row: { _id: wish.optionId, add: removed } });
}

interface ItemContextChange {
  readonly object: number;
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly set?: readonly string[];
}

/** Records for the report what each item adds and removes. The items of one option are applied in their order. */
export function noteRows(plan: Plan, asked: readonly ItemContextChange[], { option, contexts }: OptionContents): void {
  const held = new Set(contexts);
  for (const { object, add, remove, set } of asked) {
    const wanted = set ?? add;
    const kept = new Set(set);
    const gone = set === undefined ? remove : [...held].filter((id) => !kept.has(id));
    const added = wanted.filter((id) => !held.has(id)).length;
    const removed = gone.filter((id) => held.has(id)).length;
    for (const id of gone) held.delete(id);
    for (const id of wanted) held.add(id);
    const change = {
      // For an item that only removes Context IDs, `added` is omitted. For other items, it is stored even if it is 0.
      ...((set !== undefined || add.length > 0 || remove.length === 0) && {
        added,
        alreadyThere: wanted.length - added,
      }),
      ...((set !== undefined || remove.length > 0) && { removed }),
      ...(set === undefined && remove.length > 0 && { absent: remove.length - removed }),
    };
    plan.objects.amend(object, { name: option.name, ...groupMark(option), change });
  }
  for (const { object } of asked) plan.objects.amend(object, { contextCount: held.size });
}

/** The Context IDs that change in one option. No Context ID is in two of the lists. */
interface ContextWork {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Context IDs to remove first, because another group gets them in the same call. */
  readonly early?: readonly string[];
  /**
   * Context IDs to add after the first request, because another group must lose them first. If the first request has
   * nothing else to change, it adds one of them.
   */
  readonly late?: readonly string[];
}

/** By how much an option may exceed its current size while Context IDs that it loses are not removed yet. */
interface Growth {
  readonly ids: number;
  readonly bytes: number;
}

interface PartRules {
  readonly growth: Growth;
  readonly isPure?: boolean;
}

/**
 * Splits a change into parts, one for each request, which are sent in order (management-api 8.1). After the removals in
 * `early`, Context IDs are added as far as `growth` allows. After that, only as many are removed as are needed to make
 * room for the next additions. So the option never has far fewer Context IDs than before or after the change.
 */
export function contextParts(work: ContextWork, rules: PartRules): readonly ContextChanges[] {
  const cut = new Cut(work, rules);
  const parts: ContextChanges[] = [];
  for (;;) {
    const part = cut.nextPart(parts.length === 0);
    if (part === undefined) return parts;
    parts.push(part);
  }
}

type PartKind = "add" | "remove";

class Cut {
  readonly #queues: Readonly<Record<PartKind, readonly string[]>>;
  readonly #rules: PartRules;
  readonly #taken = { add: 0, remove: 0 };
  readonly #early: number;
  /** From this index on, `#queues.add` has the Context IDs of `late`. */
  readonly #late: number;
  #grownIds = 0;
  #grownBytes = 0;

  constructor({ add, remove, early = [], late = [] }: ContextWork, rules: PartRules) {
    this.#queues = { add: [...add, ...late], remove: [...early, ...remove] };
    this.#early = early.length;
    this.#late = add.length;
    this.#rules = rules;
  }

  nextPart(isFirst: boolean): ContextChanges | undefined {
    const part: Record<PartKind, string[]> = { add: [], remove: [] };
    let bytes = 0;
    for (;;) {
      const kind = this.#nextKind(part, isFirst);
      const id = kind && this.#queues[kind][this.#taken[kind]];
      if (kind === undefined || id === undefined) break;
      const size = bytesInBody(id);
      const count = part.add.length + part.remove.length;
      if (count > 0 && (count >= LIMITS.requestContextIds.value || bytes + size > PART_BYTES)) break;
      part[kind].push(id);
      bytes += size;
      this.#taken[kind] += 1;
      this.#grow(kind, id);
    }
    const { add, remove } = part;
    if (add.length + remove.length === 0) return undefined;
    return { ...(add.length > 0 && { add }), ...(remove.length > 0 && { remove }) };
  }

  #nextKind(part: Readonly<Record<PartKind, readonly string[]>>, isFirst: boolean): PartKind | undefined {
    const left = { add: this.#left("add"), remove: this.#left("remove") };
    const isEarly = this.#taken.remove < this.#early;
    const isLate = this.#taken.add >= this.#late;
    const mustWait = isFirst && isLate && left.remove + part.add.length + part.remove.length > 0;
    const canAdd = left.add > 0 && !mustWait && this.#hasRoom(left.remove);
    if (this.#rules.isPure) return this.#nextPure(part, { ...left, canAdd });
    if (isEarly || (!canAdd && left.remove > 0)) return "remove";
    return canAdd ? "add" : undefined;
  }

  /**
   * Chooses whether the next Context ID is added or removed, if each part may only add or only remove. The last Context
   * ID that the option would lose is removed after all additions.
   */
  #nextPure(
    part: Readonly<Record<PartKind, readonly string[]>>,
    { canAdd, add, remove }: { readonly canAdd: boolean; readonly add: number; readonly remove: number },
  ): PartKind | undefined {
    const canRemove = remove > (add > 0 ? 1 : 0);
    if (part.remove.length > 0) return canRemove ? "remove" : undefined;
    if (canAdd) return "add";
    return part.add.length === 0 && remove > 0 ? "remove" : undefined;
  }

  #left(kind: PartKind): number {
    return this.#queues[kind].length - this.#taken[kind];
  }

  #hasRoom(removesLeft: number): boolean {
    if (removesLeft === 0) return true;
    const { ids, bytes } = this.#rules.growth;
    const next = this.#queues.add[this.#taken.add] ?? "";
    return this.#grownIds < ids && this.#grownBytes + Buffer.byteLength(next, "utf8") <= bytes;
  }

  #grow(kind: PartKind, id: string): void {
    const sign = kind === "add" ? 1 : -1;
    this.#grownIds += sign;
    this.#grownBytes += sign * Buffer.byteLength(id, "utf8");
  }
}
