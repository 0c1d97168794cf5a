import { ulidOf } from "./facts.ts";

/** Who made a change: the setup before the run, the run under test, another run at the same time, or another user. */
export type Actor = "before" | "run" | "rival" | "other";

/** A change of a project in the log. `at` is the service's time. */
export type Change = { readonly actor: Actor; readonly at: number } & Changed;
type Changed =
  | { readonly what: "targetingCreated" | "targetingDeleted"; readonly id: string; readonly name: string }
  | {
      readonly what: "optionCreated" | "optionDeleted";
      readonly id: string;
      readonly targeting: string;
      readonly name: string;
    }
  | {
      readonly what: "targetingRenamed" | "optionRenamed";
      readonly id: string;
      readonly from: string;
      readonly to: string;
    }
  | {
      readonly what: "moved";
      readonly id: string;
      readonly from?: string | undefined;
      readonly to?: string | undefined;
    }
  | { readonly what: "exposed"; readonly id: string; readonly from: boolean; readonly to: boolean }
  | {
      readonly what: "contexts";
      readonly id: string;
      readonly added: readonly string[];
      readonly removed: readonly string[];
    };

export interface Targeting {
  readonly id: string;
  name: string;
  readonly kind: "context" | "audience";
  /** Whether a campaign uses the targeting, so that it cannot be deleted. */
  readonly locked: boolean;
  readonly options: Set<string>;
}

export interface Option {
  readonly id: string;
  readonly targeting: string;
  name: string;
  readonly isGroup: boolean;
  parent: string | undefined;
  exposeChildren: boolean;
  /** Whether a campaign or product uses the option, so that it cannot become a sub-option. */
  readonly locked: boolean;
  readonly contexts: Set<string>;
  readonly children: Set<string>;
}

/** An option to create. Its sub-options are created separately. */
export interface OptionSeed {
  readonly targeting: string;
  readonly name: string;
  readonly isGroup: boolean;
  readonly parent?: string | undefined;
  readonly exposeChildren?: boolean | undefined;
  readonly locked?: boolean;
  readonly contexts?: Iterable<string>;
}

/** The data of one project, and a log of who changed what. Its methods check none of the service's rules. */
export class Project {
  readonly targetings = new Map<string, Targeting>();
  readonly options = new Map<string, Option>();
  readonly log: Change[] = [];
  contextCount = 0;
  /** The service's clock, in milliseconds since 1970. */
  readonly now: () => number;
  #made = 0;
  #undo: (() => void)[] | undefined;

  constructor(now: () => number) {
    this.now = now;
  }

  createTargeting(actor: Actor, seed: { name: string; kind?: Targeting["kind"]; locked?: boolean }): Targeting {
    const { name, kind = "context", locked = false } = seed;
    const targeting: Targeting = { id: this.#id(), name, kind, locked, options: new Set() };
    this.targetings.set(targeting.id, targeting);
    this.#note(actor, { what: "targetingCreated", id: targeting.id, name }, () => {
      this.targetings.delete(targeting.id);
    });
    return targeting;
  }

  deleteTargeting(actor: Actor, targeting: Targeting): void {
    for (const id of [...targeting.options]) {
      const option = this.options.get(id);
      if (option !== undefined) this.deleteOption(actor, option);
    }
    this.targetings.delete(targeting.id);
    this.#note(actor, { what: "targetingDeleted", id: targeting.id, name: targeting.name }, () => {
      this.targetings.set(targeting.id, targeting);
    });
  }

  renameTargeting(actor: Actor, targeting: Targeting, name: string): void {
    const from = targeting.name;
    if (from === name) return;
    targeting.name = name;
    this.#note(actor, { what: "targetingRenamed", id: targeting.id, from, to: name }, () => {
      targeting.name = from;
    });
  }

  createOption(actor: Actor, seed: OptionSeed): Option {
    const { targeting, name, isGroup, parent, exposeChildren = false, locked = false, contexts = [] } = seed;
    const option: Option = {
      ...{ id: this.#id(), targeting, name, isGroup, parent, exposeChildren, locked },
      contexts: new Set(contexts),
      children: new Set(),
    };
    this.#put(option);
    const { id } = option;
    this.#note(actor, { what: "optionCreated", id, targeting, name }, () => this.#take(option));
    return option;
  }

  /** Sub-options of a deleted group become top-level options (wire-assumptions). */
  deleteOption(actor: Actor, option: Option): void {
    for (const id of [...option.children]) {
      const child = this.options.get(id);
      if (child !== undefined) this.moveOption(actor, child, undefined);
    }
    this.#take(option);
    const { id, targeting, name } = option;
    this.#note(actor, { what: "optionDeleted", id, targeting, name }, () => this.#put(option));
  }

  renameOption(actor: Actor, option: Option, name: string): void {
    const from = option.name;
    if (from === name) return;
    option.name = name;
    this.#note(actor, { what: "optionRenamed", id: option.id, from, to: name }, () => {
      option.name = from;
    });
  }

  moveOption(actor: Actor, option: Option, to: string | undefined): void {
    const from = option.parent;
    if (from === to) return;
    this.#place(option, to);
    this.#note(actor, { what: "moved", id: option.id, from, to }, () => this.#place(option, from));
  }

  exposeChildren(actor: Actor, option: Option, to: boolean): void {
    const from = option.exposeChildren;
    if (from === to) return;
    option.exposeChildren = to;
    this.#note(actor, { what: "exposed", id: option.id, from, to }, () => {
      option.exposeChildren = from;
    });
  }

  /** Changes the Context IDs of an option. */
  changeContexts(actor: Actor, option: Option, change: { add: readonly string[]; remove: readonly string[] }): void {
    const added = [...new Set(change.add)].filter((id) => !option.contexts.has(id));
    const removed = [...new Set(change.remove)].filter((id) => option.contexts.has(id));
    if (added.length + removed.length === 0) return;
    const put = (plus: readonly string[], minus: readonly string[]): void => {
      for (const id of plus) option.contexts.add(id);
      for (const id of minus) option.contexts.delete(id);
      this.contextCount += plus.length - minus.length;
    };
    put(added, removed);
    this.#note(actor, { what: "contexts", id: option.id, added, removed }, () => put(removed, added));
  }

  /** Runs `work`. If it returns false, undoes all its changes. */
  attempt(work: () => boolean): void {
    const logged = this.log.length;
    const outer = this.#undo;
    const undo: (() => void)[] = [];
    this.#undo = undo;
    const keep = work();
    this.#undo = outer;
    if (keep) {
      outer?.push(...undo);
      return;
    }
    for (const back of undo.reverse()) back();
    this.log.length = logged;
  }

  targetingNamed(name: string): Targeting | undefined {
    return [...this.targetings.values()].find((targeting) => targeting.name === name);
  }

  optionsNamed(targeting: string, name: string): readonly Option[] {
    return this.optionsOf(targeting).filter((option) => option.name === name);
  }

  /** The options of a targeting in the order of their creation, sub-options included. */
  optionsOf(targeting: string): readonly Option[] {
    return [...(this.targetings.get(targeting)?.options ?? [])].flatMap((id) => this.options.get(id) ?? []);
  }

  groups(): readonly Option[] {
    return [...this.options.values()].filter((option) => option.isGroup);
  }

  #id(): string {
    this.#made += 1;
    return ulidOf(Math.floor(this.now()), this.#made);
  }

  #note(actor: Actor, changed: Changed, undo: () => void): void {
    this.log.push({ actor, at: this.now(), ...changed });
    this.#undo?.push(undo);
  }

  #put(option: Option): void {
    this.options.set(option.id, option);
    this.targetings.get(option.targeting)?.options.add(option.id);
    this.contextCount += option.contexts.size;
    if (option.parent !== undefined) this.options.get(option.parent)?.children.add(option.id);
  }

  #take(option: Option): void {
    this.options.delete(option.id);
    this.targetings.get(option.targeting)?.options.delete(option.id);
    this.contextCount -= option.contexts.size;
    if (option.parent !== undefined) this.options.get(option.parent)?.children.delete(option.id);
  }

  #place(option: Option, parent: string | undefined): void {
    if (option.parent !== undefined) this.options.get(option.parent)?.children.delete(option.id);
    option.parent = parent;
    if (parent !== undefined) this.options.get(parent)?.children.add(option.id);
  }
}
