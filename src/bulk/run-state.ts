import { Codes, Numbers } from "./lists.ts";
import type { ObjectList } from "./object-table.ts";
import { type Counts, Outcomes } from "./outcomes.ts";
import { ownReason } from "./reasons.ts";
import { RunTables } from "./run-tables.ts";
import { StepStandings } from "./step-standings.ts";
import type { StepList } from "./step-table.ts";
import type {
  Binding,
  JournalEntry,
  MadeRows,
  Reason,
  ReportedObject,
  Rows,
  Settlement,
  Standing,
  Step,
  StepChange,
  StopCause,
} from "./work.ts";

/** How a step ends that did not do what it was to do. */
type NotDone = "failed" | "refused" | "unknown" | "unattempted";

/**
 * Everything that is known about a run, as the sum of its journal: `apply` is the only way to change it, so that a run
 * that is read back from its journal stands exactly where it stood.
 */
export class RunState {
  #tables: RunTables;
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  /** By targeting: the newest top-level option that was there before this run sent anything. */
  readonly newest = new Map<string, string | null>();
  planned = false;
  stopped: { readonly cause: StopCause; readonly reason?: Reason } | undefined;
  updatedAt = 0;
  /** Grows with every step that is done: whether something changed since a step was refused. */
  progress = 0;

  #outcomes: Outcomes;
  /** Steps that an object still needs before it has succeeded. */
  readonly #open = new Numbers();
  /** Objects for which a step was applied. */
  readonly #touched = new Codes(["no", "yes"]);

  #standings: StepStandings;
  #inFlight: { readonly steps: readonly number[]; readonly at: number; readonly progress: number } | undefined;

  /** The state of a run with what is planned for it, which nobody else may change any more. */
  constructor(tables: RunTables = new RunTables(), settlements: readonly Settlement[] = []) {
    this.#tables = tables;
    this.#outcomes = new Outcomes(tables.objects);
    this.#standings = new StepStandings(tables.steps);
    this.adopt(tables, settlements);
  }

  /** Takes over a plan, as if its entries were applied. Throws a RangeError where there is something already. */
  adopt(tables: RunTables, settlements: readonly Settlement[]): void {
    if (this.#standings.length + this.#open.length > 0) throw new RangeError("the run has a plan already");
    this.#tables = tables;
    this.#outcomes = new Outcomes(tables.objects);
    this.#standings = new StepStandings(tables.steps);
    this.#followObjects(tables.objects.length);
    for (const settlement of settlements) this.#outcomes.settle(settlement);
    this.#followSteps(0);
  }

  get objects(): ObjectList {
    return this.#tables.objects;
  }

  get steps(): StepList {
    return this.#tables.steps;
  }

  /** Puts one journal entry into effect. */
  apply(entry: JournalEntry): void {
    switch (entry.t) {
      case "objects":
        for (const object of entry.objects) this.#addObject(object);
        return;
      case "settled":
        for (const settlement of entry.settlements) this.#outcomes.settle(settlement);
        return;
      case "rows":
        this.#addRows(entry);
        return;
      case "steps":
        for (const step of entry.steps) this.#addStep(step);
        return;
      case "replan":
        throw new RangeError("a plan that is made anew needs a state of its own");
      case "planned":
        this.planned = true;
        this.requests.planned = entry.requests;
        this.updatedAt = entry.at;
        return;
      case "newest":
        this.newest.set(entry.targeting, entry._id);
        return;
      case "send":
        this.#inFlight = { steps: entry.steps, at: entry.at, progress: this.progress };
        this.requests.sent += 1;
        if (entry.again) this.requests.resent += 1;
        this.updatedAt = entry.at;
        return;
      case "answer":
        for (const step of entry.steps ?? []) this.#addStep(step);
        for (const change of entry.changes) this.#change(change);
        if (entry.made !== undefined) this.#make(entry.made);
        for (const settlement of entry.settlements ?? []) {
          this.#outcomes.settle(settlement);
          this.#dropSteps(settlement.object, "dropped");
        }
        this.#inFlight = undefined;
        this.updatedAt = entry.at;
        return;
      case "waited":
        this.requests.waitedMs += entry.ms;
        return;
      case "stop":
        this.#stop(entry.cause, entry.reason);
        this.updatedAt = entry.at;
        return;
      case "resume":
        this.#reopen();
        this.updatedAt = entry.at;
        return;
    }
  }

  /** After a crash: what was in flight may or may not have been applied. Gives the steps concerned. */
  lostInFlight(): readonly number[] {
    return this.#inFlight?.steps ?? [];
  }

  counts(): Counts {
    return this.#outcomes.counts();
  }

  standing(object: number): Standing {
    return this.#outcomes.standing(object);
  }

  reason(object: number): Reason | undefined {
    return this.#outcomes.reason(object);
  }

  /** The ID of an object: as the service gave it, else as the caller did. */
  idOf(object: number): string | undefined {
    return this.#outcomes.idOf(object);
  }

  /** When a suspect step first left, in our clock; undefined for any other step. */
  suspectSince(step: number): number | undefined {
    return this.#standings.suspectSince(step);
  }

  /** Whether a suspect step was refused together with its request in an earlier part of the run. */
  wasRefusedInDoubt(step: number): boolean {
    return this.#standings.wasRefusedInDoubt(step);
  }

  /** Steps of an object that were applied, in the order in which they were made. */
  doneSteps(object: number): readonly Step[] {
    return this.#standings
      .ofObject(object)
      .flatMap((id) => (this.#standings.at(id) === "done" ? (this.steps.at(id) ?? []) : []));
  }

  /** Whether other steps use the ID of an object that this run makes. */
  isNeeded(object: number): boolean {
    return this.#standings.boundTo(object).some((id) => this.steps.at(id)?.objects.includes(object) === false);
  }

  /** Whether none of the steps that use the ID of an object has left. */
  isUntouched(object: number): boolean {
    return this.#standings
      .boundTo(object)
      .every((id) => this.#standings.at(id) === "pending" && this.suspectSince(id) === undefined);
  }

  /**
   * Steps that may leave now, in the order in which they were made: one for each thing that is changed, since a request
   * may name it only once (management-api 4.1). What only prepares others comes first, since after them it would spoil
   * what they did.
   */
  ready(): readonly number[] {
    const ready: number[] = [];
    const changed = new Set<string>();
    for (const id of this.#standings.inOrder()) {
      if (!this.#isReady(id)) continue;
      if (this.steps.isWhole(id)) {
        ready.push(id);
        continue;
      }
      const binding = this.steps.bindingsOf(id).find(({ field }) => field === "_id");
      const target = binding === undefined ? undefined : this.boundId(binding);
      if (target !== undefined && changed.has(target)) continue;
      if (target !== undefined) changed.add(target);
      ready.push(id);
    }
    return ready;
  }

  /** Steps that have not been settled. */
  pendingSteps(): Generator<number> {
    return this.#standings.pending();
  }

  /** Steps that were refused and wait for another change of this run, with whether something changed since. */
  deferredSteps(): readonly { readonly step: Step; readonly reason: Reason; readonly changedSince: boolean }[] {
    return this.#standings.deferred().flatMap(({ id, reason, progress }) => {
      const step = this.steps.at(id);
      return step === undefined ? [] : [{ step, reason, changedSince: this.progress > progress }];
    });
  }

  /** The step's bound IDs, by field. A binding to an object that has no ID is left out. */
  boundId(binding: Binding): string | undefined {
    if (binding.id !== undefined) return binding.id;
    return binding.object === undefined ? undefined : this.idOf(binding.object);
  }

  /** Whether a step other than this one passes a test, which is a function that lives as long as the run. */
  hasOther(step: number, test: (other: Step) => boolean): boolean {
    return this.#standings.hasOther(step, test);
  }

  /** Steps that change or delete the thing with this ID. */
  stepsChanging(id: string): readonly Step[] {
    return this.#standings.changing(id).flatMap((step) => this.steps.at(step) ?? []);
  }

  #isReady(step: number): boolean {
    if (this.steps.isWhole(step)) return true;
    return (
      this.steps.bindingsOf(step).every((binding) => this.boundId(binding) !== undefined) &&
      (this.steps.afterOf(step) ?? []).every((id) => !this.#standings.isOpen(id))
    );
  }

  #addObject(object: ReportedObject): void {
    this.#tables.objects.add(object);
    this.#followObjects(1);
  }

  #followObjects(count: number): void {
    this.#outcomes.add(count);
    this.#open.fill(count, 0);
    this.#touched.fill(count, "no");
    this.#standings.followObjects(count);
  }

  #addRows({ index, line, items }: Rows): void {
    if ("json" in items) throw new RangeError("rows are read as a list");
    const bindings = [{ field: "targeting", id: items[0]?.targeting ?? "" }] as const;
    const { objects, steps, texts } = this.#tables;
    const [step, object, text] = [steps.length, objects.length, texts.length];
    const contextIds = new Numbers();
    for (const [row, item] of items.entries()) {
      const kept = this.#tables.keepRow(item.targeting, item.name, item.contexts);
      objects.addRow(line === undefined ? { index: index + row } : { index: index + row, line: line + row }, kept);
      contextIds.push(item.contexts?.length ?? 0);
    }
    this.#followObjects(items.length);
    steps.addRows(bindings, { object, text, contextIds });
    this.#followSteps(step);
  }

  #addStep(step: Step): void {
    this.#tables.steps.add(step);
    this.#followStep(step.id);
  }

  /** Begins to follow the steps from one on. */
  #followSteps(from: number): void {
    for (let id = from; id < this.steps.length; ) {
      const rows = this.steps.rowsFrom(id, this.steps.length - id);
      if (rows > 0) this.#followRows(id, rows);
      else this.#followStep(id);
      id += Math.max(rows, 1);
    }
  }

  /** Each row is the one step of its object. */
  #followRows(id: number, count: number): void {
    this.#standings.followRows(id, count);
    const object = this.steps.objectOf(id);
    for (let row = 0; row < count; row += 1) this.#open.set(object + row, 1);
  }

  #followStep(id: number): void {
    this.#standings.followStep(id);
    const step = this.steps.at(id);
    if (step === undefined || step.prepares || step.undoes !== undefined) return;
    for (const object of step.objects) this.#open.set(object, this.#open.at(object) + 1);
  }

  #change(change: StepChange): void {
    const step = this.steps.at(change.step);
    if (step === undefined) return;
    if (change.to === "suspect") {
      this.#standings.suspect(step.id, this.#inFlight?.at ?? this.updatedAt);
      return;
    }
    switch (change.to) {
      case "pending":
        this.#standings.set(step.id, "pending");
        return;
      case "done":
      case "alreadyDone":
        this.#standings.set(step.id, "done");
        this.#standings.isSure(step.id);
        this.#finish(step, change);
        return;
      case "deferred":
        this.#standings.defer(step.id, { reason: change.reason, progress: this.#inFlight?.progress ?? this.progress });
        return;
      case "replaced":
        this.#standings.set(step.id, "replaced");
        for (const object of step.objects) this.#closeOne(object);
        return;
      default:
        this.#standings.set(step.id, change.to);
        if (change.to === "failed") this.#standings.isSure(step.id);
        if (change.to === "unknown" && change.reason.detail?.refused === true) this.#standings.refuseInDoubt(step.id);
        if (change.undone) return;
        this.#failStep(step, change.to, change.reason);
    }
  }

  /** What `done` comes to for many rows at once. */
  #make({ from, ids }: MadeRows): void {
    const first = this.steps.objectOf(from);
    this.#outcomes.giveIds(first, ids);
    this.progress += ids.length;
    for (let at = 0; at < ids.length; at += 1) {
      const object = first + at;
      this.#standings.set(from + at, "done");
      this.#standings.isSure(from + at);
      this.#touched.set(object, "yes");
      this.#closeOne(object);
      if (this.#open.at(object) === 0) this.#outcomes.settle({ object, outcome: "succeeded" });
    }
  }

  #finish(step: Step, change: Extract<StepChange, { readonly to: "done" | "alreadyDone" }>): void {
    const { objects, undoes } = step;
    if (change.to === "done") {
      this.progress += 1;
      for (const object of objects) this.#touched.set(object, "yes");
    }
    if (step.prepares) return;
    for (const [position, object] of objects.entries()) {
      if (undoes !== undefined) {
        const outcome = undoes.code === "PARTLY_APPLIED" ? "unknown" : "failed";
        this.#outcomes.settle({ object, outcome, reason: undoes });
        continue;
      }
      const id = position === 0 ? change._id : (change.childIds?.[position - 1] ?? undefined);
      if (id !== undefined) this.#outcomes.giveId(object, id);
      this.#closeOne(object);
      if (this.#open.at(object) === 0)
        this.#outcomes.settle({ object, outcome: this.#touched.at(object) === "yes" ? "succeeded" : "alreadyDone" });
    }
  }

  /** An object needs one step less. */
  #closeOne(object: number): void {
    this.#open.set(object, Math.max(0, this.#open.at(object) - 1));
  }

  /** A refused create fails for the object it is about; what was to be made inside was just never made. */
  #failStep(step: Step, to: NotDone, reason: Reason): void {
    const [main] = step.objects;
    const makes = step.operation === "createTargetings" || step.operation === "addOptions";
    const isOver = to === "failed" || to === "refused";
    for (const object of step.objects) {
      if (object === main || !isOver || !makes) this.#fail(object, to, reason);
      else this.#fail(object, "unattempted", ownReason("NEEDS_FAILED", { needs: main }));
    }
  }

  #fail(object: number, to: NotDone, reason: Reason): void {
    const partly = (to === "unattempted" || to === "refused") && this.#touched.at(object) === "yes";
    const outcome = to === "refused" ? "failed" : to;
    this.#outcomes.settle({
      object,
      outcome: partly ? "unknown" : outcome,
      reason: partly ? ownReason("PARTLY_APPLIED", { because: reason.code }) : reason,
    });
    const drop = to === "failed" ? "dropped" : "unattempted";
    this.#dropSteps(object, drop);
    if (this.idOf(object) !== undefined) return;
    for (const id of this.#standings.boundTo(object)) {
      const bound = this.steps.at(id);
      if (bound === undefined || this.#standings.at(id) !== "pending") continue;
      this.#standings.set(id, drop);
      for (const needy of bound.objects) {
        if (needy !== object) this.#fail(needy, "unattempted", ownReason("NEEDS_FAILED", { needs: object }));
      }
    }
  }

  #dropSteps(object: number, to: "dropped" | "unattempted"): void {
    for (const id of this.#standings.ofObject(object)) if (this.#standings.isOpen(id)) this.#standings.set(id, to);
  }

  /** What a stop leaves open: sent and unanswered is `unknown`, never sent is `unattempted`. */
  #stop(cause: StopCause, reason: Reason | undefined): void {
    this.stopped = reason === undefined ? { cause } : { cause, reason };
    // A request whose answer was never put into effect may have been applied.
    for (const step of this.#inFlight?.steps ?? []) this.#change({ step, to: "suspect" });
    this.#inFlight = undefined;
    // Those in doubt first, since an object stands as its first step that is stopped.
    const inDoubt = (id: number): number => (this.suspectSince(id) === undefined ? 1 : 0);
    for (const id of this.#standings.open().sort((a, b) => inDoubt(a) - inDoubt(b))) {
      const to = this.suspectSince(id) === undefined ? "unattempted" : "unknown";
      const why = to === "unknown" ? ownReason("NO_ANSWER") : (reason ?? ownReason(STOP_REASONS[cause]));
      this.#change({ step: id, to, reason: why });
    }
    if (!this.planned) this.#leaveUnplanned(reason ?? ownReason(STOP_REASONS[cause]));
  }

  /** Nothing is sent that was not planned: what no step was made for is as little attempted. */
  #leaveUnplanned(reason: Reason): void {
    for (let object = 0; object < this.objects.length; object += 1) {
      if (this.standing(object) === "pending") this.#outcomes.settle({ object, outcome: "unattempted", reason });
    }
  }

  /** Takes up again what a stop left open; what failed stays failed. */
  #reopen(): void {
    this.stopped = undefined;
    for (let id = 0; id < this.#standings.length; id += 1) {
      const standing = this.#standings.at(id);
      if (standing !== "unknown" && standing !== "unattempted" && standing !== "refused") continue;
      if (standing === "unknown" && this.#isUnclear(id)) continue;
      this.#standings.set(id, "pending");
      for (const object of this.steps.at(id)?.objects ?? []) this.#outcomes.reopen(object);
    }
  }

  /** Whose work it is was judged with the evidence of its time: sent once more, alone, it would look like our own. */
  #isUnclear(step: number): boolean {
    const [main] = this.steps.at(step)?.objects ?? [];
    return main !== undefined && this.reason(main)?.code === "OWNER_UNCLEAR";
  }
}

const STOP_REASONS = {
  finished: "NEEDS_FAILED",
  cancelled: "CANCELLED",
  interrupted: "INTERRUPTED",
  ended: "RUN_ENDED",
} as const satisfies Record<StopCause, string>;
