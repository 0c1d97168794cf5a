import { Codes, Numbers } from "./lists.ts";
import type { StepList } from "./step-table.ts";
import type { Reason, Step } from "./work.ts";

const STANDINGS = [
  "pending",
  "done",
  "failed",
  "refused",
  "unknown",
  "unattempted",
  "deferred",
  "replaced",
  "dropped",
] as const;

/** Where a step stands. */
type StepStanding = (typeof STANDINGS)[number];

/** A step that was refused and waits for another change: why, and how far the run was then. */
interface Deferral {
  readonly reason: Reason;
  readonly progress: number;
}

/** The first step of an object that has none. */
const NONE = 0xffffffff;

/** Where each step of a run stands, and which steps are about what. */
export class StepStandings {
  readonly #steps: StepList;
  readonly #standing = new Codes(STANDINGS);
  /** Steps that only prepare others, whether pending or not. */
  readonly #preparing = new Set<number>();
  readonly #deferrals = new Map<number, Deferral>();
  /** When a step whose effect is not known first left, in our clock. */
  readonly #suspectSince = new Map<number, number>();
  readonly #refusedInDoubt = new Set<number>();
  readonly #changing = new Map<string, number[]>();
  readonly #boundTo = new Map<number, number[]>();
  /** The first step of each object; the steps after it are rare. */
  readonly #first = new Numbers();
  readonly #further = new Map<number, number[]>();
  /** By test: how far steps were tested, and the first that passed. */
  readonly #searches = new Map<(step: Step) => boolean, { next: number; readonly found: number[] }>();

  constructor(steps: StepList) {
    this.#steps = steps;
  }

  get length(): number {
    return this.#standing.length;
  }

  /** Steps that only prepare others. */
  preparing(): readonly number[] {
    return [...this.#preparing];
  }

  at(step: number): StepStanding | undefined {
    return this.#standing.at(step);
  }

  /** Whether a step has yet to be settled: it is pending, or waits for another change. */
  isOpen(step: number): boolean {
    const standing = this.#standing.at(step);
    return standing === "pending" || standing === "deferred";
  }

  set(step: number, standing: Exclude<StepStanding, "deferred">): void {
    this.#standing.set(step, standing);
    this.#deferrals.delete(step);
  }

  defer(step: number, deferral: Deferral): void {
    this.#standing.set(step, "deferred");
    // What is deferred again stands last.
    this.#deferrals.delete(step);
    this.#deferrals.set(step, deferral);
  }

  /** A step left at a time, and what became of it is not known; the first time counts. */
  suspect(step: number, at: number): void {
    if (!this.#suspectSince.has(step)) this.#suspectSince.set(step, at);
  }

  /** What became of a step is known after all. */
  isSure(step: number): void {
    this.#suspectSince.delete(step);
  }

  suspectSince(step: number): number | undefined {
    return this.#suspectSince.get(step);
  }

  /** Sent again, a suspect step was refused together with its request, which says nothing about the first attempt. */
  refuseInDoubt(step: number): void {
    this.#refusedInDoubt.add(step);
  }

  wasRefusedInDoubt(step: number): boolean {
    return this.#refusedInDoubt.has(step);
  }

  /** Begins to follow the next objects, so many of them. */
  followObjects(count: number): void {
    this.#first.fill(count, NONE);
  }

  /** Begins to follow the next steps of the list, which are rows that follow each other. */
  followRows(id: number, count: number): void {
    this.#standing.fill(count, "pending");
    this.#first.countUp(this.#steps.objectOf(id), count, id);
  }

  /** Begins to follow the next step of the list. */
  followStep(id: number): void {
    this.#standing.fill(1, "pending");
    const step = this.#steps.at(id);
    if (step === undefined) return;
    if (step.prepares) this.#preparing.add(id);
    for (const object of step.objects) {
      if (this.#first.at(object) === NONE) this.#first.set(object, id);
      else listUnder(this.#further, object, id);
    }
    for (const { object, field, id: bound } of step.bindings) {
      if (object !== undefined) listUnder(this.#boundTo, object, id);
      if (field === "_id" && bound !== undefined) listUnder(this.#changing, bound, id);
    }
  }

  *pending(): Generator<number> {
    for (let id = this.#nextPending(0); id >= 0; id = this.#nextPending(id + 1)) yield id;
  }

  /** Steps that are pending, those first that only prepare others. */
  *inOrder(): Generator<number> {
    for (const id of this.#preparing) if (this.#standing.at(id) === "pending") yield id;
    for (const id of this.pending()) if (!this.#preparing.has(id)) yield id;
  }

  /** Steps that wait for another change. */
  deferred(): readonly ({ readonly id: number } & Deferral)[] {
    return [...this.#deferrals].map(([id, deferral]) => ({ id, ...deferral }));
  }

  /** Every step that has yet to be settled, pending ones first. */
  open(): number[] {
    return [...this.pending(), ...this.#deferrals.keys()];
  }

  /** The steps about an object, in the order in which they were made. */
  ofObject(object: number): readonly number[] {
    const first = this.#first.at(object);
    return first === NONE || object >= this.#first.length ? [] : [first, ...(this.#further.get(object) ?? [])];
  }

  /** Steps that use the ID of an object that the run makes. */
  boundTo(object: number): readonly number[] {
    return this.#boundTo.get(object) ?? [];
  }

  #nextPending(from: number): number {
    return this.#standing.indexOf("pending", from);
  }

  /** Whether a step other than this one passes a test. Steps do not change, so that each is tested once. */
  hasOther(step: number, test: (other: Step) => boolean): boolean {
    const search = this.#searches.get(test) ?? { next: 0, found: [] };
    this.#searches.set(test, search);
    // Of two, one is another one.
    for (; search.next < this.length && search.found.length < 2; search.next += 1) {
      const candidate = this.#steps.at(search.next);
      if (candidate !== undefined && test(candidate)) search.found.push(search.next);
    }
    return search.found.some((found) => found !== step);
  }

  /** Steps that change or delete the thing with this ID. */
  changing(id: string): readonly number[] {
    return this.#changing.get(id) ?? [];
  }
}

function listUnder<K>(map: Map<K, number[]>, key: K, value: number): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
