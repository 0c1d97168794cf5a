import type { WriteCall } from "../../src/changes/call.ts";
import { ulidOf } from "./model/facts.ts";
import type { Project } from "./model/project.ts";
import type { Random } from "./random.ts";
import {
  allOptions,
  contextTargetings,
  INVALID_NAMES,
  OPTION_NAMES,
  POISON,
  someContexts,
  TARGETING_NAMES,
} from "./world.ts";

/** The size of a call: few items, hundreds, or items so large that some need several requests alone. */
export type Size = "small" | "many" | "large";

/**
 * Makes a random call for a project, with valid and invalid items, names that already exist, and IDs that do not exist.
 */
export function randomCall(project: Project, random: Random, size: Size): WriteCall {
  const from = new CallMaker(project, random, size);
  return random.pick([
    () => from.createTargetings(),
    () => from.renameTargetings(),
    () => from.passNamesOn(),
    () => from.exchangeContexts(),
    () => from.deleteTargetings(),
    () => from.addOptions(),
    () => from.addOptions(),
    () => from.updateOptions(),
    () => from.updateContexts(),
    () => from.deleteOptions(),
  ])();
}

const NO_SUCH_ID = ulidOf(1_600_000_000_000, 1);
const MISSING = [NO_SUCH_ID, ulidOf(1_600_000_000_000, 2), "no ULID"];

class CallMaker {
  readonly #project: Project;
  readonly #random: Random;
  readonly #size: Size;
  #names = 0;

  constructor(project: Project, random: Random, size: Size) {
    this.#project = project;
    this.#random = random;
    this.#size = size;
  }

  createTargetings(): WriteCall {
    const items = this.#several(6, 130, () => ({
      name: this.#name(TARGETING_NAMES),
      ...this.#maybe(0.6, () => ({ options: this.#several(4, 3, () => this.#newOption()) })),
    }));
    return { tool: "create_targetings", input: { items } };
  }

  renameTargetings(): WriteCall {
    const items = this.#several(5, 5, () => ({ _id: this.#targetingId(), name: this.#name(TARGETING_NAMES, 0) }));
    return { tool: "rename_targetings", input: { items } };
  }

  /** Swaps names in a cycle, among targetings or among the options of one targeting. */
  passNamesOn(): WriteCall {
    const some = <T extends { readonly id: string; readonly name: string }>(list: readonly T[]) => {
      const chosen = this.#random.some(list, this.#random.between(2, 4));
      const isRing = this.#random.chance(0.7);
      return chosen.map(({ id }, position) => {
        const next = chosen[position + 1] ?? (isRing ? chosen[0] : undefined);
        return { _id: id, name: next?.name ?? this.#name(TARGETING_NAMES, 1) };
      });
    };
    if (this.#random.chance(0.5)) {
      return { tool: "rename_targetings", input: { items: some([...this.#project.targetings.values()]) } };
    }
    const items = some(this.#project.optionsOf(this.#contextTargetingId())).map((item) => ({
      ...item,
      ...this.#maybe(0.2, () => ({ parent: this.#random.chance(0.4) ? null : this.#groupId() })),
    }));
    return { tool: "update_options", input: { items } };
  }

  /** Moves Context IDs from one group to another. */
  exchangeContexts(): WriteCall {
    const groups = this.#random.some(this.#project.groups(), 3);
    const items = groups.map((group, position) => {
      const giver = groups[(position + 1) % groups.length];
      const remove = this.#random.some([...group.contexts], 2);
      const add = this.#random.some([...(giver?.contexts ?? [])], 2).filter((each) => !remove.includes(each));
      return { _id: group.id, ...(add.length > 0 ? { add } : {}), remove };
    });
    return { tool: "update_contexts", input: { items: this.#random.some(items, items.length) } };
  }

  deleteTargetings(): WriteCall {
    return { tool: "delete_targeting", input: { ids: this.#several(4, 4, () => this.#targetingId()) } };
  }

  addOptions(): WriteCall {
    const onExisting = this.#random.pick(["fail", "fail", "skip", "addContexts", undefined] as const);
    const items = this.#several(8, 320, () => {
      if (this.#random.chance(0.7)) return this.#newOption();
      const { name, contexts } = this.#newOption();
      const place = this.#random.chance(0.5) ? { parentName: this.#name(OPTION_NAMES) } : { parent: this.#optionId() };
      return { name, ...(contexts === undefined ? {} : { contexts }), ...place };
    });
    const targetingId = this.#random.chance(0.95)
      ? this.#contextTargetingId()
      : this.#random.pick([NO_SUCH_ID, ...this.#project.targetings.keys()]);
    return { tool: "bulk_add_options", input: { targetingId, items, onExisting } };
  }

  updateOptions(): WriteCall {
    const items = this.#several(7, 12, () => ({
      _id: this.#optionId(),
      ...this.#maybe(0.6, () => ({ name: this.#name(OPTION_NAMES, 0) })),
      ...this.#maybe(0.4, () => ({ parent: this.#random.chance(0.4) ? null : this.#groupId() })),
      ...this.#maybe(0.15, () => ({ exposeChildren: this.#random.chance(0.5) })),
    }));
    return { tool: "update_options", input: { items } };
  }

  updateContexts(): WriteCall {
    const targetingId = this.#contextTargetingId();
    const items = this.#several(5, 10, () => ({
      ...this.#random.pick([
        () => ({ _id: this.#optionId() }),
        () => ({ _ids: this.#random.some(allOptions(this.#project), 2).map(({ id }) => id) }),
        () => ({ name: this.#random.pick(OPTION_NAMES) }),
      ])(),
      ...this.#random.pick([
        () => ({ add: this.#contexts(4) }),
        () => ({ remove: this.#contexts(4) }),
        () => ({ add: this.#contexts(3), remove: this.#contexts(3) }),
        () => ({ set: this.#contexts(5) }),
        () => ({ addFrom: [this.#optionId()] }),
        () => ({ removeFrom: [this.#optionId()] }),
      ])(),
    }));
    return { tool: "update_contexts", input: { targetingId, items } };
  }

  deleteOptions(): WriteCall {
    const targetingId = this.#contextTargetingId();
    const ids = this.#several(8, 12, () => this.#optionId());
    const named = this.#random.chance(0.2) ? { names: this.#random.some(OPTION_NAMES, 2), targetingId } : {};
    return { tool: "delete_options", input: { ids, ...named } };
  }

  #several<T>(few: number, many: number, make: () => T): T[] {
    const most = this.#size === "many" ? many : few;
    return Array.from({ length: this.#random.between(1, most) }, make);
  }

  #maybe<T extends object>(probability: number, make: () => T): T | Record<never, never> {
    return this.#random.chance(probability) ? make() : {};
  }

  #name(names: readonly string[], freshShare = 0.4): string {
    if (this.#random.chance(0.04)) return this.#random.pick(INVALID_NAMES);
    if (this.#random.chance(0.03)) return POISON;
    const share = this.#size === "many" ? 0.97 : freshShare;
    if (!this.#random.chance(share)) return this.#random.pick(names);
    this.#names += 1;
    return `New ${this.#names}`;
  }

  #newOption() {
    const isGroup = this.#random.chance(0.35);
    const contexts = this.#maybe(0.5, () => ({ contexts: this.#contexts(4) }));
    if (!isGroup) {
      return { name: this.#name(OPTION_NAMES), ...contexts, ...this.#maybe(0.03, () => ({ exposeChildren: true })) };
    }
    const children = (): { name: string; contexts?: string[] }[] =>
      Array.from({ length: this.#random.below(this.#size === "many" ? 70 : 5) }, () => ({
        name: this.#name(OPTION_NAMES, 0.7),
        ...this.#maybe(0.4, () => ({ contexts: this.#contexts(3) })),
      }));
    return {
      name: this.#name(OPTION_NAMES),
      ...contexts,
      ...this.#random.pick([
        () => ({ type: "collection" as const }),
        () => ({ children: children() }),
        () => ({ type: "collection" as const, children: children(), exposeChildren: this.#random.chance(0.5) }),
      ])(),
    };
  }

  #contexts(most: number): string[] {
    const { chance, between, pick } = this.#random;
    if (chance(0.02)) return [pick(["", " ", "y".repeat(257)])];
    if (this.#size !== "large" || !chance(0.4)) return someContexts(this.#random, most);
    const [first, count] = [between(0, 20_000), between(1, 24_000)];
    return Array.from({ length: count }, (_, number) => `long-${first + number}`);
  }

  #optionId(): string {
    const options = allOptions(this.#project);
    return options.length === 0 || this.#random.chance(0.06)
      ? this.#random.pick(MISSING)
      : this.#random.pick(options).id;
  }

  #groupId(): string {
    const groups = this.#project.groups();
    return groups.length === 0 || this.#random.chance(0.1) ? this.#optionId() : this.#random.pick(groups).id;
  }

  #targetingId(): string {
    if (this.#random.chance(0.06)) return this.#random.pick(MISSING);
    return this.#random.pick([...this.#project.targetings.keys()]);
  }

  #contextTargetingId(): string {
    return this.#random.pick(contextTargetings(this.#project)).id;
  }
}
