import { Batch, type Item, type KnownOption, type Ref, type TargetingModel } from "./targeting-model.ts";

/** An option to create. */
export interface Creation {
  readonly kind: "create";
  readonly ref: Ref;
  readonly name: string;
  readonly group: boolean;
  readonly parent: Ref | null;
  readonly expose: boolean;
  readonly contexts: readonly string[];
}

/** An option to change; fields that stay are absent. */
interface Update {
  readonly kind: "update";
  readonly ref: Ref;
  readonly name?: string;
  readonly parent?: Ref | null;
  readonly expose?: boolean;
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
}

/** An option to delete. */
interface Deletion {
  readonly kind: "delete";
  readonly ref: Ref;
}

/** What is wanted of one option. */
export type Change = Creation | Update | Deletion;

/** What is left to do to an option that exists. */
export interface Left {
  readonly name?: string;
  readonly parent?: Ref | null;
  readonly expose?: boolean;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Names and Context IDs that options have for a while; each is the same whenever it is asked for. */
export interface Placeholders {
  nameOf(ref: Ref): string;
  contextIdOf(group: Ref): string;
}

/** How a Work is set up. */
interface WorkOptions {
  readonly placeholders: Placeholders;
  /** How many options the model may hold. */
  readonly room: number;
}

const NOTHING: Left = { add: [], remove: [] };

/**
 * The changes of a targeting that are left to do, which is always the difference between what is wanted and the model.
 */
export class Work {
  readonly model: TargetingModel;
  readonly changes: ReadonlyMap<Ref, Change>;
  readonly options: WorkOptions;
  /** Groups that hold a placeholder for content that is still to come. */
  readonly #held: Set<Ref>;

  constructor(
    model: TargetingModel,
    changes: ReadonlyMap<Ref, Change>,
    options: WorkOptions,
    held: Iterable<Ref> = [],
  ) {
    this.model = model;
    this.changes = changes;
    this.options = options;
    this.#held = new Set(held);
  }

  /** The same work on a model of its own. */
  copy(): Work {
    return new Work(this.model.copy(), this.changes, this.options, this.#held);
  }

  /** The groups that hold a placeholder now. */
  get held(): ReadonlySet<Ref> {
    return this.#held;
  }

  isOver(): boolean {
    return this.#held.size === 0 && [...this.changes.values()].every((change) => this.#isDone(change));
  }

  /** Notes a request that was accepted. */
  done(items: readonly Item[]): void {
    for (const item of items) {
      this.model.apply(item);
      const option = this.model.options.get(item.ref);
      const isHeld = option?.group && option.contexts.has(this.options.placeholders.contextIdOf(item.ref));
      if (isHeld) this.#held.add(item.ref);
      else this.#held.delete(item.ref);
    }
  }

  isGoing(ref: Ref): boolean {
    return this.changes.get(ref)?.kind === "delete";
  }

  /** The name that a change gives an option; undefined where it gives none. */
  wantedName(ref: Ref): string | undefined {
    const change = this.changes.get(ref);
    return change === undefined || change.kind === "delete" ? undefined : change.name;
  }

  /** The own Context IDs that groups are to get and do not have. */
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

  /** What is left to do to an option that exists. */
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

  /** The creations of options that do not exist yet. */
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

/** Whether nothing is left to do. */
export function isNothing({ name, parent, expose, add, remove }: Left): boolean {
  return name === undefined && parent === undefined && expose === undefined && add.length + remove.length === 0;
}
