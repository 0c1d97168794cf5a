import {
  type Counts,
  changesNothing,
  type Did,
  type OtherCount,
  ownReason,
  type Reason,
  type ReportedObject,
  type Standing,
  type StopCause,
} from "../runs/outcome.ts";
import { CLOCKS_APART_MS, ulidTime } from "../spec/names-and-contexts.ts";
import {
  type Binding,
  bindingOf,
  isCreate,
  isDeletion,
  isMarkedIn,
  type JournalEntry,
  type MadeRows,
  type NewestOptions,
  type RowsEntry,
  type RunFacts,
  type Sent,
  type Step,
  type StepChange,
  type UnexpectedCount,
} from "./rows/entries.ts";
import { RowBlock, RowWriter } from "./rows/row-block.ts";
import type { ObjectList, StepList } from "./rows/steps.ts";
import { nothingPlanned, type PlannedWork, RunWork } from "./standings.ts";

/** A request without an answer yet. `progress`: how many steps of the run were applied when it was sent. */
interface InFlight extends Sent {
  readonly steps: readonly number[];
  readonly again: boolean;
  readonly progress: number;
}

/** The state of a run. After planning, only journal entries change it, so that it can be restored from them. */
export class RunState {
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  readonly failedWith = new Map<number, number>();
  readonly newest = new Map<string, NewestOptions>();
  planned = false;
  stopped: { readonly cause: StopCause; readonly reason?: Reason } | undefined;
  updatedAt = 0;
  /** When the run first ended, if it was undone or cancelled later. Otherwise `updatedAt` says when it ended. */
  endedAt: number | undefined;
  facts: RunFacts = {};
  resumed: { readonly counts: Counts } | undefined;
  late: readonly number[] = [];

  #work: RunWork;
  readonly #rows = new RowWriter();
  /** How many steps were applied. A deferred step is sent again if this number has increased since it was sent. */
  #progress = 0;
  /** By object: the expected and the actual number of Context IDs. Only objects for which these differ. */
  readonly #unexpectedCounts = new Map<number, UnexpectedCount>();
  #inFlight: InFlight | undefined;

  constructor(plan: PlannedWork = nothingPlanned()) {
    this.#work = new RunWork(plan);
    this.facts = { ...plan.facts };
  }

  /** Sets the plan. The caller must not change its lists later. Throws a RangeError if the run already has a plan. */
  adopt(plan: PlannedWork): void {
    if (this.steps.length + this.objects.length > 0) throw new RangeError("the run already has a plan");
    this.#work = new RunWork(plan);
    this.facts = { ...plan.facts };
  }

  get objects(): Pick<ObjectList, "length" | "at" | "entries"> {
    return this.#work.objects;
  }

  get steps(): Omit<StepList, "add" | "addRow"> {
    return this.#work.steps;
  }

  apply(entry: JournalEntry): void {
    // The run had already ended. It was undone or cancelled later, which has added this second entry `stop`.
    if (entry.t === "stop" && this.stopped !== undefined) this.endedAt ??= this.updatedAt;
    if (entry.t === "resume") this.endedAt = undefined;
    this.#change(entry);
    if ("at" in entry) this.updatedAt = entry.at;
  }

  #change(entry: JournalEntry): void {
    switch (entry.t) {
      case "objects":
        this.#addObjects(entry.objects);
        return;
      case "settled":
        for (const settlement of entry.settlements) this.#work.outcomes.settle(settlement);
        return;
      case "rows":
        this.#addRows(entry);
        return;
      case "steps":
        this.#addSteps(entry.steps);
        return;
      case "replan":
        throw new RangeError("a replan entry cannot be applied to this state: start with a new RunState");
      case "facts":
        this.facts = { ...this.facts, ...entry.facts };
        return;
      case "planned":
        this.planned = true;
        this.requests.planned = entry.requests;
        return;
      case "newest":
        this.newest.set(entry.targeting, entry);
        return;
      case "send":
        this.#inFlight = { ...entry, progress: this.#progress };
        this.requests.sent += 1;
        if (entry.again) this.requests.resent += 1;
        return;
      case "withheld":
        this.requests.sent -= 1;
        if (this.#inFlight?.again) this.requests.resent -= 1;
        this.#inFlight = undefined;
        return;
      case "answer":
        this.#answer(entry);
        return;
      case "late":
        this.late = [...this.late, ...entry.steps];
        this.#doubt(entry.steps, entry.at);
        return;
      case "waited":
        this.requests.waitedMs += entry.ms;
        if (entry.statusCode !== undefined) {
          this.failedWith.set(entry.statusCode, (this.failedWith.get(entry.statusCode) ?? 0) + 1);
        }
        return;
      case "stop":
        this.#stop(entry.cause, entry.reason);
        return;
      case "resume":
        this.stopped = undefined;
        this.#resume(this.settleUnanswered());
        return;
    }
  }

  /** Returns the steps of the last request if it has no answer (yet). They may have been applied. */
  lostInFlight(): readonly number[] {
    return this.#inFlight?.steps ?? [];
  }

  /** Returns the steps that may have been applied, without those marked `OWNER_UNCLEAR`, which no read can resolve. */
  inDoubt(): ReadonlySet<number> {
    const suspects = this.#work.standings.suspects().filter((id) => !this.#isUnclear(id));
    return new Set([...suspects, ...this.lostInFlight()]);
  }

  /**
   * Returns whether an option existed before the run's first request, and so was not created by the run. This is judged
   * by the list of options that was read before that request. Of a long list, only the newest options are known.
   * "likelyBefore": the option has an older ULID than these. A new option can have an older ULID only if a clock of the
   * service is slow or was set back. Undefined if no list was read.
   */
  orderByList(step: Step, id: string): "before" | "likelyBefore" | "after" | undefined {
    const list = bindingOf(step, "parent") === undefined ? "targeting" : "parent";
    const newest = this.newest.get(this.boundId(step, list) ?? "");
    if (newest === undefined) return undefined;
    const { _id, listed, latest } = newest;
    if (listed !== undefined) return isMarkedIn(listed, id) ? "before" : "after";
    if (_id === null || id > _id) return "after";
    if (id === _id || latest?.includes(id)) return "before";
    return latest === undefined || ulidTime(id) < ulidTime(_id) - CLOCKS_APART_MS ? "likelyBefore" : "after";
  }

  /** Gives the objects of unanswered requests the outcome `unknown`. Returns these objects. */
  settleUnanswered(): readonly number[] {
    return this.#work.settleUnanswered(this.inDoubt());
  }

  counts(): Counts {
    return this.#work.outcomes.counts();
  }

  /** Returns the objects that failed only because their whole request was refused. A resume sends them again. */
  refused(): ReadonlySet<number> {
    const objects = new Set<number>();
    for (let id = 0; id < this.steps.length; id += 1) {
      if (this.#work.standings.at(id) !== "refused") continue;
      for (const object of this.steps.at(id)?.objects ?? []) {
        if (this.standing(object) === "failed") objects.add(object);
      }
    }
    return objects;
  }

  standing(object: number): Standing {
    return this.#work.outcomes.standing(object);
  }

  /** Returns whether an object is now as requested, by this run or already before. */
  hasSucceeded(object: number): boolean {
    const standing = this.standing(object);
    return standing === "succeeded" || standing === "alreadyDone";
  }

  reason(object: number): Reason | undefined {
    return this.#work.outcomes.reason(object);
  }

  /** Returns the ID of an object: the one that the service assigned or, before that, the one in the input. */
  idOf(object: number): string | undefined {
    return this.#work.outcomes.idOf(object);
  }

  /** Returns what the run did to an object. Undefined if the object did not succeed. */
  didOf(object: number): Did | undefined {
    if (!this.hasSucceeded(object)) return undefined;
    const { standings } = this.#work;
    // Most objects have a single step, a row. Checking it first is fast.
    const row = standings.onlyRowOf(object);
    if (row !== undefined) return this.isDone(row) ? "created" : "same";
    let did: Did = "same";
    for (const id of standings.ofObject(object)) {
      const part = this.steps.partAt(id);
      if (part === undefined || !standings.isApplied(id)) continue;
      // If the object was already gone when the deletion was sent again, an earlier attempt has probably deleted it.
      if (isDeletion(part)) return "deleted";
      if (!this.isDone(id)) continue;
      if (isCreate(part)) return "created";
      if (!changesNothing(this.objects.at(object)?.change)) did = "changed";
    }
    return did;
  }

  /** Returns whether a step is in doubt: it was sent, and may have been applied. */
  isSuspect(step: number): boolean {
    return this.firstSent(step) !== undefined;
  }

  /** Returns when and by which machine a step in doubt was first sent. Undefined if the step is not in doubt. */
  firstSent(step: number): Sent | undefined {
    return this.#work.standings.firstSent(step);
  }

  /** Returns whether a step in doubt was refused with its whole request. A refusal after a resume ends the doubt. */
  wasRefusedInDoubt(step: number): boolean {
    return this.#work.standings.refusedInDoubt.has(step);
  }

  doneSteps(object: number): readonly Step[] {
    const { standings, steps } = this.#work;
    return standings.ofObject(object).flatMap((id) => (standings.isApplied(id) ? (steps.at(id) ?? []) : []));
  }

  openSteps(object: number): readonly Step[] {
    const { standings, steps } = this.#work;
    return standings.ofObject(object).flatMap((id) => (standings.isOpen(id) ? (steps.at(id) ?? []) : []));
  }

  /** Returns the steps with `prepares` that were applied, or that may have been (`isSure` is then false). */
  preparingSteps(): readonly { readonly step: Step; readonly isSure: boolean }[] {
    return [...this.#work.standings.preparing].flatMap((id) => {
      const step = this.steps.at(id);
      const isSure = this.isDone(id);
      const isPossible = isSure || this.isSuspect(id);
      return step !== undefined && isPossible ? [{ step, isSure }] : [];
    });
  }

  temporaryNames(): number {
    return this.preparingSteps().filter(({ step, isSure }) => isSure && step.formerName !== undefined).length;
  }

  unexpectedCounts(): readonly OtherCount[] {
    return [...this.#unexpectedCounts].map(([object, counts]) => ({
      ...counts,
      name: this.objects.at(object)?.name,
      _id: this.idOf(object),
    }));
  }

  isDone(step: number): boolean {
    return this.#work.standings.at(step) === "done";
  }

  /** Returns whether a step was applied, or the object of a repeated deletion or a reversal was already gone. */
  isApplied(step: number): boolean {
    return this.#work.standings.isApplied(step);
  }

  /** Returns whether steps of other objects need the ID of an object that this run creates. */
  isNeeded(object: number): boolean {
    return this.#work.standings.boundTo(object).some((id) => this.steps.at(id)?.objects.includes(object) === false);
  }

  isUntouched(object: number): boolean {
    const { standings } = this.#work;
    return standings
      .boundTo(object)
      .every((id) => standings.at(id) === "pending" && standings.firstSent(id) === undefined);
  }

  /**
   * Returns the steps that may be sent now, at most one for each changed object, because a request may contain an ID
   * only once (management-api 4.1). Preparing steps come first: a temporary name must not replace the final one.
   */
  ready(): readonly number[] {
    const ready: number[] = [];
    const changed = new Set<string>();
    for (const id of this.#work.standings.inOrder()) {
      const part = this.steps.partAt(id);
      if (part === undefined || !(part instanceof RowBlock || this.#isReady(part))) continue;
      const target = this.boundId(part, "_id");
      if (target !== undefined && changed.has(target)) continue;
      if (target !== undefined) changed.add(target);
      ready.push(id);
    }
    return ready;
  }

  /** Returns the refused steps that wait. `changedSince`: another step was applied since the refused one was sent. */
  deferredSteps(): readonly { readonly step: Step; readonly reason: Reason; readonly changedSince: boolean }[] {
    return this.#work.standings.deferred().flatMap(({ id, reason, progress }) => {
      const step = this.steps.at(id);
      return step === undefined ? [] : [{ step, reason, changedSince: this.#progress > progress }];
    });
  }

  /** Returns the ID for a bound field of a step. Undefined if the field is not bound or the ID is not known yet. */
  boundId(step: Step | RowBlock | undefined, field: Binding["field"]): string | undefined {
    const binding = bindingOf(step, field);
    return binding && this.idOfBinding(binding);
  }

  idOfBinding(binding: Binding): string | undefined {
    if (binding.id !== undefined) return binding.id;
    return binding.object === undefined ? undefined : this.idOf(binding.object);
  }

  /** Returns whether another step than `step` passes a test. The result is cached for each function `test`. */
  hasOther(step: number, test: (other: Step) => boolean): boolean {
    return this.#work.standings.hasOther(step, test);
  }

  stepsChanging(id: string): readonly Step[] {
    return this.#work.standings.changing(id).flatMap((step) => this.steps.at(step) ?? []);
  }

  #isReady({ bindings, after = [] }: Step): boolean {
    return (
      bindings.every((binding) => this.idOfBinding(binding) !== undefined) &&
      after.every((id) => !this.#work.standings.isOpen(id))
    );
  }

  #addObjects(objects: readonly ReportedObject[]): void {
    for (const object of objects) this.#work.objects.add(object);
    this.#work.outcomes.follow();
  }

  #addRows({ index, line, items }: RowsEntry): void {
    if (items instanceof Uint8Array) throw new RangeError("the rows of a journal entry must be a list, not bytes");
    const { objects, steps, outcomes, standings } = this.#work;
    for (const [row, item] of items.entries()) {
      const place = line === undefined ? { index: index + row } : { index: index + row, line: line + row };
      const block = this.#rows.add(item, place, objects.length, steps.length);
      objects.addRow(block);
      steps.addRow(block);
    }
    outcomes.follow();
    standings.follow();
  }

  #addSteps(steps: readonly Step[]): void {
    for (const step of steps) this.#work.steps.add(step);
    this.#work.standings.follow();
  }

  #answer({ steps, changes, made, settlements, amended }: Extract<JournalEntry, { readonly t: "answer" }>): void {
    this.#addSteps(steps ?? []);
    const left = this.#inFlight ?? { at: this.updatedAt, progress: this.#progress };
    for (const change of changes) this.#changeStep(change, left);
    if (made !== undefined) this.#make(made);
    for (const { object, ...more } of amended ?? []) this.#work.objects.amend(object, more);
    for (const settlement of settlements ?? []) {
      this.#work.outcomes.settle(settlement);
      this.#work.dropSteps(settlement.object, "dropped");
    }
    this.#inFlight = undefined;
  }

  /** Applies a change to a step. `left`: the time and the number of applied steps when the step was sent. */
  #changeStep(change: StepChange, left: Sent & Pick<InFlight, "progress">): void {
    const step = this.steps.at(change.step);
    if (step === undefined) return;
    const { standings } = this.#work;
    switch (change.to) {
      case "suspect":
        standings.suspect(step.id, left);
        return;
      case "pending":
      case "replaced":
        standings.set(step.id, change.to);
        return;
      case "deferred":
        standings.defer(step.id, { reason: change.reason, progress: left.progress });
        return;
      case "done":
      case "alreadyDone":
        standings.set(step.id, change.to);
        standings.clearSuspicion(step.id);
        if (change.to === "done") this.#progress += 1;
        if (change.contextCount !== undefined) this.#unexpectedCounts.set(step.objects[0] ?? -1, change.contextCount);
        if (!step.prepares) this.#work.finish(step, change);
        return;
      default:
        if (change.to === "failed") standings.clearSuspicion(step.id);
        if (change.to === "unknown" && change.reason.detail?.refused === true) standings.refusedInDoubt.add(step.id);
        if (change.undone) standings.set(step.id, change.to);
        else this.#work.failStep(step, change.to, change.reason);
    }
  }

  #make({ from, ids }: MadeRows): void {
    const { outcomes, standings } = this.#work;
    this.#progress += ids.length;
    for (const [at, id] of ids.entries()) {
      const object = this.steps.objectOf(from + at);
      if (object === undefined) continue;
      standings.set(from + at, "done");
      standings.clearSuspicion(from + at);
      if (standings.hasOtherThanRow(object)) this.#work.finishObject(object, id ?? undefined);
      else {
        if (id !== null) outcomes.giveId(object, id);
        outcomes.settle({ object, outcome: "succeeded" });
      }
    }
  }

  /** Marks steps as in doubt that may have been sent without the write lock, although their outcomes seemed known. */
  #doubt(steps: readonly number[], at: number): void {
    const { outcomes, standings } = this.#work;
    const reason = ownReason("NO_ANSWER", { reason: "the request was sent late, when another process could write" });
    for (const step of steps) {
      standings.suspect(step, { at });
      if (standings.isOpen(step)) continue;
      standings.set(step, "unknown");
      for (const object of this.steps.at(step)?.objects ?? []) outcomes.doubt(object, reason);
    }
  }

  /** Ends all open steps: as `unknown` if the step may have been applied, otherwise as `notApplied`. */
  #stop(cause: StopCause, given: Reason | undefined): void {
    const { outcomes, standings } = this.#work;
    this.stopped = given === undefined ? { cause } : { cause, reason: given };
    // The service may have applied the request in progress, so its steps are in doubt.
    for (const step of this.lostInFlight()) standings.suspect(step, this.#inFlight ?? { at: 0 });
    this.#inFlight = undefined;
    const reason = given ?? ownReason(STOP_REASONS[cause]);
    const open = standings.open().flatMap((id) => this.steps.at(id) ?? []);
    // The first step that ends without success decides the outcome of its object, so steps in doubt come first.
    for (const step of open) if (this.isSuspect(step.id)) this.#work.failStep(step, "unknown", ownReason("NO_ANSWER"));
    for (const step of open) if (!this.isSuspect(step.id)) this.#work.failStep(step, "notApplied", reason);
    if (this.planned) return;
    // The loops above do not reach objects without steps, which exist if the run was stopped during planning.
    for (let object = 0; object < this.objects.length; object += 1) {
      if (this.standing(object) === "pending") outcomes.settle({ object, outcome: "notApplied", reason });
    }
  }

  #resume(unanswered: readonly number[]): void {
    const { outcomes, standings } = this.#work;
    this.resumed = { counts: this.counts() };
    for (const object of unanswered) outcomes.reopen(object);
    for (let id = 0; id < this.steps.length; id += 1) {
      const standing = standings.at(id);
      if (standing !== "unknown" && standing !== "notApplied" && standing !== "refused") continue;
      if (standing === "unknown" && this.#isUnclear(id)) continue;
      standings.set(id, "pending");
      for (const object of this.steps.at(id)?.objects ?? []) outcomes.reopen(object);
    }
  }

  /**
   * Returns whether it is unknown who created the object of a step. Such a step is not sent again: success would look
   * as if this run had created the object.
   */
  #isUnclear(step: number): boolean {
    return this.reason(this.steps.objectOf(step) ?? -1)?.code === "OWNER_UNCLEAR";
  }
}

const STOP_REASONS = {
  finished: "NEEDS_FAILED",
  cancelled: "CANCELLED",
  interrupted: "INTERRUPTED",
  ended: "RUN_ENDED",
} as const satisfies Record<StopCause, string>;
