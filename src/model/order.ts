import { type Batch, type Item, type KnownOption, ownCount, type Ref, type UpdateItem } from "./targeting-model.ts";
import { type Creation, isNothing, type Left, type Work } from "./work.ts";

const OPERATIONS = ["update", "create", "delete"] as const;

/**
 * The next requests that may be sent, of which one is to be chosen; empty where nothing is left, or nothing can go on.
 * With `inParts` those are offered, too, that do a part of a change now and the rest later.
 */
function candidates(work: Work, inParts = false): readonly (readonly Item[])[] {
  const found: Item[][] = [];
  for (const isPart of [false, true]) {
    for (const operation of OPERATIONS) {
      const { items } = request(work, operation, isPart);
      if (items.length > 0 && !found.some((other) => isSame(other, items))) found.push(items);
    }
    if (found.length > 0 && !inParts) return found;
  }
  if (found.length > 0) return found;
  // Each knot by itself takes fewer placeholders, all of them at once fewer requests.
  return [false, true].map((all) => placeholders(work, all)).filter((items) => items.length > 0);
}

function request(work: Work, operation: (typeof OPERATIONS)[number], isPart: boolean): Batch {
  const batch = work.newBatch();
  if (operation === "update") update(work, batch, isPart);
  else if (operation === "create") create(work, batch, isPart);
  else remove(work, batch);
  return batch;
}

function update(work: Work, batch: Batch, isPart: boolean): void {
  const seen = new Set<Ref>();
  const visit = (first: Ref): void => {
    // The holder of the wanted name goes first, where that is possible: a chain of any length leaves at once.
    const chain: Ref[] = [];
    for (let ref: Ref | undefined = first; ref !== undefined && !seen.has(ref); ) {
      const option = work.model.options.get(ref);
      if (option === undefined || work.isGoing(ref)) break;
      const { name } = work.left(ref, option);
      const cycle = name === undefined ? undefined : cycleFrom(work, ref);
      if (cycle !== undefined) {
        for (const member of cycle) seen.add(member);
        updateCycle(work, cycle, batch, isPart);
        break;
      }
      seen.add(ref);
      chain.push(ref);
      ref = name === undefined ? undefined : batch.holderOf(name);
    }
    for (const ref of chain.toReversed()) updateOne(work, ref, batch, isPart);
  };
  for (const ref of work.changes.keys()) visit(ref);
  for (const ref of work.held) visit(ref);
}

function updateOne(work: Work, ref: Ref, batch: Batch, isPart: boolean): void {
  const option = work.model.options.get(ref);
  const item = option && itemFor(work, ref, option, work.left(ref, option), { batch, isPart });
  if (item !== undefined) batch.take(item);
}

/**
 * Names that are swapped leave together, once nothing else is left of their options: the first one gets a temporary
 * name. Each member wants the name of the next one, and the last one that of the first.
 */
function updateCycle(work: Work, cycle: readonly Ref[], batch: Batch, isPart: boolean): void {
  let isReady = true;
  for (const ref of cycle) {
    const option = work.model.options.get(ref);
    if (option === undefined) return;
    const { name: _, ...rest } = work.left(ref, option);
    const item = itemFor(work, ref, option, rest, { batch, isPart });
    if (item !== undefined) batch.take(item);
    if (item !== undefined || !isNothing(rest)) isReady = false;
  }
  const [first, ...others] = cycle;
  if (!isReady || first === undefined) return;
  const none = { add: [], remove: [] };
  batch.take({ op: "update", ref: first, name: work.options.placeholders.nameOf(first), ...none });
  for (const ref of others.toReversed()) {
    const name = work.wantedName(ref);
    if (name !== undefined) batch.take({ op: "update", ref, name, ...none });
  }
}

/** The options whose names go round, from this one on. */
function cycleFrom(work: Work, start: Ref): readonly Ref[] | undefined {
  const cycle: Ref[] = [start];
  const seen = new Set(cycle);
  for (let ref = start; ; ) {
    const wanted = work.wantedName(ref);
    const next = wanted === undefined ? undefined : work.model.holders.get(wanted);
    if (next === start && ref !== start) return cycle;
    if (next === undefined || seen.has(next)) return undefined;
    seen.add(next);
    cycle.push(next);
    ref = next;
  }
}

/** The item that does what is left to an option, as far as it may be sent now; undefined where nothing may. */
function itemFor(
  work: Work,
  ref: Ref,
  option: KnownOption,
  left: Left,
  { batch, isPart }: { readonly batch: Batch; readonly isPart: boolean },
): UpdateItem | undefined {
  const hasName = left.name !== undefined && batch.holderOf(left.name) === undefined;
  const mayMove =
    left.parent !== undefined &&
    (left.parent === null || work.model.options.has(left.parent)) &&
    (option.parent === null || batch.mayLeave(option.parent));
  const add = option.group ? left.add.filter((id) => batch.mayOwn(id, ref)) : left.add;
  const remove = option.group ? removable(work, ref, option, { ...left, add }, batch) : left.remove;
  const isWhole =
    hasName === (left.name !== undefined) &&
    mayMove === (left.parent !== undefined) &&
    add.length === left.add.length &&
    left.remove.every((id) => remove.includes(id));
  const item: UpdateItem = {
    op: "update",
    ref,
    ...(hasName && left.name !== undefined && { name: left.name }),
    ...(mayMove && left.parent !== undefined && { parent: left.parent }),
    ...(left.expose !== undefined && { expose: left.expose }),
    ...{ add, remove },
  };
  return (isWhole || isPart) && !isNothing(item) ? item : undefined;
}

/** The own Context IDs that a group may lose now, its placeholder among them once something stays in it. */
function removable(work: Work, ref: Ref, option: KnownOption, left: Left, batch: Batch): readonly string[] {
  const placeholder = work.options.placeholders.contextIdOf(ref);
  const isFilled = work.held.has(ref) && hasContent(work, ref, option, left);
  const remove = isFilled ? [...left.remove, placeholder] : left.remove;
  const after = ownCount(option) + left.add.length - remove.length;
  if (remove.length === 0 || batch.mayHold(ref, after)) return remove;
  // Something has to stay until other content comes: what no other group wants.
  const wanted = work.wantedContexts();
  const staying = remove.find((id) => !wanted.has(id)) ?? remove[0];
  return remove.filter((id) => id !== staying);
}

/** Whether a group has something now that stays, its placeholder aside. */
function hasContent(work: Work, ref: Ref, option: KnownOption, { add, remove }: Left): boolean {
  const going = new Set([...remove, work.options.placeholders.contextIdOf(ref)]);
  if (add.length + option.others > 0 || [...option.contexts].some((id) => !going.has(id))) return true;
  return [...work.model.inside(ref)].some((child) => {
    const known = work.model.options.get(child);
    return known !== undefined && !work.isGoing(child) && work.left(child, known).parent === undefined;
  });
}

function create(work: Work, batch: Batch, isPart: boolean): void {
  const open = work.openCreations();
  const inside = new Map<Ref, Creation[]>();
  for (const one of open) {
    if (one.parent !== null) inside.set(one.parent, [...(inside.get(one.parent) ?? []), one]);
  }
  for (const { ref, name, group, parent, expose, contexts } of open) {
    if (batch.holderOf(name) !== undefined || (parent !== null && !work.model.options.has(parent))) continue;
    const own = group ? contexts.filter((id) => batch.mayOwn(id, ref)) : [...contexts];
    if (own.length < contexts.length && !isPart) continue;
    const children = (group ? (inside.get(ref) ?? []) : []).filter(
      (child) => child.name !== name && batch.holderOf(child.name) === undefined,
    );
    // What moves into it can only come once it exists.
    if (group && contexts.length === 0 && !inside.has(ref)) own.push(work.options.placeholders.contextIdOf(ref));
    if (!batch.hasRoomFor(1)) return;
    while (!batch.hasRoomFor(1 + children.length)) children.pop();
    if (group && own.length + children.length === 0) continue;
    batch.take({ op: "create", ref, name, group, parent, expose, contexts: own, children });
  }
}

function remove(work: Work, batch: Batch): void {
  const going = [...work.changes.values()].flatMap(({ kind, ref }) => {
    const option = kind === "delete" ? work.model.options.get(ref) : undefined;
    return option === undefined ? [] : [{ ref, option }];
  });
  const taken = new Set<Ref>();
  for (const { ref, option } of going) {
    if (!option.group) continue;
    const inside = [...work.model.inside(ref)];
    // Deleted with sub-options inside, the group would make them top-level options: those that are to leave go before.
    const isFree = inside.every((child) => {
      const change = work.changes.get(child);
      return change === undefined || change.kind === "delete" || change.parent === undefined;
    });
    if (!isFree) continue;
    const also = inside.filter((child) => work.isGoing(child));
    // The group before its last sub-option, so that it is never empty, and after the others, so that they do not move.
    const order = also.length === inside.length ? [...also.slice(0, -1), ref, ...also.slice(-1)] : [...also, ref];
    for (const one of order) {
      batch.take({ op: "delete", ref: one });
      taken.add(one);
    }
  }
  for (const { ref, option } of going) {
    if (taken.has(ref) || option.group) continue;
    if (option.parent === null || batch.mayLeave(option.parent)) batch.take({ op: "delete", ref });
  }
}

/** Nothing can go on: names and groups wait for each other. One knot gets a placeholder, or `all` of them. */
function placeholders(work: Work, all: boolean): readonly Item[] {
  const batch = work.newBatch();
  freeNames(work, batch);
  if (all || batch.items.length === 0) freeContexts(work, batch, all);
  if (all || batch.items.length === 0) fillGroups(work, batch);
  if (batch.items.length === 0) fillNewGroups(work, batch);
  return batch.items;
}

function isSame(one: readonly Item[], other: readonly Item[]): boolean {
  return one.length === other.length && JSON.stringify(one) === JSON.stringify(other);
}

/** Gives temporary names to options that are deleted later and have a name that others want. */
function freeNames(work: Work, batch: Batch): void {
  const { model, options } = work;
  for (const { ref, kind } of work.changes.values()) {
    const wanted = work.wantedName(ref);
    const option = model.options.get(ref);
    if (wanted === undefined || option?.name === wanted || (kind === "update" && option === undefined)) continue;
    const holder = batch.holderOf(wanted);
    if (holder === undefined || !work.isGoing(holder)) continue;
    batch.take({ op: "update", ref: holder, name: options.placeholders.nameOf(holder), add: [], remove: [] });
  }
}

/** Takes Context IDs that another group wants from groups that would be empty without them, or are deleted later. */
function freeContexts(work: Work, batch: Batch, all: boolean): void {
  const { model, options } = work;
  const wanted = work.wantedContexts();
  const taken = new Set(batch.items.map(({ ref }) => ref));
  for (const [ref, option] of model.options) {
    if (!option.group || taken.has(ref)) continue;
    const given = work.isGoing(ref) ? [...option.contexts] : work.left(ref, option).remove;
    const remove = given.filter((id) => wanted.has(id));
    if (remove.length === 0) continue;
    const isEmptied = !batch.mayHold(ref, ownCount(option) - remove.length);
    const add = isEmptied ? [options.placeholders.contextIdOf(ref)] : [];
    batch.take({ op: "update", ref, add, remove });
    if (!all) return;
  }
}

/** Fills groups that sub-options leave before others come. */
function fillGroups(work: Work, batch: Batch): void {
  const { model, options } = work;
  const filled = new Set(batch.items.map(({ ref }) => ref));
  for (const ref of work.changes.keys()) {
    const option = model.options.get(ref);
    const parent = option?.parent ?? null;
    if (option === undefined || parent === null || filled.has(parent) || batch.mayLeave(parent)) continue;
    const { parent: wanted } = work.left(ref, option);
    const mayGo = wanted === null || (wanted !== undefined && model.options.has(wanted));
    if (!work.isGoing(ref) && !mayGo) continue;
    filled.add(parent);
    batch.take({ op: "update", ref: parent, add: [options.placeholders.contextIdOf(parent)], remove: [] });
  }
}

/** Creates groups whose content is still elsewhere. */
function fillNewGroups(work: Work, batch: Batch): void {
  for (const { ref, name, group, parent, expose } of work.openCreations()) {
    if (!group || batch.holderOf(name) !== undefined) continue;
    if (!batch.hasRoomFor(1)) return;
    const contexts = [work.options.placeholders.contextIdOf(ref)];
    batch.take({ op: "create", ref, name, group, parent, expose, contexts, children: [] });
  }
}

/** Above this many options and changes the first candidate is taken, without looking where each leads. */
const LOOKED_AHEAD = 2000;
/** A way to the end that takes more requests than this is not looked at any further. */
const LONGEST_LOOK = 200;

/** The requests that lead to what is wanted, or as far as they lead where nothing can go on. */
export interface PlannedWay {
  readonly requests: readonly (readonly Item[])[];
  /** Whether everything that is wanted is there after them. */
  readonly isWhole: boolean;
}

/**
 * Plays a work to its end: the requests, one after the other, if the service accepts all of them. Of several that could
 * be next the one is taken from which the end is nearest. Changes the model of the work.
 */
export function planRequests(work: Work): PlannedWay {
  const requests: (readonly Item[])[] = [];
  const looksAhead = work.model.options.size + work.changes.size <= LOOKED_AHEAD;
  // Each change needs at most a placeholder before it and one after it.
  const most = 3 * work.changes.size + 3;
  while (!work.isOver() && requests.length < most) {
    const next = looksAhead ? nearest(work) : candidates(work)[0];
    if (next === undefined) return { requests, isWhole: false };
    requests.push(next);
    work.done(next);
  }
  return { requests, isWhole: work.isOver() };
}

/** The candidate from which the end is nearest; the first one of several. */
function nearest(work: Work): readonly Item[] | undefined {
  const found = candidates(work, true);
  if (found.length < 2) return found[0];
  let best: readonly Item[] | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of found) {
    const trial = work.copy();
    trial.done(candidate);
    const requests = requestsToEnd(trial);
    if (best !== undefined && requests >= fewest) continue;
    best = candidate;
    fewest = requests;
  }
  return best;
}

/** How many requests it takes to the end where the first candidate is taken each time. */
function requestsToEnd(work: Work): number {
  for (let sent = 0; sent < LONGEST_LOOK; sent += 1) {
    if (work.isOver()) return sent;
    const [first] = candidates(work);
    if (first === undefined) break;
    work.done(first);
  }
  return Number.POSITIVE_INFINITY;
}
