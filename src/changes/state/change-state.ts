import {
  type Counts,
  type Did,
  type OtherCount,
  ownReason,
  type Reason,
  type Standing,
  type StopCause,
} from "../../runs/outcome.ts";
import type { Binding, JournalEntry, RunFacts, Step } from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import type { ObjectList, StepList } from "../rows/steps.ts";
import { type PlannedWork, RunWork } from "./run-work.ts";

/**
 * Everything that is known about a run, as the sum of its journal: `apply` is the only way to change it, so that a run
 * that is read back from its journal stands exactly where it stood.
 */
export class RunState {
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  /** By targeting: the newest top-level option that was there before this run sent anything. */
  readonly newest = new Map<string, string | null>();
  planned = false;
  stopped: { readonly cause: StopCause; readonly reason?: Reason } | undefined;
  updatedAt = 0;
  /** Facts about the run as a whole, for its report. */
  facts: RunFacts = {};
  /** The counts when the run was last resumed. */
  resumed: { readonly counts: Counts } | undefined;
  /** Steps that may have left while another process was writing. */
  late: readonly number[] = [];

  #work: RunWork;
  /** The request that has no answer yet, and how far the run was when it left. */
  #inFlight:
    | { readonly steps: readonly number[]; readonly at: number; readonly again: boolean; readonly progress: number }
    | undefined;

  /** The state of a run with what is planned for it. */
  constructor(plan?: PlannedWork) {
    this.#work = new RunWork(plan);
    this.facts = { ...plan?.facts };
  }

  /**
   * Takes over a plan, as if its entries were applied; its lists may not be changed by others any more. Throws a
   * RangeError where the run has a plan already.
   */
  adopt(plan: PlannedWork): void {
    if (this.steps.length + this.objects.length > 0) throw new RangeError("the run has a plan already");
    this.#work = new RunWork(plan);
    this.facts = { ...plan.facts };
  }

  get objects(): Pick<ObjectList, "length" | "at" | "indexOf"> {
    return this.#work.objects;
  }

  get steps(): Omit<StepList, "add" | "addRow"> {
    return this.#work.steps;
  }

  /** Applies one journal entry. */
  apply(entry: JournalEntry): void {
    this.#change(entry);
    if ("at" in entry) this.updatedAt = entry.at;
  }

  #change(entry: JournalEntry): void {
    switch (entry.t) {
      case "objects":
        this.#work.addObjects(entry.objects);
        return;
      case "settled":
        for (const settlement of entry.settlements) this.#work.outcomes.settle(settlement);
        return;
      case "rows":
        this.#work.addRows(entry);
        return;
      case "steps":
        this.#work.addSteps(entry.steps);
        return;
      case "replan":
        throw new RangeError("a new plan needs a state of its own");
      case "facts":
        this.facts = { ...this.facts, ...entry.facts };
        return;
      case "planned":
        this.planned = true;
        this.requests.planned = entry.requests;
        return;
      case "newest":
        this.newest.set(entry.targeting, entry._id);
        return;
      case "send":
        this.#inFlight = { steps: entry.steps, at: entry.at, again: entry.again, progress: this.#work.progress };
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
        this.#work.doubt(entry.steps, entry.at);
        return;
      case "waited":
        this.requests.waitedMs += entry.ms;
        return;
      case "stop":
        this.#stop(entry.cause, entry.reason);
        return;
      case "resume":
        this.stopped = undefined;
        this.resumed = { counts: this.counts() };
        this.#work.reopen();
        return;
    }
  }

  /** After a crash: what was in flight may or may not have been applied. Gives the steps concerned. */
  lostInFlight(): readonly number[] {
    return this.#inFlight?.steps ?? [];
  }

  /** Steps whose request was announced, and whose answer is not known: they may have been applied. */
  inDoubt(): ReadonlySet<number> {
    return new Set([...this.#work.suspects(), ...this.lostInFlight()]);
  }

  counts(): Counts {
    return this.#work.outcomes.counts();
  }

  /** The objects that failed with their whole request, so that a resumed run sends them again. */
  refused(): ReadonlySet<number> {
    return this.#work.refused();
  }

  standing(object: number): Standing {
    return this.#work.outcomes.standing(object);
  }

  reason(object: number): Reason | undefined {
    return this.#work.outcomes.reason(object);
  }

  /** The ID of an object: as the service gave it, else as the caller did. */
  idOf(object: number): string | undefined {
    return this.#work.outcomes.idOf(object);
  }

  /** What the run did with an object that is settled. */
  didOf(object: number): Did | undefined {
    return this.#work.didOf(object);
  }

  /** When a suspect step first left, in our clock; undefined for any other step. */
  suspectSince(step: number): number | undefined {
    return this.#work.standings.suspectSince(step);
  }

  /** Whether a suspect step was refused together with its request in an earlier part of the run. */
  wasRefusedInDoubt(step: number): boolean {
    return this.#work.standings.wasRefusedInDoubt(step);
  }

  /** Steps of an object that were applied, in the order in which they were made. */
  doneSteps(object: number): readonly Step[] {
    const { standings, steps } = this.#work;
    return standings.ofObject(object).flatMap((id) => {
      const standing = standings.at(id);
      return standing === "done" || standing === "alreadyDone" ? (steps.at(id) ?? []) : [];
    });
  }

  /** Steps of an object that are not settled. */
  openSteps(object: number): readonly Step[] {
    const { standings, steps } = this.#work;
    return standings.ofObject(object).flatMap((id) => (standings.isOpen(id) ? (steps.at(id) ?? []) : []));
  }

  /** Steps that only prepare others and were applied, or, where that is not sure, may have been. */
  preparingSteps(): readonly { readonly step: Step; readonly isSure: boolean }[] {
    return this.#work.standings.preparing().flatMap((id) => {
      const step = this.steps.at(id);
      const isSure = this.isDone(id);
      const isPossible = isSure || this.suspectSince(id) !== undefined;
      return step !== undefined && isPossible ? [{ step, isSure }] : [];
    });
  }

  /** How many things got a temporary name. */
  temporaryNames(): number {
    return this.preparingSteps().filter(({ step, isSure }) => isSure && step.formerName !== undefined).length;
  }

  /** Options that hold another number of Context IDs than expected, in the order in which that was found. */
  unexpectedCounts(): readonly OtherCount[] {
    return [...this.#work.unexpectedCounts].map(([object, counts]) => ({
      ...counts,
      name: this.objects.at(object)?.name,
      _id: this.idOf(object),
    }));
  }

  /** Whether a step was applied. */
  isDone(step: number): boolean {
    return this.#work.standings.at(step) === "done";
  }

  /** Whether other steps use the ID of an object that this run makes. */
  isNeeded(object: number): boolean {
    return this.#work.standings.boundTo(object).some((id) => this.steps.at(id)?.objects.includes(object) === false);
  }

  /** Whether none of the steps that use the ID of an object has left. */
  isUntouched(object: number): boolean {
    const { standings } = this.#work;
    return standings
      .boundTo(object)
      .every((id) => standings.at(id) === "pending" && standings.suspectSince(id) === undefined);
  }

  /**
   * Steps that may leave now, in the order in which they were made: one for each thing that is changed, since a request
   * may name it only once (management-api 4.1). What only prepares others comes first, since after them it would spoil
   * what they did.
   */
  ready(): readonly number[] {
    const ready: number[] = [];
    const changed = new Set<string>();
    for (const id of this.#work.standings.inOrder()) {
      const part = this.steps.partAt(id);
      if (part === undefined || !(part instanceof RowBlock || this.#isReady(part))) continue;
      const binding = part.bindings.find(({ field }) => field === "_id");
      const target = binding === undefined ? undefined : this.boundId(binding);
      if (target !== undefined && changed.has(target)) continue;
      if (target !== undefined) changed.add(target);
      ready.push(id);
    }
    return ready;
  }

  /** Steps that were refused and wait for another change of this run, with whether something changed since. */
  deferredSteps(): readonly { readonly step: Step; readonly reason: Reason; readonly changedSince: boolean }[] {
    const { standings, progress: now } = this.#work;
    return standings.deferred().flatMap(({ id, reason, progress }) => {
      const step = this.steps.at(id);
      return step === undefined ? [] : [{ step, reason, changedSince: now > progress }];
    });
  }

  /** The ID that a binding stands for; undefined where it is the ID of an object that has none. */
  boundId(binding: Binding): string | undefined {
    if (binding.id !== undefined) return binding.id;
    return binding.object === undefined ? undefined : this.idOf(binding.object);
  }

  /** Whether a step other than this one passes a test, which is a function that lives as long as the run. */
  hasOther(step: number, test: (other: Step) => boolean): boolean {
    return this.#work.standings.hasOther(step, test);
  }

  /** Steps that change or delete the thing with this ID. */
  stepsChanging(id: string): readonly Step[] {
    return this.#work.standings.changing(id).flatMap((step) => this.steps.at(step) ?? []);
  }

  #isReady({ bindings, after = [] }: Step): boolean {
    return (
      bindings.every((binding) => this.boundId(binding) !== undefined) &&
      after.every((id) => !this.#work.standings.isOpen(id))
    );
  }

  #answer({ steps, changes, made, settlements }: Extract<JournalEntry, { readonly t: "answer" }>): void {
    this.#work.addSteps(steps ?? []);
    const left = this.#inFlight ?? { at: this.updatedAt, progress: this.#work.progress };
    for (const change of changes) this.#work.change(change, left);
    if (made !== undefined) this.#work.make(made);
    for (const settlement of settlements ?? []) this.#work.settle(settlement);
    this.#inFlight = undefined;
  }

  #stop(cause: StopCause, reason: Reason | undefined): void {
    this.stopped = reason === undefined ? { cause } : { cause, reason };
    // A request whose answer was never applied here may have been applied by the service.
    if (this.#inFlight !== undefined) {
      for (const step of this.#inFlight.steps) this.#work.change({ step, to: "suspect" }, this.#inFlight);
    }
    this.#inFlight = undefined;
    this.#work.stop(reason ?? ownReason(STOP_REASONS[cause]));
    if (!this.planned) this.#work.leaveUnplanned(reason ?? ownReason(STOP_REASONS[cause]));
  }
}

const STOP_REASONS = {
  finished: "NEEDS_FAILED",
  cancelled: "CANCELLED",
  interrupted: "INTERRUPTED",
  ended: "RUN_ENDED",
} as const satisfies Record<StopCause, string>;
