import {
  type Counts,
  type Did,
  ownReason,
  type Reason,
  type ReportedObject,
  type Standing,
} from "../../runs/outcome.ts";
import type { MadeRows, RowsEntry, RunFacts, Settlement, Step, StepChange, UnexpectedCount } from "../rows/entries.ts";
import { RowWriter } from "../rows/row-block.ts";
import { ObjectList, StepList } from "../rows/steps.ts";
import { StepStandings } from "./step-standings.ts";

/** What is planned for a run. */
export interface PlannedWork {
  readonly objects: ObjectList;
  readonly steps: StepList;
  /** The objects that need no request. */
  readonly settlements: readonly Settlement[];
  readonly facts?: RunFacts;
}

/** How a step ends that did not do what it was to do. */
type NotDone = "failed" | "refused" | "unknown" | "notApplied";

/**
 * The objects and steps of a run, and where each of them stands. How a step ends decides how its
 * objects, and of the steps that need them.
 */
export class RunWork {
  readonly objects: ObjectList;
  readonly steps: StepList;
  readonly outcomes: Outcomes;
  readonly standings: StepStandings;
  /** Grows with every step that is done: whether something changed since a step was refused. */
  progress = 0;
  /** By object: an option that holds another number of Context IDs than expected. */
  readonly unexpectedCounts = new Map<number, UnexpectedCount>();
  readonly #rows = new RowWriter();

  /** Takes a plan over: its lists grow with the run from now on. */
  constructor({ objects, steps, settlements }: PlannedWork = nothingPlanned()) {
    this.objects = objects;
    this.steps = steps;
    this.outcomes = new Outcomes(objects);
    this.standings = new StepStandings(steps, objects);
    for (const settlement of settlements) this.outcomes.settle(settlement);
  }

  addObjects(objects: readonly ReportedObject[]): void {
    for (const object of objects) this.objects.add(object);
    this.outcomes.follow();
  }

  /** Adds rows with their steps. */
  addRows({ index, line, items }: RowsEntry): void {
    if (items instanceof Uint8Array) throw new RangeError("rows are read as a list");
    for (const [row, item] of items.entries()) {
      const place = line === undefined ? { index: index + row } : { index: index + row, line: line + row };
      const block = this.#rows.add(item, place, this.objects.length, this.steps.length);
      this.objects.addRow(block);
      this.steps.addRow(block);
    }
    this.outcomes.follow();
    this.standings.follow();
  }

  addSteps(steps: readonly Step[]): void {
    for (const step of steps) this.steps.add(step);
    this.standings.follow();
  }

  /** Gives an object its outcome, whatever steps were still to come for it. */
  settle(settlement: Settlement): void {
    this.outcomes.settle(settlement);
    this.#dropSteps(settlement.object, "dropped");
  }

  /** Applies the change of a step. `left` says when its request left, and how far the run was then. */
  change(change: StepChange, left: { readonly at: number; readonly progress: number }): void {
    const step = this.steps.at(change.step);
    if (step === undefined) return;
    switch (change.to) {
      case "suspect":
        this.standings.suspect(step.id, left.at);
        return;
      case "pending":
      case "replaced":
        this.standings.set(step.id, change.to);
        return;
      case "deferred":
        this.standings.defer(step.id, { reason: change.reason, progress: left.progress });
        return;
      case "done":
      case "alreadyDone":
        this.standings.set(step.id, change.to);
        this.standings.clearSuspicion(step.id);
        if (change.to === "done") this.progress += 1;
        if (change.contextCount !== undefined) this.unexpectedCounts.set(step.objects[0] ?? -1, change.contextCount);
        if (!step.prepares) this.#finish(step, change);
        return;
      default:
        if (change.to === "failed") this.standings.clearSuspicion(step.id);
        if (change.to === "unknown" && change.reason.detail?.refused === true) this.standings.refuseInDoubt(step.id);
        if (change.undone) this.standings.set(step.id, change.to);
        else this.#failStep(step, change.to, change.reason);
    }
  }

  /** Applies `done` to rows that follow each other. */
  make({ from, ids }: MadeRows): void {
    this.progress += ids.length;
    for (const [at, id] of ids.entries()) {
      const object = this.steps.objectOf(from + at);
      if (object === undefined) continue;
      this.standings.set(from + at, "done");
      this.standings.clearSuspicion(from + at);
      // Most of an import: a row is the only step of its object.
      if (this.standings.hasOtherThanRow(object)) this.#finishObject(object, id ?? undefined);
      else {
        if (id !== null) this.outcomes.giveId(object, id);
        this.outcomes.settle({ object, outcome: "succeeded" });
      }
    }
  }

  /** Steps that left too late are in doubt, whatever became of them meanwhile. */
  doubt(steps: readonly number[], at: number): void {
    const reason = ownReason("NO_ANSWER", { reason: "it left when another process wrote already" });
    for (const step of steps) {
      this.standings.suspect(step, at);
      if (this.standings.isOpen(step)) continue;
      this.standings.set(step, "unknown");
      for (const object of this.steps.at(step)?.objects ?? []) this.outcomes.doubt(object, reason);
    }
  }

  /** What was done with an object that succeeded or needed nothing; undefined for any other. */
  didOf(object: number): Did | undefined {
    const outcome = this.outcomes.standing(object);
    if (outcome !== "succeeded" && outcome !== "alreadyDone") return undefined;
    // Most of an import: a row is the only step of its object.
    const row = this.standings.onlyRowOf(object);
    if (row !== undefined) return this.standings.at(row) === "done" ? "created" : "same";
    let did: Did = "same";
    for (const id of this.standings.ofObject(object)) {
      const standing = this.standings.at(id);
      const operation = this.steps.partAt(id)?.operation;
      const isDelete = operation === "deleteOptions" || operation === "deleteTargetings";
      // An object that did not exist any more was deleted by an earlier attempt.
      if (isDelete && (standing === "done" || standing === "alreadyDone")) return "deleted";
      if (standing !== "done" || operation === undefined) continue;
      if (operation === "addOptions" || operation === "createTargetings") return "created";
      if (!this.#changesNothing(object)) did = "changed";
    }
    return did;
  }

  /** Whether the former values equal the wanted ones, as far as they were read. */
  #changesNothing(object: number): boolean {
    const { from, to, added = 0, removed = 0, ...rest } = this.objects.at(object)?.change ?? {};
    if (from !== undefined) return JSON.stringify(from) === JSON.stringify(to) && added + removed === 0;
    return added + removed === 0 && (rest.alreadyThere !== undefined || rest.absent !== undefined);
  }

  /** Ends open steps without an answer: a sent one is `unknown`, an unsent one `notApplied`. */
  stop(reason: Reason): void {
    const open = this.standings.open().flatMap((id) => this.steps.at(id) ?? []);
    const isSuspect = ({ id }: Step): boolean => this.standings.suspectSince(id) !== undefined;
    // Those in doubt first, since an object stands as its first step that is stopped.
    for (const step of open) if (isSuspect(step)) this.#failStep(step, "unknown", ownReason("NO_ANSWER"));
    for (const step of open) if (!isSuspect(step)) this.#failStep(step, "notApplied", reason);
  }

  /** Objects without a step were never planned: they end as `notApplied`. */
  leaveUnplanned(reason: Reason): void {
    for (let object = 0; object < this.objects.length; object += 1) {
      if (this.outcomes.standing(object) === "pending") {
        this.outcomes.settle({ object, outcome: "notApplied", reason });
      }
    }
  }

  /** The objects that failed only since the service refused their request as a whole: `reopen` makes them pending. */
  refused(): ReadonlySet<number> {
    const objects = new Set<number>();
    for (let id = 0; id < this.steps.length; id += 1) {
      if (this.standings.at(id) !== "refused") continue;
      for (const object of this.steps.at(id)?.objects ?? []) {
        if (this.outcomes.standing(object) === "failed") objects.add(object);
      }
    }
    return objects;
  }

  /** Steps that left and were not answered, but for those of which no answer would tell who made what has the name. */
  suspects(): readonly number[] {
    return this.standings.suspects().filter((id) => !this.#isUnclear(id));
  }

  /** Makes pending again the steps that a stop left open; failed steps stay failed. */
  reopen(): void {
    for (let id = 0; id < this.steps.length; id += 1) {
      const standing = this.standings.at(id);
      if (standing !== "unknown" && standing !== "notApplied" && standing !== "refused") continue;
      if (standing === "unknown" && this.#isUnclear(id)) continue;
      this.standings.set(id, "pending");
      for (const object of this.steps.at(id)?.objects ?? []) this.outcomes.reopen(object);
    }
  }

  #finish({ objects, undoes }: Step, change: Extract<StepChange, { readonly to: "done" | "alreadyDone" }>): void {
    for (const [position, object] of objects.entries()) {
      if (undoes !== undefined) {
        const outcome = undoes.code === "PARTLY_APPLIED" ? "unknown" : "failed";
        this.outcomes.settle({ object, outcome, reason: undoes });
      } else this.#finishObject(object, position === 0 ? change._id : (change.childIds?.[position - 1] ?? undefined));
    }
  }

  /** A step about an object was done, and may have been the last one. */
  #finishObject(object: number, id: string | undefined): void {
    if (id !== undefined) this.outcomes.giveId(object, id);
    if (!this.standings.hasAllDone(object)) return;
    this.outcomes.settle({ object, outcome: this.standings.isTouched(object) ? "succeeded" : "alreadyDone" });
  }

  /** A refused create fails for its main object; the objects inside of it were not attempted. */
  #failStep(step: Step, to: NotDone, reason: Reason): void {
    this.standings.set(step.id, to);
    const [main] = step.objects;
    const makes = step.operation === "createTargetings" || step.operation === "addOptions";
    const isOver = to === "failed" || to === "refused";
    for (const object of step.objects) {
      if (object === main || !isOver || !makes) this.#fail(object, to, reason);
      else this.#fail(object, "notApplied", ownReason("NEEDS_FAILED", { needs: main }));
    }
  }

  #fail(object: number, to: NotDone, reason: Reason): void {
    const partly = (to === "notApplied" || to === "refused") && this.standings.isTouched(object);
    const outcome = to === "refused" ? "failed" : to;
    this.outcomes.settle({
      object,
      outcome: partly ? "unknown" : outcome,
      reason: partly ? ownReason("PARTLY_APPLIED", { because: reason.code }) : reason,
    });
    const drop = to === "failed" ? "dropped" : "notApplied";
    this.#dropSteps(object, drop);
    if (this.outcomes.idOf(object) !== undefined) return;
    for (const id of this.standings.boundTo(object)) {
      const bound = this.steps.at(id);
      if (bound === undefined || this.standings.at(id) !== "pending") continue;
      this.standings.set(id, drop);
      for (const needy of bound.objects) {
        if (needy !== object) this.#fail(needy, "notApplied", ownReason("NEEDS_FAILED", { needs: object }));
      }
    }
  }

  #dropSteps(object: number, to: "dropped" | "notApplied"): void {
    for (const id of this.standings.ofObject(object)) if (this.standings.isOpen(id)) this.standings.set(id, to);
  }

  /**
   * Whether the step ended as `OWNER_UNCLEAR`. It is not sent again: alone, the found object would look like our own.
   */
  #isUnclear(step: number): boolean {
    const main = this.steps.objectOf(step);
    return main !== undefined && this.outcomes.reason(main)?.code === "OWNER_UNCLEAR";
  }
}

function nothingPlanned(): PlannedWork {
  return { objects: new ObjectList(), steps: new StepList(), settlements: [] };
}

/** Where each object of a run stands, why, and which ID it has. */
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

  /** Follows the objects of the list; those that are added to it later once `follow` is called. */
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

  /** The ID of an object: as the service gave it, else as the caller did. */
  idOf(object: number): string | undefined {
    return this.#ids[object] ?? this.#objects.idOf(object);
  }

  giveId(object: number, id: string): void {
    this.#ids[object] = id;
  }

  /** Begins to follow the objects that were added to the list. */
  follow(): void {
    for (let object = this.#standing.length; object < this.#objects.length; object += 1) {
      this.#standing.push("pending");
      this.#ids.push(undefined);
      this.#counts.pending += 1;
    }
  }

  /** Gives an object its outcome. The first one stays, but for `notApplied`. */
  settle({ object, outcome, reason, _id }: Settlement): void {
    const before = this.#standing[object];
    if (before === outcome || (before !== "pending" && before !== "notApplied")) return;
    this.#move(object, before, outcome);
    if (reason !== undefined) this.#reasons.set(object, reason);
    if (_id !== undefined) this.giveId(object, _id);
  }

  /** Makes the outcome of an object `unknown` again. */
  doubt(object: number, reason: Reason): void {
    const before = this.#standing.at(object);
    if (before === undefined || before === "pending" || before === "unknown") return;
    this.#move(object, before, "unknown");
    this.#reasons.set(object, reason);
  }

  /** Makes an object that did not succeed pending again. */
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
