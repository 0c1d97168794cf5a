import { LIMITS } from "../../spec/limits.ts";
import type { ContextChanges } from "../../spec/records.ts";
import type { OptionContents } from "../option-contents.ts";
import type { Reason } from "../work.ts";
import { parts, tooManyForOption } from "./checks.ts";
import type { Plan } from "./plan.ts";

/** What a call wants of one option, over all its items. */
export interface ContextWish {
  readonly optionId: string;
  readonly objects: number[];
  add: Set<string>;
  remove: Set<string>;
  set: Set<string> | undefined;
}

/** A wish, and what it comes to: against what the option holds, where that was read. */
interface Change {
  readonly wish: ContextWish;
  readonly contents: OptionContents | undefined;
  readonly held: ReadonlySet<string>;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/**
 * Plans the steps of wishes about different options; `contents` is what was read of some of them, or why that cannot be.
 * What more than one request must carry travels in parts.
 */
export function planContextChanges(
  plan: Plan,
  wishes: readonly ContextWish[],
  contents: ReadonlyMap<string, OptionContents | Reason>,
): void {
  const changes = wishes.flatMap((wish) => {
    const read = contents.get(wish.optionId);
    if (read === undefined || !("code" in read)) return changeOf(wish, read);
    for (const object of wish.objects) plan.fail(object, read);
    return [];
  });
  for (const change of changes) {
    noteLoss(plan, change);
    planChange(plan, change);
  }
}

function changeOf(wish: ContextWish, contents: OptionContents | undefined): Change {
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

/** In one step where one request can carry it, else in parts. */
function planChange(plan: Plan, change: Change): void {
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
  if (tooMany !== undefined && after.size > held.size) for (const object of wish.objects) plan.fail(object, tooMany);
  else give(plan, change, takeAway(plan, change));
}

/**
 * What goes leaves first, since reductions are never refused (management-api 8.2), but for one Context ID where the
 * option would be empty in between. Gives the last of the steps, where there are any.
 */
function takeAway(plan: Plan, change: Change): readonly number[] {
  const remove = change.remove.filter((id) => change.held.has(id));
  if (wouldBeEmpty(change)) remove.pop();
  let after: readonly number[] = [];
  if (remove.length > 0) for (const part of parts(remove)) after = [addStep(plan, change, { remove: part }, after)];
  return after;
}

/** An option group without sub-options may not be empty (management-api 7.4 case 7). */
function wouldBeEmpty({ contents, held, add, remove }: Change): boolean {
  const isKeptByChildren = (contents?.option.childCount ?? 0) > 0;
  return (
    !isKeptByChildren && add.some((id) => !held.has(id)) && remove.filter((id) => held.has(id)).length === held.size
  );
}

/** What comes after what goes has left: after the steps `first`. */
function give(plan: Plan, change: Change, first: readonly number[]): void {
  const add = change.add.filter((id) => !change.held.has(id));
  const last = wouldBeEmpty(change) ? change.remove.filter((id) => change.held.has(id)).slice(-1) : [];
  const sequence: ContextChanges[] = add.length === 0 ? [] : parts(add).map((part) => ({ add: part }));
  if (last.length > 0) {
    const final = sequence.pop()?.add ?? [];
    const hasRoom = final.length < LIMITS.requestContextIds.value;
    if (hasRoom) sequence.push({ add: final, remove: last });
    else sequence.push({ add: final.slice(0, -1) }, { add: final.slice(-1), remove: last });
  }
  if (sequence.length === 0 && first.length === 0) sequence.push({ add: [] });
  let after = first;
  for (const contexts of sequence) after = [addStep(plan, change, contexts, after)];
}

function addStep(plan: Plan, { wish }: Change, contexts: ContextChanges, after: readonly number[]): number {
  const { optionId: id, objects } = wish;
  const fields = after.length > 0 ? { objects, after } : { objects };
  return plan.add(plan.make.updateOption({ id }, { contexts }, fields)).id;
}

function noteLoss(plan: Plan, { wish, contents, held, add, remove }: Change): void {
  const removed = remove.filter((id) => held.has(id));
  if (contents === undefined || removed.length === 0) return;
  const empties = removed.length === contents.contexts.length && add.length === 0;
  plan.losses.push({
    name: contents.option.name,
    _id: wish.optionId,
    kind: "contextIds",
    count: removed.length,
    ...(empties ? { empties } : {}),
  });
  plan.removed.push({ kind: "row", row: { _id: wish.optionId, add: removed } });
}
