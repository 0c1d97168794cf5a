import { addTo } from "../platform/by-key.ts";
import type { Change, KnownOption, Ref } from "./targeting-model.ts";

/** A rule of the service that all changes together would break. */
export type Conflict =
  | { readonly kind: "inUse"; readonly ref: Ref; readonly staying: number }
  | { readonly kind: "noGroup"; readonly ref: Ref }
  /** The option `ref` would take a name, or the group `ref` a Context ID, that the option `holder` has. */
  | { readonly kind: "name" | "owner"; readonly value: string; readonly ref: Ref; readonly holder: Ref }
  /** A group would have neither sub-options nor Context IDs. `leaving` are the sub-options that leave it. */
  | { readonly kind: "empty"; readonly ref: Ref; readonly leaving: readonly Ref[] };

type Options = ReadonlyMap<Ref, KnownOption>;
type Changes = ReadonlyMap<Ref, Change>;

interface After {
  readonly ref: Ref;
  readonly change: Exclude<Change, { readonly kind: "delete" }> | undefined;
  readonly before: KnownOption | undefined;
  readonly name: string;
  readonly group: boolean;
  readonly parent: Ref | null;
  readonly own: number;
}

/** Returns the conflicts after all changes (management-api 7.2 to 7.4). Conflicts of one kind are adjacent. */
export function conflicts(options: Options, changes: Changes): readonly Conflict[] {
  const after = afterAll(options, changes);
  const inside = new Map<Ref, number>();
  for (const { parent } of after.values()) if (parent !== null) inside.set(parent, (inside.get(parent) ?? 0) + 1);
  return [
    ...inUse(changes, inside),
    ...[...after.values()].flatMap(({ ref, change, parent }): Conflict[] => {
      const isThere = parent === null || after.get(parent)?.group === true;
      return change?.parent === undefined || isThere ? [] : [{ kind: "noGroup", ref }];
    }),
    ...doubled("name", after, ({ name }) => [name]),
    ...doubled("owner", after, ownContexts),
    ...emptied(options, changes, after, inside),
  ];
}

function afterAll(options: Options, changes: Changes): ReadonlyMap<Ref, After> {
  const after = new Map<Ref, After>();
  for (const [ref, before] of options) {
    const change = changes.get(ref);
    if (change?.kind === "delete") continue;
    const { name = before.name, parent = before.parent } = change ?? {};
    const { add = [], remove = [] } = change?.kind === "update" ? change : {};
    const own = before.contexts.size + before.others + add.length - remove.length;
    after.set(ref, { ref, change, before, name, group: before.group, parent, own });
  }
  for (const change of changes.values()) {
    if (change.kind !== "create") continue;
    const { ref, name, group, parent, contexts } = change;
    after.set(ref, { ref, change, before: undefined, name, group, parent, own: contexts.length });
  }
  return after;
}

function inUse(changes: Changes, inside: ReadonlyMap<Ref, number>): readonly Conflict[] {
  return [...changes.values()].flatMap(({ kind, ref }): Conflict[] => {
    const staying = inside.get(ref) ?? 0;
    return kind === "delete" && staying > 0 ? [{ kind: "inUse", ref, staying }] : [];
  });
}

/** Returns the values that two options would have. The later of two options that take a value has the conflict. */
function doubled(
  kind: "name" | "owner",
  after: ReadonlyMap<Ref, After>,
  valuesOf: (one: After) => Iterable<string>,
): readonly Conflict[] {
  const takes = ({ change }: After, value: string): boolean => {
    if (kind === "name") return change?.name !== undefined;
    return (change?.kind === "create" ? change.contexts : (change?.add ?? [])).includes(value);
  };
  const holders = new Map<string, After>();
  const found: Conflict[] = [];
  for (const one of after.values()) {
    for (const value of valuesOf(one)) {
      const other = holders.get(value);
      holders.set(value, one);
      if (other === undefined || other === one) continue;
      if (takes(one, value)) found.push({ kind, value, ref: one.ref, holder: other.ref });
      else if (takes(other, value)) found.push({ kind, value, ref: other.ref, holder: one.ref });
    }
  }
  return found;
}

function* ownContexts({ group, before, change }: After): Generator<string> {
  if (!group) return;
  const removed = new Set(change?.kind === "update" ? change.remove : []);
  for (const id of before?.contexts ?? []) if (!removed.has(id)) yield id;
  yield* (change?.kind === "create" ? change.contexts : change?.add) ?? [];
}

function emptied(
  options: Options,
  changes: Changes,
  after: ReadonlyMap<Ref, After>,
  inside: ReadonlyMap<Ref, number>,
): readonly Conflict[] {
  const leaving = new Map<Ref, Ref[]>();
  for (const { ref } of changes.values()) {
    const from = options.get(ref)?.parent ?? null;
    if (from === null || after.get(ref)?.parent === from) continue;
    addTo(leaving, from, ref);
  }
  return [...after.values()].flatMap(({ ref, group, own, before }): Conflict[] => {
    if (!group || own > 0 || inside.has(ref)) return [];
    const gone = leaving.get(ref) ?? [];
    const wasEmpty = before !== undefined && before.contexts.size + before.others === 0 && gone.length === 0;
    return wasEmpty ? [] : [{ kind: "empty", ref, leaving: gone }];
  });
}
