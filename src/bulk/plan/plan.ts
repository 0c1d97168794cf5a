import type { ManagementApi } from "../../api/management.ts";
import type { ByteSource } from "../files/bytes.ts";
import { placeOf } from "../files/rows.ts";
import type { PlacedOption } from "../files/saved-options.ts";
import { RunTables } from "../run-tables.ts";
import { StepMaker } from "../steps.ts";
import type { JournalEntry, Reason, ReportedObject, Settlement, Step } from "../work.ts";
import type { UpdateContextsItem } from "./update-contexts.ts";

/** What planning may use of the world: reads only. */
export interface PlanningContext {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
  /** The file of a call that has one. */
  readonly bytes?: ByteSource | undefined;
}

/** What would be taken away, so that a person can be asked before (contract, Confirmation). */
export interface Loss {
  /** What is deleted, or loses Context IDs: its name or ID, and how much. */
  readonly name: string;
  readonly _id: string;
  readonly kind: "targeting" | "option" | "optionGroup" | "contextIds";
  /** Options of a targeting, sub-options of a group, or Context IDs that are taken away. */
  readonly count: number;
  /** Of a group: its sub-options, in the order of their IDs, and how many Context IDs it has of its own. */
  readonly subOptions?: readonly string[];
  readonly ownContextIds?: number;
  /** Whether an option is left without Context IDs. */
  readonly empties?: boolean;
}

/**
 * What is taken away, so that it can be brought back: a row as files for `update_contexts` have it, or options, or a
 * targeting with its options, which are read with their Context IDs before anything is sent and become such rows.
 */
export type Removed =
  | { readonly kind: "row"; readonly row: UpdateContextsItem }
  | { readonly kind: "options"; readonly options: readonly PlacedOption[] }
  | { readonly kind: "targeting"; readonly _id: string };

/** So that no line of a journal grows with the call. */
const ENTRIES_PER_LINE = 500;

/** A call taken apart: what is reported, what needs no request, and the steps that requests are made of. */
export class Plan {
  readonly tables = new RunTables();
  readonly objects = this.tables.objects;
  readonly steps = this.tables.steps;
  readonly settlements: Settlement[] = [];
  readonly losses: Loss[] = [];
  readonly removed: Removed[] = [];
  readonly make = new StepMaker(() => this.steps.length);

  /** Adds something that is counted and reported by itself; gives its position. */
  object(object: ReportedObject): number {
    return this.objects.add(object);
  }

  /** An object that cannot work fails here, before any request. */
  fail(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "failed", reason });
  }

  /** What was given and cannot be read as an item. */
  failGiven(given: { readonly index: number; readonly line?: number; readonly reason: Reason }): void {
    this.fail(this.object(placeOf(given)), given.reason);
  }

  /** An object that is not sent because what it belongs to failed. */
  leaveOut(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "unattempted", reason });
  }

  add(step: Step): Step {
    this.steps.add(step);
    return step;
  }

  /** The plan as journal entries: every object before the steps that are about it. */
  *entries(): Generator<JournalEntry> {
    let told = 0;
    for (let step = 0; step < this.steps.length; ) {
      const first = this.#rowAt(step, told);
      if (first !== undefined) {
        const count = this.#rowsFrom(step, first);
        yield* this.#objects(told, first);
        yield this.#rows(step, first, count);
        step += count;
        told = first + count;
        continue;
      }
      const steps: Step[] = [];
      for (; steps.length < ENTRIES_PER_LINE && this.#rowAt(step, told) === undefined; step += 1) {
        const next = this.steps.at(step);
        if (next === undefined) break;
        steps.push(next);
      }
      let end = told;
      for (const { objects } of steps) for (const object of objects) end = Math.max(end, object + 1);
      yield* this.#objects(told, end);
      yield { t: "steps", steps };
      told = end;
    }
    yield* this.#objects(told, this.objects.length);
    yield { t: "settled", settlements: this.settlements };
  }

  *#objects(from: number, to: number): Generator<JournalEntry> {
    for (let at = from; at < to; at += ENTRIES_PER_LINE) {
      const some = range(at, Math.min(to, at + ENTRIES_PER_LINE));
      yield { t: "objects", objects: some.flatMap((object) => this.objects.at(object) ?? []) };
    }
  }

  /** The object of a step that is a row, where it was not told yet. */
  #rowAt(step: number, told: number): number | undefined {
    const object = this.steps.objectOf(step);
    const isRow = this.steps.isWhole(step) && this.objects.itemOf(object) === this.steps.itemOf(step);
    return isRow && object >= told ? object : undefined;
  }

  /** How many rows follow each other, in the plan as in the file. */
  #rowsFrom(step: number, object: number): number {
    let count = this.steps.rowsFrom(step, ENTRIES_PER_LINE);
    const isRow = (rows: number): boolean => this.objects.itemOf(object + rows) === this.steps.itemOf(step + rows);
    while (count > 1 && !(isRow(count - 1) && this.objects.follow(object, count))) count = count >> 1;
    return count;
  }

  #rows(step: number, object: number, count: number): JournalEntry {
    const items = { json: this.steps.listed(step, count) };
    return { t: "rows", ...this.objects.placeOf(object), items };
  }
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}
