import type { Change, Option, Project, Targeting } from "../model/project.ts";
import type { Case, Judged } from "../oracle.ts";
import type { ApprovalRequest } from "../wishes.ts";

/** The content of the project before a run. */
export interface Snapshot {
  readonly targetings: ReadonlyMap<string, Targeting>;
  readonly options: ReadonlyMap<string, Option>;
}

/** Copies the content of a project. */
export function snapshotOf(project: Project): Snapshot {
  return {
    targetings: new Map([...project.targetings].map(([id, targeting]) => [id, { ...targeting }])),
    options: new Map(
      [...project.options].map(([id, option]) => [
        id,
        { ...option, contexts: new Set(option.contexts), children: new Set(option.children) },
      ]),
    ),
  };
}

/** Answers questions about what really happened, from the log of the model. */
export class Evidence {
  readonly of: Case;
  readonly judged: readonly Judged[];
  readonly #byId = new Map<string, Change[]>();
  readonly #created = new Map<string, string[]>();

  constructor(of: Case, judged: readonly Judged[]) {
    this.of = of;
    this.judged = judged;
    for (const change of of.log) {
      if (change.actor === "before") continue;
      listUnder(this.#byId, change.id, change);
      if (change.actor !== "run") continue;
      if (change.what === "optionCreated") listUnder(this.#created, `${change.targeting} ${change.name}`, change.id);
      if (change.what === "targetingCreated") listUnder(this.#created, change.name, change.id);
    }
  }

  /** Returns all changes of an object since the run was planned. */
  changes(id: string): readonly Change[] {
    return this.#byId.get(id) ?? [];
  }

  /** Returns the IDs of the targetings with a name, or of a targeting's options with a name, that the run created. */
  madeByRun(name: string, targeting?: string): readonly string[] {
    return this.#created.get(targeting === undefined ? name : `${targeting} ${name}`) ?? [];
  }

  /** Returns whether the run had created anything before this time of the service. */
  hasCreatedBefore(time: number): boolean {
    return [...this.#byId.values()].some((changes) =>
      changes.some(({ actor, what, at }) => actor === "run" && /Created$/.test(what) && at < time),
    );
  }

  isDeletedBy(actor: "run" | "other", id: string): boolean {
    return this.changes(id).some((change) => change.actor === actor && /Deleted$/.test(change.what));
  }

  /** Returns whether another user deleted an object or changed one of these properties of it. */
  isChangedByOther(id: string, ...whats: readonly Change["what"][]): boolean {
    return this.changes(id).some(
      ({ actor, what }) => actor === "other" && (whats.includes(what) || /Deleted$/.test(what)),
    );
  }

  /**
   * Returns the IDs of the targetings that a wish may mean: the given ID, or the targetings with the given name that
   * the run created or reported as created.
   */
  targetingsOf(targeting: { readonly id: string } | { readonly name: string }): readonly string[] {
    if ("id" in targeting) return [targeting.id];
    const reported = this.judged.flatMap(({ wish, result: { outcome, _id } }) =>
      wish.kind === "targeting" && wish.name === targeting.name && outcome === "succeeded" ? (_id ?? []) : [],
    );
    return [...new Set([...this.madeByRun(targeting.name), ...reported])];
  }

  /**
   * Returns whether an object may be reported as unknown: an answer about it was lost, or others wrote at the same
   * time.
   */
  mayBeUnknown(wish: ApprovalRequest): boolean {
    const { schedule, service } = this.of;
    const { others, rival, kills, diskFullAfter } = schedule;
    if (others.length > 0 || rival !== undefined || kills.length > 0 || diskFullAfter !== undefined) return true;
    const isHalfDone = schedule.faults.some(({ fault }) => fault.kind === "uncatched");
    if (wish.kind === "contexts" && isHalfDone) return true;
    return this.keysOf(wish).some(
      (key) => service.inDoubt.has(key) || this.changes(key).some((c) => c.actor === "run"),
    );
  }

  /** Returns the names and IDs that a wish concerns. */
  keysOf(wish: ApprovalRequest): readonly string[] {
    switch (wish.kind) {
      case "targeting":
        return [wish.name, ...this.madeByRun(wish.name)];
      case "option": {
        const made = this.targetingsOf(wish.targeting).flatMap((id) => this.madeByRun(wish.name, id));
        const there = [...this.of.before.options.values()].filter(({ name }) => name === wish.name).map(({ id }) => id);
        const place = "name" in wish.targeting ? [wish.targeting.name] : [];
        const parent = wish.parent !== undefined && "name" in wish.parent ? [wish.parent.name] : [];
        return [wish.name, ...made, ...there, ...place, ...parent];
      }
      case "contexts":
      case "optionGone":
        return "id" in wish.target ? [wish.target.id] : this.optionsNamedBefore(wish.target.name).map(({ id }) => id);
      case "nothing":
        return [];
      default:
        return [wish.id];
    }
  }

  /** Returns the options of the call's targeting that had a name when the run was planned. */
  optionsNamedBefore(name: string): readonly Option[] {
    const { input } = this.of.schedule.call;
    const targeting = "targetingId" in input ? input.targetingId : undefined;
    return [...this.of.before.options.values()].filter((each) => each.name === name && each.targeting === targeting);
  }
}

function listUnder<V>(map: Map<string, V[]>, key: string, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
