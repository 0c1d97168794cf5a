import type { ManagementApi } from "../../api/management.ts";
import { placeOf } from "../../files/rows.ts";
import type { lookAgainAt } from "../../plans/look-again.ts";
import type { ResolvedRun } from "../../plans/planned-undo.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import type { PlacedOption } from "../../reads/saved-options.ts";
import type { Asked, Reason, ReportedObject } from "../../runs/outcome.ts";
import type { UpdateContextsItem } from "../call.ts";
import type { Decided, JournalEntry, RunFacts, Settlement, Step } from "../rows/entries.ts";
import { FormerValues } from "../rows/former.ts";
import { RowBlock, type RowRange } from "../rows/row-block.ts";
import { ObjectList, StepList, StepMaker } from "../rows/steps.ts";

/** What planning may use of the world: reads only. */
export interface PlanningContext {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
  /** The file of a call that has one, or the plan that a run applies. */
  readonly bytes?: ByteSource | undefined;
  /** Reads the plan that a run applies. */
  readonly lookAgain?: typeof lookAgainAt | undefined;
  /** Finds out what became of the unanswered requests of the run that is undone. */
  readonly resolve?: (() => Promise<ResolvedRun>) | undefined;
}

/** What would be taken away: a person is asked to confirm it before. */
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
 * What is taken away, so that it can be restored: a row of a file for `update_contexts`, or options, or a targeting
 * with its options, which are read with their Context IDs before anything is sent and become such rows.
 */
export type Removed =
  | { readonly kind: "row"; readonly row: UpdateContextsItem }
  /** `areRead`: each comes with its Context IDs. */
  | { readonly kind: "options"; readonly options: Iterable<PlacedOption>; readonly areRead?: true }
  | { readonly kind: "targeting"; readonly _id: string };

/** Limits the length of a line of the journal. */
const ENTRIES_PER_LINE = 500;

/** A call taken apart: what is reported, what needs no request, and the steps that requests are made of. */
export class Plan {
  readonly objects = new ObjectList();
  readonly steps = new StepList();
  readonly settlements: Settlement[] = [];
  readonly losses: Loss[] = [];
  readonly removed: Removed[] = [];
  /** What the run changes, as it was before. */
  readonly former = new FormerValues();
  readonly make = new StepMaker(() => this.steps.length);
  /** Facts about the run as a whole; the flow that starts it adds who confirmed it. */
  facts: RunFacts = {};

  /** When it was made, in milliseconds since 1970: until shortly after, what was read for it is what is there. */
  madeAt?: number;

  /** Adds something that is counted and reported by itself; gives its position. */
  object(object: ReportedObject): number {
    return this.objects.add(object);
  }

  /** Notes who confirmed it, for the report. */
  askedBy(asked: Asked, decided?: Decided): void {
    this.facts = { ...this.facts, asked, ...(decided && { decided }) };
  }

  /** An object that cannot work fails here, before any request. */
  fail(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "failed", reason });
  }

  /** Adds an object for a row that cannot be read as an item; it fails. */
  failGiven(given: { readonly index: number; readonly line?: number; readonly reason: Reason }): void {
    this.fail(this.object(placeOf(given)), given.reason);
  }

  /** An object that is not sent because what it belongs to failed. */
  leaveOut(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "notApplied", reason });
  }

  /** An object that a rule of the call leaves as it is. */
  skip(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "skipped", reason });
  }

  add(step: Step): Step {
    this.steps.add(step);
    return step;
  }

  /** Adds the steps of rows whose objects are there already. */
  addRows({ block, from, to }: RowRange): void {
    if (from >= to) return;
    const planned = block.planned(from, to, this.steps.length);
    this.objects.setRows(planned);
    for (let row = from; row < to; row += 1) this.steps.addRow(planned);
  }

  /** The plan as journal entries: every object before the steps that are about it. */
  *entries(): Generator<JournalEntry> {
    let told = 0;
    for (const section of this.#sections()) {
      const isRows = section instanceof RowBlock;
      const end = isRows ? section.firstObject : Math.max(told, endOfObjects(section));
      yield* this.#objects(told, end);
      if (isRows) yield* section.entries();
      else yield { t: "steps", steps: section };
      told = isRows ? end + section.length : end;
    }
    yield* this.#objects(told, this.objects.length);
    yield* this.#ending();
  }

  /** The entries that show the plan of a run that waits: its objects, without the steps. */
  *outline(): Generator<JournalEntry> {
    yield* this.#objects(0, this.objects.length);
    yield* this.#ending();
  }

  *#ending(): Generator<JournalEntry> {
    yield { t: "settled", settlements: this.settlements };
    if (Object.keys(this.facts).length > 0) yield { t: "facts", facts: this.facts };
  }

  /** The steps in their order: blocks of rows whose objects no earlier step names, and a few other steps at a time. */
  *#sections(): Generator<RowBlock | readonly Step[]> {
    let named = 0;
    let steps: Step[] = [];
    for (const part of this.steps.parts()) {
      if (part instanceof RowBlock && part.firstObject >= named) {
        if (steps.length > 0) yield steps;
        yield part;
        steps = [];
        named = part.firstObject + part.length;
        continue;
      }
      for (const step of part instanceof RowBlock ? part.steps() : [part]) {
        named = Math.max(named, endOfObjects([step]));
        if (steps.push(step) < ENTRIES_PER_LINE) continue;
        yield steps;
        steps = [];
      }
    }
    if (steps.length > 0) yield steps;
  }

  *#objects(from: number, to: number): Generator<JournalEntry> {
    for (let at = from; at < to; at += ENTRIES_PER_LINE) {
      const some = range(at, Math.min(to, at + ENTRIES_PER_LINE));
      yield { t: "objects", objects: some.flatMap((object) => this.objects.at(object) ?? []) };
    }
  }
}

/** One after the last object that steps name. */
function endOfObjects(steps: readonly Step[]): number {
  let end = 0;
  for (const { objects } of steps) for (const object of objects) end = Math.max(end, object + 1);
  return end;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** What is still being made, since its reads take long. */
export interface Planning<Made = Plan> {
  readonly plan: Promise<Made>;
  /** Stops it: `plan` then rejects, unless it was made already. */
  stop(): void;
}

/** Whether a plan is still being made. */
export function isGoing<Made extends object>(plan: Made | Planning<Made>): plan is Planning<Made> {
  return "plan" in plan && plan.plan instanceof Promise;
}
