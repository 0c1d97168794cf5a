import { groupedBy } from "../platform/by-key.ts";
import {
  type Batch,
  type Item,
  isNothing,
  type KnownOption,
  type Left,
  ownCount,
  type Ref,
  type UpdateItem,
  type Work,
} from "./targeting-model.ts";

/** The functions that add updates, creations or deletions to a request, in the order in which they are tried. */
const FILLERS: readonly ((work: Work, batch: Batch, isPart: boolean) => void)[] = [update, create, remove];

/**
 * Returns the requests that are possible next. Requests that make only a part of a change are included with `inParts`,
 * or if there are no others.
 */
function candidates(work: Work, inParts = false): readonly (readonly Item[])[] {
  const found: Item[][] = [];
  for (const isPart of [false, true]) {
    for (const fill of FILLERS) {
      const batch = work.newBatch();
      fill(work, batch, isPart);
      const { items } = batch;
      if (items.length > 0 && !found.some((other) => isSame(other, items))) found.push(items);
    }
    if (found.length > 0 && !inParts) return found;
  }
  if (found.length > 0) return found;
  // No change is possible, so placeholders must resolve the deadlocks. Resolving only the first kind of deadlock may
  // need fewer placeholders, and resolving all may need fewer requests, so both are candidates.
  return [false, true].map((all) => placeholders(work, all)).filter((items) => items.length > 0);
}

function update(work: Work, batch: Batch, isPart: boolean): void {
  const seen = new Set<Ref>();
  const visit = (first: Ref): void => {
    // If another option still has the wanted name, that option is renamed first. So a single request can rename a whole
    // chain.
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
 * Adds changes of options that swap names in a cycle. Renames are added only if no other change of these options is
 * left, and begin with a temporary name.
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
  const remove = option.group ? removableContextIds(work, ref, option, { ...left, add }, batch) : left.remove;
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
    add,
    remove,
  };
  return (isWhole || isPart) && !isNothing(item) ? item : undefined;
}

/** Returns the Context IDs that a group may lose now. If it keeps other content, its placeholder is one of them. */
function removableContextIds(work: Work, ref: Ref, option: KnownOption, left: Left, batch: Batch): readonly string[] {
  const placeholder = work.options.placeholders.contextIdOf(ref);
  const isFilled = work.held.has(ref) && hasContent(work, ref, option, left);
  const remove = isFilled ? [...left.remove, placeholder] : left.remove;
  const after = ownCount(option) + left.add.length - remove.length;
  if (remove.length === 0 || batch.mayHold(ref, after)) return remove;
  // Until the group gets other content, it must keep one Context ID, preferably one that no other group needs.
  const wanted = work.wantedContexts();
  const staying = remove.find((id) => !wanted.has(id)) ?? remove[0];
  return remove.filter((id) => id !== staying);
}

/** Returns whether a group keeps any content besides its placeholder. */
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
  const inside = groupedBy(open, ({ parent }) => parent);
  for (const { ref, name, group, parent, expose, contexts } of open) {
    if (batch.holderOf(name) !== undefined || (parent !== null && !work.model.options.has(parent))) continue;
    const own = group ? contexts.filter((id) => batch.mayOwn(id, ref)) : [...contexts];
    if (own.length < contexts.length && !isPart) continue;
    const children = (group ? (inside.get(ref) ?? []) : []).filter(
      (child) => child.name !== name && batch.holderOf(child.name) === undefined,
    );
    // A group cannot be created empty, and existing options can move into it only once it exists. So it is created with
    // a placeholder.
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
    // When a group is deleted, its sub-options move to the top level. So sub-options with another planned place must be
    // moved there first.
    const isFree = inside.every((child) => {
      const change = work.changes.get(child);
      return change === undefined || change.kind === "delete" || change.parent === undefined;
    });
    if (!isFree) continue;
    const also = inside.filter((child) => work.isGoing(child));
    // If all sub-options are deleted, the group is deleted just before the last of them, so that it is never empty. If
    // this last one is deleted only in the next request, it is at the top level until then.
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

/**
 * Returns a request that resolves deadlocks with placeholders. A deadlock is about a name, about a Context ID, or about
 * a group that would become empty. Without `all`, resolves only the first of these kinds that occurs, and takes Context
 * IDs from only one group. If none occurs, creates new groups with a placeholder.
 */
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

/** Gives temporary names to options that will be deleted, if other options need their names before that. */
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

/** Removes Context IDs from groups if other groups will get them. A group that this empties gets a placeholder. */
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

/** Adds a placeholder to each group that would lose its last sub-option before it gets another one. */
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

/** Creates groups with a placeholder if their content is still in other groups. */
function fillNewGroups(work: Work, batch: Batch): void {
  for (const { ref, name, group, parent, expose } of work.openCreations()) {
    if (!group || batch.holderOf(name) !== undefined) continue;
    if (!batch.hasRoomFor(1)) return;
    const contexts = [work.options.placeholders.contextIdOf(ref)];
    batch.take({ op: "create", ref, name, group, parent, expose, contexts, children: [] });
  }
}

/** With at most this many options and changes together, candidates are compared. With more, the first one is used. */
const MAX_LOOKAHEAD_SIZE = 2000;
const MAX_LOOKAHEAD_REQUESTS = 200;

/**
 * Plans all requests, and applies them to the model of `work`. If there are few options and changes, chooses the
 * candidates after which the fewest requests are left. `isWhole` is false if some changes could not be planned.
 */
export function planRequests(work: Work) {
  const requests: (readonly Item[])[] = [];
  const looksAhead = work.model.options.size + work.changes.size <= MAX_LOOKAHEAD_SIZE;
  // Besides its own request, a change needs at most two: one adds a placeholder, and one removes it.
  const most = 3 * work.changes.size + 3;
  while (!work.isOver() && requests.length < most) {
    const next = looksAhead ? nearest(work) : candidates(work)[0];
    if (next === undefined) return { requests, isWhole: false };
    requests.push(next);
    work.done(next);
  }
  return { requests, isWhole: work.isOver() };
}

function nearest(work: Work): readonly Item[] | undefined {
  const found = candidates(work, true);
  if (found.length < 2) return found[0];
  let best: readonly Item[] | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of found) {
    const trial = work.copy();
    trial.done(candidate);
    const requests = countRemainingRequests(trial);
    if (best !== undefined && requests >= fewest) continue;
    best = candidate;
    fewest = requests;
  }
  return best;
}

/**
 * Returns how many requests are left if the first possible one is always taken. Infinity if these requests cannot make
 * all changes, or if there are too many of them (`MAX_LOOKAHEAD_REQUESTS`).
 */
function countRemainingRequests(work: Work): number {
  for (let sent = 0; sent < MAX_LOOKAHEAD_REQUESTS; sent += 1) {
    if (work.isOver()) return sent;
    const [first] = candidates(work);
    if (first === undefined) break;
    work.done(first);
  }
  return Number.POSITIVE_INFINITY;
}
