// An independent definition of what a desired state means, written from its documentation without the code. Tests
// compare it with what plans do. Imports nothing from src/.

/** An option of the model. */
export interface Thing {
  readonly id: string;
  name: string;
  parent: string | null;
  readonly isGroup: boolean;
  expose: boolean;
  contexts: ReadonlySet<string>;
}

/** A targeting of the model: its options by ID. */
export type World = ReadonlyMap<string, Thing>;

/** An option in a file. `parent` is null or the position of another row. */
export interface FileRow {
  readonly id?: string | undefined;
  readonly name: string;
  readonly parent: number | null;
  readonly isGroup: boolean;
  readonly expose?: boolean | undefined;
  readonly contexts?: ReadonlySet<string> | undefined;
  readonly atLeast?: boolean | undefined;
}

/** Returns whether two sets are equal. */
export const same = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && [...one].every((each) => other.has(each));

/**
 * Returns what a file leads to: the targeting afterwards, or that both sides changed the same field. New options have
 * the ID `new NAME`.
 */
export function meaningOf(
  rows: readonly FileRow[],
  base: World,
  service: World,
  prune: boolean,
): { readonly world: Map<string, Thing>; readonly conflicts: number; readonly refused: boolean } {
  let conflicts = 0;
  let refused = false;
  const claimed = new Set(rows.flatMap(({ id }) => id ?? []));
  const idOf = new Map<FileRow, string | undefined>();
  for (const row of rows) {
    const adopted = [...service.values()].find(({ id, name }) => name === row.name && !claimed.has(id));
    idOf.set(row, row.id ?? adopted?.id ?? `new ${row.name}`);
  }
  const world = new Map([...service].map(([id, thing]) => [id, { ...thing }]));
  const pick = <T>(file: T, before: T | undefined, now: T, equal: (one: T, other: T) => boolean): T => {
    if (equal(file, now) || before === undefined) return file;
    if (equal(before, now)) return file;
    if (equal(file, before)) return now;
    conflicts += 1;
    return now;
  };
  const plain = <T>(one: T, other: T): boolean => one === other;
  for (const row of rows) {
    const id = idOf.get(row) ?? "";
    const group = row.parent === null ? undefined : rows[row.parent];
    const parent = group === undefined ? null : (idOf.get(group) ?? null);
    const [now, before] = [world.get(id), base.get(id)];
    if (now === undefined && before !== undefined) {
      const isChanged =
        row.name !== before.name ||
        parent !== before.parent ||
        (row.expose ?? before.expose) !== before.expose ||
        (row.contexts !== undefined && row.atLeast !== true && !same(row.contexts, before.contexts));
      if (isChanged) conflicts += 1;
      continue;
    }
    if (now === undefined) {
      if (parent !== null && !service.has(parent) && base.has(parent)) conflicts += 1;
      const expose = row.expose ?? false;
      world.set(id, { id, name: row.name, parent, isGroup: row.isGroup, expose, contexts: row.contexts ?? new Set() });
      continue;
    }
    // A row without children may be an option or a group, so it does not change the type.
    if ((row.isGroup && !now.isGroup) || (now.isGroup && parent !== null)) {
      refused = true;
      continue;
    }
    now.name = pick(row.name, before?.name, now.name, plain);
    const wantedParent = pick(parent, before === undefined ? undefined : before.parent, now.parent, plain);
    if (wantedParent !== null && wantedParent !== now.parent && !service.has(wantedParent) && base.has(wantedParent))
      conflicts += 1;
    else now.parent = wantedParent;
    if (row.expose !== undefined) now.expose = pick(row.expose, before?.expose, now.expose, plain);
    if (row.contexts !== undefined && row.atLeast === true) now.contexts = new Set([...now.contexts, ...row.contexts]);
    else if (row.contexts !== undefined) now.contexts = pick(row.contexts, before?.contexts, now.contexts, same);
  }
  const deleted = prune ? pruned(rows, idOf, base, service) : { ids: [], conflicts: 0 };
  conflicts += deleted.conflicts;
  for (const id of deleted.ids) world.delete(id);
  for (const thing of world.values()) {
    if (thing.parent === null || !deleted.ids.includes(thing.parent)) continue;
    thing.parent = null;
  }
  return { world, conflicts, refused };
}

function pruned(
  rows: readonly FileRow[],
  idOf: ReadonlyMap<FileRow, string | undefined>,
  base: World,
  service: World,
): { readonly ids: readonly string[]; readonly conflicts: number } {
  const named = new Set(rows.map((row) => idOf.get(row)));
  const ids: string[] = [];
  let conflicts = 0;
  for (const [id, before] of base) {
    const now = service.get(id);
    if (named.has(id) || now === undefined) continue;
    const isSame =
      now.name === before.name &&
      now.parent === before.parent &&
      now.expose === before.expose &&
      same(now.contexts, before.contexts);
    const wasGiven = [...service.values()].some((each) => each.parent === id && base.get(each.id)?.parent !== id);
    if (isSame && !wasGiven) ids.push(id);
    else conflicts += 1;
  }
  return { ids, conflicts };
}

/**
 * Returns whether the service allows such a targeting: its names, groups, and the groups' own Context IDs
 * (management-api 7.2, 7.4, 8.3).
 */
export function isPossible(world: World): boolean {
  const names = new Set<string>();
  const owned = new Set<string>();
  for (const { name, isGroup, parent, contexts, id } of world.values()) {
    if (names.has(name)) return false;
    names.add(name);
    if (parent !== null && (isGroup || world.get(parent)?.isGroup !== true)) return false;
    if (!isGroup) continue;
    const isEmpty = contexts.size === 0 && ![...world.values()].some((each) => each.parent === id);
    if (isEmpty) return false;
    for (const context of contexts) {
      if (owned.has(context)) return false;
      owned.add(context);
    }
  }
  return true;
}
