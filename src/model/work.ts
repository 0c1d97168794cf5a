import {
  Batch,
  type CreateItem,
  type Item,
  type KnownOption,
  type Ref,
  type TargetingModel,
  type UpdateItem,
} from "./targeting-model.ts";

export interface Creation extends Omit<CreateItem, "op" | "children"> {
  readonly kind: "create";
}

interface Update extends Omit<Partial<UpdateItem>, "op" | "ref"> {
  readonly kind: "update";
  readonly ref: Ref;
}

export type Change = Creation | Update | { readonly kind: "delete"; readonly ref: Ref };

export type Left = Omit<UpdateItem, "op" | "ref">;

/** Temporary names and Context IDs, always the same for the same option. */
export interface Placeholders {
  nameOf(ref: Ref): string;
  contextIdOf(group: Ref): string;
}

interface WorkOptions {
  readonly placeholders: Placeholders;
  /** The maximum number of options in the model. */
  readonly room: number;
}

const NOTHING: Left = { add: [], remove: [] };

/** The changes of a targeting that are still to be made. */
export class Work {
  readonly model: TargetingModel;
  readonly changes: ReadonlyMap<Ref, Change>;
  readonly options: WorkOptions;
  /** The groups that hold a placeholder until they get their content. */
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

  /** Applies an accepted request to the model. */
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

  /** Returns the Context IDs that groups are to get and do not hold yet. */
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
