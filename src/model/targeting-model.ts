import { addTo } from "../platform/by-key.ts";

/** Identifies an option in the model: its `_id`, or a key if it has not been created yet. */
export type Ref = string;

export interface KnownOption {
  readonly name: string;
  readonly group: boolean;
  readonly parent: Ref | null;
  readonly expose: boolean;
  readonly contexts: ReadonlySet<string>;
  /** How many Context IDs of the option are not in `contexts`, because they do not change. */
  readonly others: number;
}

interface NewSubOption {
  readonly ref: Ref;
  readonly name: string;
  readonly contexts: readonly string[];
}

export interface CreateItem extends NewSubOption {
  readonly op: "create";
  readonly group: boolean;
  readonly parent: Ref | null;
  readonly expose: boolean;
  readonly children: readonly NewSubOption[];
}

/** Changes an option. Fields that are absent here do not change. */
export interface UpdateItem {
  readonly op: "update";
  readonly ref: Ref;
  readonly name?: string;
  readonly parent?: Ref | null;
  readonly expose?: boolean;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

export type Item = CreateItem | UpdateItem | { readonly op: "delete"; readonly ref: Ref };

/** The options of a targeting, as far as they are known. `apply` changes them in the same way as the service. */
export class TargetingModel {
  readonly options = new Map<Ref, KnownOption>();
  /** Maps each name to the option that has it. */
  readonly holders = new Map<string, Ref>();
  /** Maps each Context ID to the group that has it. Two groups cannot have the same one (management-api 7.2). */
  readonly owners = new Map<string, Ref>();
  readonly #inside = new Map<Ref, Set<Ref>>();

  copy(): TargetingModel {
    const copy = new TargetingModel();
    for (const [ref, option] of this.options) copy.put(ref, option);
    return copy;
  }

  put(ref: Ref, option: KnownOption): void {
    this.#forget(ref);
    this.options.set(ref, option);
    this.holders.set(option.name, ref);
    if (option.group) for (const id of option.contexts) this.owners.set(id, ref);
    const { parent } = option;
    if (parent !== null) this.#inside.set(parent, (this.#inside.get(parent) ?? new Set()).add(ref));
  }

  inside(group: Ref): ReadonlySet<Ref> {
    return this.#inside.get(group) ?? NONE;
  }

  /** Applies an item in the same way as the service. Sub-options of a deleted group move to the top level. */
  apply(item: Item): void {
    if (item.op === "create") {
      const { ref, name, group, parent, expose, contexts, children } = item;
      this.put(ref, { name, group, parent, expose, contexts: new Set(contexts), others: 0 });
      const inside = { group: false, parent: ref, expose: false, others: 0 };
      for (const child of children) {
        this.put(child.ref, { ...inside, name: child.name, contexts: new Set(child.contexts) });
      }
      return;
    }
    const option = this.options.get(item.ref);
    if (option === undefined) return;
    if (item.op === "delete") {
      for (const child of [...this.inside(item.ref)]) {
        const known = this.options.get(child);
        if (known !== undefined) this.put(child, { ...known, parent: null });
      }
      this.#forget(item.ref);
      return;
    }
    const { name = option.name, parent = option.parent, expose = option.expose, add, remove } = item;
    const contexts = add.length + remove.length === 0 ? option.contexts : changed(option.contexts, add, remove);
    this.put(item.ref, { ...option, name, parent, expose, contexts });
  }

  #forget(ref: Ref): void {
    const option = this.options.get(ref);
    if (option === undefined) return;
    this.options.delete(ref);
    if (this.holders.get(option.name) === ref) this.holders.delete(option.name);
    if (option.parent !== null) this.#inside.get(option.parent)?.delete(ref);
    if (!option.group) return;
    for (const id of option.contexts) if (this.owners.get(id) === ref) this.owners.delete(id);
  }
}

const NONE: ReadonlySet<Ref> = new Set();

function changed(contexts: ReadonlySet<string>, add: readonly string[], remove: readonly string[]): Set<string> {
  const now = new Set(contexts);
  for (const id of add) now.add(id);
  for (const id of remove) now.delete(id);
  return now;
}

/**
 * A request to which items are added. The service may apply the items of an update at the same time (management-api
 * 4.1). So a Context ID must be free before the request, and a group may not rely on options that it gets in the same
 * request. Names are the exception: an item may take a name that an earlier item of the request gives up.
 */
export class Batch {
  readonly items: Item[] = [];
  readonly #model: TargetingModel;
  readonly #room: number;
  readonly #names = new Map<string, Ref | undefined>();
  readonly #taken = new Set<string>();
  readonly #leaving = new Map<Ref, number>();
  readonly #ownAfter = new Map<Ref, number>();
  #adding = 0;

  constructor(model: TargetingModel, room: number) {
    this.#model = model;
    this.#room = room;
  }

  /** Returns the option that has a name once all items added so far are applied. */
  holderOf(name: string): Ref | undefined {
    return this.#names.has(name) ? this.#names.get(name) : this.#model.holders.get(name);
  }

  /** Returns whether a group may get a Context ID in this request: no other group has it or gets it. */
  mayOwn(id: string, group: Ref): boolean {
    const owner = this.#model.owners.get(id);
    return (owner === undefined || owner === group) && !this.#taken.has(id);
  }

  /** Returns whether one more sub-option may leave a group without emptying it (management-api 7.4, case 6). */
  mayLeave(group: Ref): boolean {
    const own = ownCount(this.#model.options.get(group));
    return this.#staying(group) > 1 || (own > 0 && (this.#ownAfter.get(group) ?? 1) > 0);
  }

  /** Returns whether a group may keep `own` Context IDs. With 0, it needs a sub-option (management-api 7.4, case 7). */
  mayHold(group: Ref, own: number): boolean {
    return own > 0 || this.#staying(group) > 0;
  }

  hasRoomFor(options: number): boolean {
    return this.#model.options.size + this.#adding + options <= this.#room;
  }

  take(item: Item): void {
    this.items.push(item);
    const option = this.#model.options.get(item.ref);
    if (item.op === "create") {
      for (const { name, ref } of [item, ...item.children]) this.#names.set(name, ref);
      if (item.group) for (const id of item.contexts) this.#taken.add(id);
      this.#adding += 1 + item.children.length;
      return;
    }
    if (option === undefined) return;
    if (item.op === "delete") {
      if (option.parent !== null) this.#leave(option.parent);
      return;
    }
    if (item.name !== undefined) {
      this.#names.set(option.name, undefined);
      this.#names.set(item.name, item.ref);
    }
    if (item.parent !== undefined && option.parent !== null) this.#leave(option.parent);
    if (!option.group) return;
    for (const id of item.add) this.#taken.add(id);
    this.#ownAfter.set(item.ref, ownCount(option) + item.add.length - item.remove.length);
  }

  #staying(group: Ref): number {
    return this.#model.inside(group).size - (this.#leaving.get(group) ?? 0);
  }

  #leave(group: Ref): void {
    this.#leaving.set(group, (this.#leaving.get(group) ?? 0) + 1);
  }
}

export function ownCount(option: KnownOption | undefined): number {
  return option === undefined ? 0 : option.contexts.size + option.others;
}

interface Creation extends Omit<CreateItem, "op" | "children"> {
  readonly kind: "create";
}

interface Update extends Omit<Partial<UpdateItem>, "op" | "ref"> {
  readonly kind: "update";
  readonly ref: Ref;
}

export type Change = Creation | Update | { readonly kind: "delete"; readonly ref: Ref };

export type Left = Omit<UpdateItem, "op" | "ref">;

/** Makes temporary names and Context IDs. An option always gets the same ones. */
export interface Placeholders {
  nameOf(ref: Ref): string;
  contextIdOf(group: Ref): string;
}

interface WorkOptions {
  readonly placeholders: Placeholders;
  readonly room: number;
}

const NOTHING: Left = { add: [], remove: [] };

export class Work {
  readonly model: TargetingModel;
  readonly changes: ReadonlyMap<Ref, Change>;
  readonly options: WorkOptions;
  /** Groups that have a placeholder until they get their content. */
  readonly held: Set<Ref>;

  constructor(
    model: TargetingModel,
    changes: ReadonlyMap<Ref, Change>,
    options: WorkOptions,
    held: Iterable<Ref> = [],
  ) {
    this.model = model;
    this.changes = changes;
    this.options = options;
    this.held = new Set(held);
  }

  copy(): Work {
    return new Work(this.model.copy(), this.changes, this.options, this.held);
  }

  isOver(): boolean {
    return this.held.size === 0 && [...this.changes.values()].every((change) => this.#isDone(change));
  }

  done(items: readonly Item[]): void {
    for (const item of items) {
      this.model.apply(item);
      const option = this.model.options.get(item.ref);
      const isHeld = option?.group && option.contexts.has(this.options.placeholders.contextIdOf(item.ref));
      if (isHeld) this.held.add(item.ref);
      else this.held.delete(item.ref);
    }
  }

  isGoing(ref: Ref): boolean {
    return this.changes.get(ref)?.kind === "delete";
  }

  wantedName(ref: Ref): string | undefined {
    const change = this.changes.get(ref);
    return change === undefined || change.kind === "delete" ? undefined : change.name;
  }

  /** Returns the Context IDs that groups will get but do not have yet. */
  wantedContexts(): ReadonlySet<string> {
    const wanted = new Set<string>();
    for (const change of this.changes.values()) {
      if (change.kind === "delete") continue;
      const option = this.model.options.get(change.ref);
      const isGroup = change.kind === "create" ? change.group : option?.group === true;
      const add = (change.kind === "create" ? change.contexts : change.add) ?? [];
      if (isGroup) for (const id of add) if (!option?.contexts.has(id)) wanted.add(id);
    }
    return wanted;
  }

  left(ref: Ref, option: KnownOption): Left {
    const change = this.changes.get(ref);
    if (change === undefined || change.kind === "delete") return NOTHING;
    const { name, parent, expose } = change;
    const add = (change.kind === "create" ? change.contexts : change.add) ?? [];
    const remove = (change.kind === "create" ? undefined : change.remove) ?? [];
    return {
      ...(name !== undefined && name !== option.name && { name }),
      ...(parent !== undefined && parent !== option.parent && { parent }),
      ...(expose !== undefined && expose !== option.expose && { expose }),
      add: add.filter((id) => !option.contexts.has(id)),
      remove: remove.filter((id) => option.contexts.has(id)),
    };
  }

  openCreations(): readonly Creation[] {
    return [...this.changes.values()].filter(
      (change): change is Creation => change.kind === "create" && !this.model.options.has(change.ref),
    );
  }

  newBatch(): Batch {
    return new Batch(this.model, this.options.room);
  }

  #isDone(change: Change): boolean {
    const option = this.model.options.get(change.ref);
    if (change.kind === "delete") return option === undefined;
    if (option === undefined) return change.kind === "update";
    return isNothing(this.left(change.ref, option));
  }
}

export function isNothing({ name, parent, expose, add, remove }: Left): boolean {
  return name === undefined && parent === undefined && expose === undefined && add.length + remove.length === 0;
}

export type Conflict =
  | { readonly kind: "inUse"; readonly ref: Ref; readonly staying: number }
  | { readonly kind: "noGroup"; readonly ref: Ref }
  /**
   * Two options would have the same name, or two groups the same Context ID (`value`). `ref` would get it; `holder` has
   * it already, or would also get it.
   */
  | { readonly kind: "name" | "owner"; readonly value: string; readonly ref: Ref; readonly holder: Ref }
  /** The group would have neither sub-options nor Context IDs. `leaving` are the sub-options that leave it. */
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

/** Returns the conflicts that all changes together would lead to (management-api 7.2 to 7.4), sorted by kind. */
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

/** Returns a conflict for each name or Context ID that a change gives to an option although another one has it. */
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
