import type { Change } from "../../src/model/targeting-model.ts";
import { randomFrom } from "../faults/random.ts";

/** An option in the form of these tests. */
export interface TreeOption {
  name: string;
  readonly group: boolean;
  parent: string | null;
  expose: boolean;
  readonly contexts: Set<string>;
}

/** The options of a targeting, by ID. */
export type Tree = Map<string, TreeOption>;

/** The options before and after, and the changes between them. */
export interface Case {
  readonly before: Tree;
  readonly after: Tree;
  readonly changes: readonly Change[];
}

/** A source of random decisions. The same seed gives the same decisions. */
export function randomOf(seed: number) {
  const { next, between, chance } = randomFrom(seed);
  const shuffled = <T>(list: readonly T[]): T[] =>
    list
      .map((value) => ({ value, at: next() }))
      .sort((one, other) => one.at - other.at)
      .map(({ value }) => value);
  return {
    between,
    shuffled,
    chance,
    pick: <T>(first: T, ...others: readonly T[]): T => [first, ...others][between(0, others.length)] ?? first,
  };
}
export type Random = ReturnType<typeof randomOf>;

const option = (name: string, group: boolean, parent: string | null, contexts: readonly string[] = []): TreeOption => ({
  ...{ name, group, parent, expose: false },
  contexts: new Set(contexts),
});

function copyWithout(tree: Tree, isGone: (id: string) => boolean): Tree {
  const copy: Tree = new Map();
  for (const [id, one] of tree) if (!isGone(id)) copy.set(id, { ...one, contexts: new Set(one.contexts) });
  for (const one of copy.values()) if (one.parent !== null && !copy.has(one.parent)) one.parent = null;
  return copy;
}

const groupsIn = (tree: Tree): readonly string[] => [...tree].flatMap(([id, { group }]) => (group ? [id] : []));

/** Gives each empty group a new Context ID, because the service has no empty groups. */
function fillEmpty(tree: Tree, fresh: () => string): void {
  const filled = new Set([...tree.values()].flatMap(({ parent }) => parent ?? []));
  for (const [id, { group, contexts }] of tree)
    if (group && contexts.size === 0 && !filled.has(id)) contexts.add(fresh());
}

/** Gives some options new names: those of deleted options, of each other, or unused ones. */
function dealNames(random: Random, before: Tree, after: Tree, share: number): void {
  const renamed = [...after].filter(([id]) => !before.has(id) || random.chance(share));
  const names = [
    ...[...before].flatMap(([id, { name }]) => (after.has(id) ? [] : [name])),
    ...renamed.flatMap(([id]) => before.get(id)?.name ?? []),
    ...Array.from({ length: random.between(0, 2) }, (_, at) => `fresh ${at}`),
  ];
  while (names.length < renamed.length) names.push(`more ${names.length}`);
  const dealt = random.shuffled(names);
  for (const [, one] of renamed) one.name = dealt.pop() ?? one.name;
}

/** Returns random options, and others that have much in common with them. */
export function randomCase(random: Random): Case {
  const share = random.pick(0.15, 0.4, 0.8, 1);
  const size = random.pick(1, 1, 1, 2, 4);
  let made = 0;
  const fresh = (): string => `fresh ${made++}`;
  const before: Tree = new Map();
  for (let count = random.between(0, 3 * size); count > 0; count -= 1) {
    const group = option(`Group ${count}`, true, null);
    group.expose = random.chance(0.5);
    before.set(`g${count}`, group);
  }
  const groups = groupsIn(before);
  const alphabet = Array.from({ length: 4 + 4 * size }, (_, at) => `c${at}`);
  const free = random.shuffled(alphabet);
  for (const id of groups)
    for (const context of free.splice(0, random.pick(0, 0, 1, 1, 2, 3))) before.get(id)?.contexts.add(context);
  const anyGroup = (some: readonly string[]): string | null => random.shuffled(some)[0] ?? null;
  const someContexts = (most: number) => random.shuffled(alphabet).slice(0, random.between(0, most));
  for (let count = random.between(0, 5 * size); count > 0; count -= 1)
    before.set(
      `o${count}`,
      option(`Option ${count}`, false, random.chance(0.6) ? anyGroup(groups) : null, someContexts(3)),
    );
  fillEmpty(before, fresh);
  const after = copyWithout(before, () => random.chance(share * 0.3));
  const isMore = (most: number): number => (random.chance(share) ? random.between(0, most) : 0);
  for (let count = isMore(2 * size); count > 0; count -= 1) after.set(`ng${count}`, option("", true, null));
  for (let count = isMore(3 * size); count > 0; count -= 1)
    after.set(`no${count}`, option("", false, null, someContexts(2)));
  const groupsAfter = groupsIn(after);
  for (const [id, one] of after) {
    const isNew = !before.has(id);
    if (!one.group && (isNew || random.chance(share * 0.7)))
      one.parent = random.chance(0.7) ? anyGroup(groupsAfter) : null;
    if (one.group && !isNew && random.chance(share * 0.3)) one.expose = !one.expose;
    if (one.group || isNew || !random.chance(share * 0.5)) continue;
    for (const context of someContexts(2)) if (!one.contexts.delete(context)) one.contexts.add(context);
  }
  dealNames(random, before, after, share * 0.7);
  const dealt = groupsAfter.filter((id) => !before.has(id) || random.chance(share));
  const gone = [...before].flatMap(([id, one]) => (one.group && !after.has(id) ? [...one.contexts] : []));
  const pool = new Set([...dealt.flatMap((id) => [...(after.get(id)?.contexts ?? [])]), ...gone, ...free]);
  for (const id of dealt) after.get(id)?.contexts.clear();
  for (const context of random.shuffled([...pool])) {
    const to = random.chance(0.7) ? anyGroup(dealt) : null;
    if (to !== null) after.get(to)?.contexts.add(context);
  }
  fillEmpty(after, fresh);
  return { before, after, changes: random.shuffled(changesBetween(before, after)) };
}

/** Returns groups with one sub-option or Context ID each, which all swap places or names. */
export function tightCase(random: Random): Case {
  const before: Tree = new Map();
  const count = random.between(2, 5);
  const oneContext = () => (random.chance(0.5) ? [`c${random.between(0, count)}`] : []);
  for (let at = 0; at < count; at += 1) {
    const holds = random.chance(0.5);
    before.set(`g${at}`, option(`Group ${at}`, true, null, holds ? [`c${at}`] : []));
    if (!holds) before.set(`o${at}`, option(`Option ${at}`, false, `g${at}`, oneContext()));
  }
  for (let at = random.between(0, 2); at > 0; at -= 1)
    before.set(`t${at}`, option(`Top ${at}`, false, null, oneContext()));
  const after = copyWithout(before, () => random.chance(0.12));
  for (let at = random.pick(0, 0, 1, 2); at > 0; at -= 1) after.set(`ng${at}`, option("", true, null));
  if (random.chance(0.33)) after.set("no", option("", false, null));
  const groups = groupsIn(after);
  const owned = [...before.values()].flatMap(({ group, contexts }) => (group ? [...contexts] : []));
  for (const id of groups) after.get(id)?.contexts.clear();
  const places = random.shuffled(groups);
  const place = (): string | null => places.pop() ?? (random.chance(0.6) ? (random.shuffled(groups)[0] ?? null) : null);
  const moving = [...after.values()].filter(({ group }) => !group);
  for (const content of random.shuffled([...owned, ...moving])) {
    const to = place();
    if (typeof content !== "string") content.parent = to;
    else if (to !== null) after.get(to)?.contexts.add(content);
  }
  let made = 0;
  fillEmpty(after, () => `fresh ${made++}`);
  dealNames(random, before, after, 0.4);
  return { before, after, changes: random.shuffled(changesBetween(before, after)) };
}

/** Returns the changes that lead from some options to others. */
export function changesBetween(before: Tree, after: Tree): readonly Change[] {
  const changes: Change[] = [];
  for (const [ref, now] of before) {
    const then = after.get(ref);
    if (then === undefined) {
      changes.push({ kind: "delete", ref });
      continue;
    }
    const add = [...then.contexts].filter((id) => !now.contexts.has(id));
    const remove = [...now.contexts].filter((id) => !then.contexts.has(id));
    const fields = {
      ...(then.name !== now.name && { name: then.name }),
      ...(then.parent !== now.parent && { parent: then.parent }),
      ...(then.expose !== now.expose && { expose: then.expose }),
      ...(add.length > 0 && { add }),
      ...(remove.length > 0 && { remove }),
    };
    if (Object.keys(fields).length > 0) changes.push({ kind: "update", ref, ...fields });
  }
  for (const [ref, { name, group, parent, expose, contexts }] of after) {
    if (!before.has(ref)) changes.push({ kind: "create", ref, name, group, parent, expose, contexts: [...contexts] });
  }
  return changes;
}
