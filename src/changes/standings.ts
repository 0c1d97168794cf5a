import { addTo } from "../platform/by-key.ts";
import { type Counts, ownReason, type Reason, type Standing } from "../runs/outcome.ts";
import { isCreate, type RunFacts, type Sent, type Settlement, type Step, type StepChange } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import { ObjectList, StepList } from "./rows/steps.ts";

type StepStanding =
  | "pending"
  | "done"
  | "alreadyDone"
  | "failed"
  | "refused"
  | "unknown"
  | "notApplied"
  | "deferred"
  | "replaced"
  | "dropped";

/**
 * The standings of steps that can be in doubt: they may or may not have been applied. A step with any other standing
 * has a certain outcome, or was replaced or dropped.
 */
const OPEN_TO_DOUBT: ReadonlySet<StepStanding> = new Set(["pending", "deferred", "unknown", "notApplied"]);

/** Why a refused step waits. `progress`: how many steps of the run had been applied when it was sent. */
interface Deferral {
  readonly reason: Reason;
  readonly progress: number;
}

export class StepStandings {
  readonly #steps: StepList;
  readonly #objects: ObjectList;
  readonly #standing: StepStanding[] = [];
  /** The steps with `prepares`: they set a temporary name, or reverse a part of a failed change. */
  readonly preparing = new Set<number>();
  /** Steps in doubt whose later requests were refused as a whole. Their first attempt may still have been applied. */
  readonly refusedInDoubt = new Set<number>();
  readonly #deferrals = new Map<number, Deferral>();
  /** When each step in doubt was first sent. */
  readonly #firstSent = new Map<number, Sent>();
  readonly #changing = new Map<string, number[]>();
  readonly #boundTo = new Map<number, number[]>();
  readonly #ofObject = new Map<number, number[]>();
  /** By test function: the next step to test, and the first two steps that passed. */
  readonly #searches = new Map<(step: Step) => boolean, { next: number; readonly found: number[] }>();

  /** The standings of steps. After steps were added to the list, call `follow` to give them standings. */
  constructor(steps: StepList, objects: ObjectList) {
    this.#steps = steps;
    this.#objects = objects;
    this.follow();
  }

  get length(): number {
    return this.#standing.length;
  }

  at(step: number): StepStanding | undefined {
    return this.#standing[step];
  }

  /** Returns whether a step was applied, or counts as applied because its object was already gone. */
  isApplied(step: number): boolean {
    const standing = this.#standing[step];
    return standing === "done" || standing === "alreadyDone";
  }

  isOpen(step: number): boolean {
    const standing = this.#standing[step];
    return standing === "pending" || standing === "deferred";
  }

  set(step: number, standing: Exclude<StepStanding, "deferred">): void {
    this.#standing[step] = standing;
    this.#deferrals.delete(step);
  }

  defer(step: number, deferral: Deferral): void {
    // `set` deletes an earlier deferral, so that a step that is deferred again is at the end of the map.
    this.set(step, "pending");
    this.#standing[step] = "deferred";
    this.#deferrals.set(step, deferral);
  }

  /** Records that a step was sent and may have been applied. Only its first attempt is stored. */
  suspect(step: number, sent: Sent): void {
    if (!this.#firstSent.has(step)) this.#firstSent.set(step, sent);
  }

  clearSuspicion(step: number): void {
    this.#firstSent.delete(step);
  }

  firstSent(step: number): Sent | undefined {
    return this.#firstSent.get(step);
  }

  suspects(): readonly number[] {
    return [...this.#firstSent.keys()].filter((id) => OPEN_TO_DOUBT.has(this.#standing[id] ?? "done"));
  }

  follow(): void {
    for (let id = this.length; id < this.#steps.length; id += 1) {
      this.#standing.push("pending");
      const step = this.#steps.partAt(id);
      if (step === undefined || step instanceof RowBlock) continue;
      if (step.prepares) this.preparing.add(id);
      for (const object of step.objects) addTo(this.#ofObject, object, id);
      for (const { object, field, id: bound } of step.bindings) {
        if (object !== undefined) addTo(this.#boundTo, object, id);
        if (field === "_id" && bound !== undefined) addTo(this.#changing, bound, id);
      }
    }
  }

  *pending(): Generator<number> {
    const next = (from: number): number => this.#standing.indexOf("pending", from);
    for (let id = next(0); id >= 0; id = next(id + 1)) yield id;
  }

  *inOrder(): Generator<number> {
    for (const id of this.preparing) if (this.#standing[id] === "pending") yield id;
    for (const id of this.pending()) if (!this.preparing.has(id)) yield id;
  }

  deferred(): readonly ({ readonly id: number } & Deferral)[] {
    return [...this.#deferrals].map(([id, deferral]) => ({ id, ...deferral }));
  }

  open(): number[] {
    return [...this.pending(), ...this.#deferrals.keys()];
  }

  ofObject(object: number): readonly number[] {
    const others = this.#ofObject.get(object) ?? [];
    const { block, row = 0 } = this.#objects.rowAt(object) ?? {};
    return block?.firstStep === undefined ? others : [block.firstStep + row, ...others];
  }

  onlyRowOf(object: number): number | undefined {
    if (this.#ofObject.has(object)) return undefined;
    const { block, row = 0 } = this.#objects.rowAt(object) ?? {};
    return block?.firstStep === undefined ? undefined : block.firstStep + row;
  }

  hasOtherThanRow(object: number): boolean {
    return this.#ofObject.has(object);
  }

  hasAllDone(object: number): boolean {
    return this.ofObject(object).every((id) => {
      if (this.isApplied(id) || this.#standing[id] === "replaced") return true;
      const step = this.#steps.partAt(id);
      if (step === undefined || step instanceof RowBlock) return false;
      return step.prepares === true || step.undoes !== undefined;
    });
  }

  isTouched(object: number): boolean {
    return this.ofObject(object).some((id) => this.#standing[id] === "done");
  }

  boundTo(object: number): readonly number[] {
    return this.#boundTo.get(object) ?? [];
  }

  /** Returns whether another step than `step` passes a test. Steps never change, so each is tested only once. */
  hasOther(step: number, test: (other: Step) => boolean): boolean {
    const search = this.#searches.get(test) ?? { next: 0, found: [] };
    this.#searches.set(test, search);
    // Of two steps that pass, at least one is not `step`. So no more are needed.
    for (; search.next < this.length && search.found.length < 2; search.next += 1) {
      const candidate = this.#steps.at(search.next);
      if (candidate !== undefined && test(candidate)) search.found.push(search.next);
    }
    return search.found.some((found) => found !== step);
  }

  changing(id: string): readonly number[] {
    return this.#changing.get(id) ?? [];
  }
}

export class Outcomes {
  readonly #objects: ObjectList;
  readonly #standing: Standing[] = [];
  readonly #ids: (string | undefined)[] = [];
  readonly #reasons = new Map<number, Reason>();
  readonly #counts: { -readonly [Field in keyof Counts]: Counts[Field] } = {
    pending: 0,
    succeeded: 0,
    alreadyDone: 0,
    failed: 0,
    notApplied: 0,
    unknown: 0,
  };

  /** Call `follow` after objects were added to the list, to give them outcomes. */
  constructor(objects: ObjectList) {
    this.#objects = objects;
    this.follow();
  }

  counts(): Counts {
    return { ...this.#counts };
  }

  standing(object: number): Standing {
    return this.#standing[object] ?? "pending";
  }

  reason(object: number): Reason | undefined {
    return this.#reasons.get(object);
  }

  idOf(object: number): string | undefined {
    return this.#ids[object] ?? this.#objects.idOf(object);
  }

  giveId(object: number, id: string): void {
    this.#ids[object] = id;
  }

  follow(): void {
    for (let object = this.#standing.length; object < this.#objects.length; object += 1) {
      this.#standing.push("pending");
      this.#ids.push(undefined);
      this.#counts.pending += 1;
    }
  }

  /** Sets the outcome of an object that has none yet, or only `notApplied`. Any other outcome stays. */
  settle({ object, outcome, reason, _id }: Settlement): void {
    const before = this.#standing[object];
    if (before === outcome || (before !== "pending" && before !== "notApplied")) return;
    this.#move(object, before, outcome);
    if (reason !== undefined) this.#reasons.set(object, reason);
    if (_id !== undefined) this.giveId(object, _id);
  }

  doubt(object: number, reason: Reason): void {
    const before = this.#standing.at(object);
    if (before === undefined || before === "pending" || before === "unknown") return;
    this.#move(object, before, "unknown");
    this.#reasons.set(object, reason);
  }

  reopen(object: number): void {
    const before = this.#standing[object];
    if (before !== "unknown" && before !== "notApplied" && before !== "failed") return;
    this.#move(object, before, "pending");
    this.#reasons.delete(object);
  }

  #move(object: number, from: Standing, to: Standing): void {
    this.#counts[from] = (this.#counts[from] ?? 0) - 1;
    this.#counts[to] = (this.#counts[to] ?? 0) + 1;
    this.#standing[object] = to;
  }
}

export interface PlannedWork {
  readonly objects: ObjectList;
  readonly steps: StepList;
  readonly settlements: readonly Settlement[];
  readonly facts?: RunFacts;
}

type NotDone = "failed" | "refused" | "unknown" | "notApplied";

export function nothingPlanned(): PlannedWork {
  return { objects: new ObjectList(), steps: new StepList(), settlements: [] };
}

/** The objects and steps of a run. The outcome of a step decides those of its objects and of objects that need them. */
export class RunWork {
  readonly objects: ObjectList;
  readonly steps: StepList;
  readonly outcomes: Outcomes;
  readonly standings: StepStandings;

  constructor({ objects, steps, settlements }: PlannedWork) {
    this.objects = objects;
    this.steps = steps;
    this.outcomes = new Outcomes(objects);
    this.standings = new StepStandings(steps, objects);
    for (const settlement of settlements) this.outcomes.settle(settlement);
  }

  finish({ objects, undoes }: Step, change: Extract<StepChange, { readonly to: "done" | "alreadyDone" }>): void {
    for (const [position, object] of objects.entries()) {
      if (undoes !== undefined) {
        const outcome = undoes.code === "PARTLY_APPLIED" ? "unknown" : "failed";
        this.outcomes.settle({ object, outcome, reason: undoes });
      } else this.finishObject(object, position === 0 ? change._id : (change.childIds?.[position - 1] ?? undefined));
    }
  }

  finishObject(object: number, id: string | undefined): void {
    const { outcomes, standings } = this;
    // The step may change another option than the object, such as a group that gets a placeholder. The object keeps its
    // ID then.
    if (id !== undefined && outcomes.idOf(object) === undefined) outcomes.giveId(object, id);
    if (!standings.hasAllDone(object)) return;
    outcomes.settle({ object, outcome: standings.isTouched(object) ? "succeeded" : "alreadyDone" });
  }

  /** Ends a step and its objects without success. If a create failed, the objects inside it get `notApplied`. */
  failStep(step: Step, to: NotDone, reason: Reason): void {
    this.standings.set(step.id, to);
    const [main] = step.objects;
    const isOver = to === "failed" || to === "refused";
    // OWNER_UNCLEAR says that an object with this name exists. That is true only of the main object's name.
    const isInside = reason.code === "OWNER_UNCLEAR";
    const reasonInside = isInside ? ownReason("OWNER_UNCLEAR", { ...reason.detail, isInside }) : reason;
    for (const object of step.objects) {
      if (object === main) this.#fail(object, to, reason);
      else if (!isOver || !isCreate(step)) this.#fail(object, to, reasonInside);
      else this.#fail(object, "notApplied", ownReason("NEEDS_FAILED", { needs: main }));
    }
  }

  #fail(object: number, to: NotDone, reason: Reason): void {
    const { outcomes, standings } = this;
    const partly = (to === "notApplied" || to === "refused") && standings.isTouched(object);
    const outcome = to === "refused" ? "failed" : to;
    outcomes.settle({
      object,
      outcome: partly ? "unknown" : outcome,
      reason: partly ? ownReason("PARTLY_APPLIED", { because: reason.code }) : reason,
    });
    const drop = to === "failed" ? "dropped" : "notApplied";
    this.dropSteps(object, drop);
    if (outcomes.idOf(object) !== undefined) return;
    for (const id of standings.boundTo(object)) {
      const bound = this.steps.at(id);
      if (bound === undefined || standings.at(id) !== "pending") continue;
      standings.set(id, drop);
      for (const needy of bound.objects) {
        if (needy !== object) this.#fail(needy, "notApplied", ownReason("NEEDS_FAILED", { needs: object }));
      }
    }
  }

  /** Gives those objects of unanswered steps that are still pending the outcome `unknown`. Returns them. */
  settleUnanswered(steps: Iterable<number>): readonly number[] {
    const { outcomes } = this;
    const objects = new Set([...steps].flatMap((id) => this.steps.at(id)?.objects ?? []));
    const open = [...objects].filter((object) => outcomes.standing(object) === "pending");
    for (const object of open) outcomes.settle({ object, outcome: "unknown", reason: ownReason("NO_ANSWER") });
    return open;
  }

  dropSteps(object: number, to: "dropped" | "notApplied"): void {
    const { standings } = this;
    for (const id of standings.ofObject(object)) if (standings.isOpen(id)) standings.set(id, to);
  }
}
