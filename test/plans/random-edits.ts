import { randomFrom } from "../faults/random.ts";
import { type FileRow, isPossible, type Thing, type World } from "./meaning.ts";

/** A source of random numbers. The same seed gives the same numbers. */
export function randomOf(seed: number) {
  const { next, below, chance } = randomFrom(seed);
  return { next, below, chance, one: <T>(list: readonly T[]): T | undefined => list[below(list.length)] };
}
export type Random = ReturnType<typeof randomOf>;

const NAMES = Array.from({ length: 14 }, (_, at) => `Name ${at}`);
const CONTEXTS = Array.from({ length: 8 }, (_, at) => `c${at}`);

const nameFor = (random: Random): string => random.one(NAMES) ?? "Name";
const contextsFor = (random: Random, least = 0): ReadonlySet<string> =>
  new Set(Array.from({ length: least + random.below(3) }, () => random.one(CONTEXTS) ?? "c"));

/** Returns an ID in the service's format that is very probably unused. */
const newId = (random: Random): string => `01J${Array.from({ length: 23 }, () => random.below(10)).join("")}`;

/** Returns a random targeting that the service would allow. */
export function randomWorld(random: Random): World {
  const world = new Map<string, Thing>();
  for (let tries = 0; tries < 10; tries += 1) edit(world, random, addOne);
  // A group that has only sub-options can only come from changes.
  for (let tries = 0; tries < 6; tries += 1) edit(world, random, change);
  return world;
}

/** Returns the same targeting after edits by other users that the service allows. */
export function editedWorld(world: World, random: Random, edits: number): World {
  const next = new Map([...world].map(([id, thing]) => [id, { ...thing }]));
  for (let count = 0; count < edits; count += 1)
    edit(next, random, random.one([addOne, change, change, change, remove]) ?? change);
  return next;
}

/** Makes a random edit. If the service would not allow the result, undoes it. */
function edit(
  world: Map<string, Thing>,
  random: Random,
  how: (world: Map<string, Thing>, random: Random) => void,
): void {
  const before = [...world].map(([id, thing]) => [id, { ...thing }] as const);
  how(world, random);
  if (isPossible(world)) return;
  world.clear();
  for (const [id, thing] of before) world.set(id, thing);
}

function addOne(world: Map<string, Thing>, random: Random): void {
  const groups = [...world.values()].filter(({ isGroup }) => isGroup);
  const isGroup = random.chance(0.35);
  const parent = !isGroup && random.chance(0.5) ? (random.one(groups)?.id ?? null) : null;
  const id = newId(random);
  const contexts = contextsFor(random, isGroup ? 1 : 0);
  world.set(id, { id, name: nameFor(random), parent, isGroup, expose: isGroup && random.chance(0.3), contexts });
}

function change(world: Map<string, Thing>, random: Random): void {
  const thing = random.one([...world.values()]);
  if (thing === undefined) return;
  const kind = random.below(4);
  if (kind === 0) thing.name = nameFor(random);
  if (kind === 1) thing.contexts = contextsFor(random);
  if (kind === 2 && thing.isGroup) thing.expose = !thing.expose;
  if (kind === 3 && !thing.isGroup) {
    const groups = [...world.values()].filter(({ isGroup }) => isGroup);
    thing.parent = random.chance(0.5) ? null : (random.one(groups)?.id ?? null);
  }
}

function remove(world: Map<string, Thing>, random: Random): void {
  const thing = random.one([...world.values()]);
  if (thing === undefined) return;
  world.delete(thing.id);
  for (const other of world.values()) if (other.parent === thing.id) other.parent = null;
}

/** A row of a file while it is edited. Its group is another row. */
interface Draft {
  id: string | undefined;
  name: string;
  parent: Draft | null;
  isGroup: boolean;
  expose: boolean | undefined;
  contexts: ReadonlySet<string> | undefined;
  atLeast: boolean;
}

/** Returns the rows of an exported file after a person has renamed, moved, filled, removed and added rows. */
export function editedFile(world: World, random: Random, edits: number): readonly FileRow[] {
  let drafts = draftsOf(world);
  for (let count = 0; count < edits; count += 1) drafts = editDraft(drafts, random);
  const ordered = drafts.flatMap((draft) =>
    draft.parent === null ? [draft, ...drafts.filter(({ parent }) => parent === draft)] : [],
  );
  return ordered.map((draft) => ({
    id: draft.id,
    name: draft.name,
    parent: draft.parent === null ? null : ordered.indexOf(draft.parent),
    isGroup: draft.isGroup,
    expose: draft.expose,
    contexts: draft.contexts,
    atLeast: draft.atLeast,
  }));
}

function draftsOf(world: World): Draft[] {
  const drafts = new Map(
    [...world.values()].map(({ id, name, isGroup, expose, contexts }): [string, Draft] => [
      id,
      { id, name, parent: null, isGroup, expose: isGroup ? expose : undefined, contexts, atLeast: false },
    ]),
  );
  for (const { id, parent } of world.values()) {
    const draft = drafts.get(id);
    if (draft !== undefined && parent !== null) draft.parent = drafts.get(parent) ?? null;
  }
  return [...drafts.values()];
}

function editDraft(drafts: Draft[], random: Random): Draft[] {
  const draft = random.one(drafts);
  const free = NAMES.filter((name) => drafts.every((one) => one.name !== name));
  const groups = drafts.filter(({ isGroup }) => isGroup);
  const kind = random.below(9);
  if (kind === 0 || draft === undefined) {
    const isGroup = random.chance(0.3);
    const name = random.one(free);
    if (name === undefined) return drafts;
    const parent = isGroup || random.chance(0.5) ? null : (random.one(groups) ?? null);
    const contexts = contextsFor(random, isGroup ? 1 : 0);
    return [
      ...drafts,
      { id: undefined, name, parent, isGroup, expose: isGroup ? false : undefined, contexts, atLeast: false },
    ];
  }
  if (kind === 1) draft.name = random.one(free) ?? draft.name;
  if (kind === 2) swap(draft, random.one(drafts), "name");
  if (kind === 3) swap(draft, random.one(groups), "contexts");
  if (kind === 4) draft.contexts = contextsFor(random);
  if (kind === 5) Object.assign(draft, { contexts: contextsFor(random), atLeast: true });
  if (kind === 6 && !draft.isGroup) draft.parent = random.chance(0.5) ? null : (random.one(groups) ?? null);
  if (kind === 7 && draft.isGroup) draft.expose = draft.expose !== true;
  if (kind === 8 && random.chance(0.5)) return drafts.filter((one) => one !== draft && one.parent !== draft);
  if (kind === 8) draft.id = undefined;
  return drafts;
}

/** Swaps the names or Context IDs of two rows. */
function swap(one: Draft, other: Draft | undefined, field: "name" | "contexts"): void {
  if (other === undefined) return;
  const before = { name: one.name, contexts: one.contexts, atLeast: one.atLeast };
  if (field === "name") Object.assign(one, { name: other.name });
  else Object.assign(one, { contexts: other.contexts, atLeast: other.atLeast });
  Object.assign(
    other,
    field === "name" ? { name: before.name } : { contexts: before.contexts, atLeast: before.atLeast },
  );
}
