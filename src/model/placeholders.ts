import { type Batch, ownCount } from "./targeting-model.ts";
import type { Work } from "./work.ts";

/** Gives temporary names to options that are deleted later and have a name that others want. */
export function freeNames(work: Work, batch: Batch): void {
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
export function freeContexts(work: Work, batch: Batch, all: boolean): void {
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
export function fillGroups(work: Work, batch: Batch): void {
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
export function fillNewGroups(work: Work, batch: Batch): void {
  for (const { ref, name, group, parent, expose } of work.openCreations()) {
    if (!group || batch.holderOf(name) !== undefined) continue;
    if (!batch.hasRoomFor(1)) return;
    const contexts = [work.options.placeholders.contextIdOf(ref)];
    batch.take({ op: "create", ref, name, group, parent, expose, contexts, children: [] });
  }
}
