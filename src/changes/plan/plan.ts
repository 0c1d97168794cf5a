import type { ManagementApi } from "../../api/management.ts";
import { placeOf } from "../../files/rows.ts";
import type { checkStoredPlan } from "../../plans/look-again.ts";
import type { ResolvedRun } from "../../plans/planned-undo.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import type { PlacedOption } from "../../reads/saved-options.ts";
import type { Asked, Reason, ReportedObject } from "../../runs/outcome.ts";
import type { UpdateContextsItem } from "../call.ts";
import type { Decided, JournalEntry, RunFacts, Settlement, Step } from "../rows/entries.ts";
import { PreviousValues } from "../rows/former.ts";
import { RowBlock, type RowRange } from "../rows/row-block.ts";
import { ObjectList, StepList, StepMaker } from "../rows/steps.ts";

export interface PlanningContext {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
  /** The content of the call's file, or the stored plan that a run applies. */
  readonly bytes?: ByteSource | undefined;
  /** Reads the plan that a run applies, and compares it with the service. */
  readonly lookAgain?: typeof checkStoredPlan | undefined;
  /** Finds the outcomes of unanswered requests of the run that is undone. */
  readonly resolve?: (() => Promise<ResolvedRun>) | undefined;
}

/** Data that a change would remove. A person must approve it first. */
export interface Loss {
  /** The name of the object that is deleted or loses Context IDs; its ID if the name is unknown. */
  readonly name: string;
  readonly _id: string;
  readonly kind: "targeting" | "option" | "optionGroup" | "contextIds";
  /** How many objects are removed: the options of a targeting, the sub-options of a group, or Context IDs. */
  readonly count: number;
  /** For a group: the sorted IDs of its sub-options that are not moved, and the number of its own Context IDs. */
  readonly subOptions?: readonly string[];
  readonly ownContextIds?: number;
  /** Whether the option has no Context IDs afterwards. */
  readonly empties?: boolean;
  /** For a targeting: the number of Context IDs of all its options, if known, and its first and last options. */
  readonly contextIds?: number;
  readonly options?: readonly LostOption[];
  /**
   * The group that this option may not leave. It is the last one, and the group would be empty (management-api 7.4,
   * case 6).
   */
  readonly lastOf?: { readonly _id: string; readonly name: string };
}

/** An option that is deleted with its targeting. */
export interface LostOption {
  readonly name: string;
  readonly _id: string;
  readonly contextIds: number;
}

/**
 * Data that a run removes and that is stored so that it can be restored: a row for `update_contexts`, options, or a
 * targeting with its options. The options are read with their Context IDs before anything is sent.
 */
export type Removed =
  | { readonly kind: "row"; readonly row: UpdateContextsItem }
  /** `areRead`: each option already comes with its Context IDs. */
  | { readonly kind: "options"; readonly options: Iterable<PlacedOption>; readonly areRead?: true }
  | { readonly kind: "targeting"; readonly _id: string };

/** The maximum number of objects or steps in one journal entry. */
const ENTRIES_PER_LINE = 500;

/** The plan of a call: the reported objects, outcomes that are already certain, and the steps to send. */
export class Plan {
  readonly objects = new ObjectList();
  readonly steps = new StepList();
  readonly settlements: Settlement[] = [];
  readonly losses: Loss[] = [];
  readonly removed: Removed[] = [];
  /** The values that the run changes, as they are before the run. */
  readonly former = new PreviousValues();
  readonly make = new StepMaker(() => this.steps.length);
  /** Facts about the run as a whole. Who approved the run is added when it starts. */
  facts: RunFacts = {};

  /**
   * When the plan was made, in milliseconds since 1970. The data that it read counts as current only for a short time.
   */
  madeAt?: number;

  /** Adds an object to count and report. Returns its position. */
  object(object: ReportedObject): number {
    return this.objects.add(object);
  }

  /** Records who approved the plan, for the report. */
  askedBy(asked: Asked, decided?: Decided): void {
    this.facts = { ...this.facts, asked, ...(decided && { decided }) };
  }

  /** Marks an object as failed before anything is sent, because it cannot succeed. */
  fail(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "failed", reason });
  }

  /** Adds an object that fails, for a row that is invalid. */
  failGiven(given: { readonly index: number; readonly line?: number; readonly reason: Reason }): void {
    this.fail(this.object(placeOf(given)), given.reason);
  }

  /** Marks an object as not applied, because something that it needs failed. */
  leaveOut(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "notApplied", reason });
  }

  /** Marks an object as skipped, because the call says so. */
  skip(object: number, reason: Reason): void {
    this.settlements.push({ object, outcome: "skipped", reason });
  }

  add(step: Step): Step {
    this.steps.add(step);
    return step;
  }

  /** Adds the steps of rows. The objects of these rows must already be in the plan. */
  addRows({ block, from, to }: RowRange): void {
    if (from >= to) return;
    const planned = block.planned(from, to, this.steps.length);
    this.objects.setRows(planned);
    for (let row = from; row < to; row += 1) this.steps.addRow(planned);
  }

  /** Returns the plan as journal entries. An object always comes before the steps that use it. */
  *entries(): Generator<JournalEntry> {
    let yielded = 0;
    for (const section of this.#sections()) {
      const isRows = section instanceof RowBlock;
      const end = isRows ? section.firstObject : Math.max(yielded, endOfObjects(section));
      yield* this.#objects(yielded, end);
      if (isRows) yield* section.entries();
      else yield { t: "steps", steps: section };
      yielded = isRows ? end + section.length : end;
    }
    yield* this.#objects(yielded, this.objects.length);
    yield* this.#ending();
  }

  /** Returns the entries for the proposal of a waiting run. They contain its objects, but not its steps. */
  *outline(): Generator<JournalEntry> {
    yield* this.#objects(0, this.objects.length);
    yield* this.#ending();
  }

  *#ending(): Generator<JournalEntry> {
    yield { t: "settled", settlements: this.settlements };
    if (Object.keys(this.facts).length > 0) yield { t: "facts", facts: this.facts };
  }

  /**
   * Returns the steps in order, as blocks of rows and lists of other steps. A block whose objects an earlier step uses
   * is returned as single steps.
   */
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

/** Returns the highest object position in these steps, plus one. */
function endOfObjects(steps: readonly Step[]): number {
  let end = 0;
  for (const { objects } of steps) for (const object of objects) end = Math.max(end, object + 1);
  return end;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** A plan that is not finished, because its reads take long. */
export interface Planning<Made = Plan> {
  readonly plan: Promise<Made>;
  /** Stops planning. `plan` then rejects, unless it is already finished. */
  stop(): void;
}

/** Returns whether a plan is not finished. */
export function isGoing<Made extends object>(plan: Made | Planning<Made>): plan is Planning<Made> {
  return "plan" in plan && plan.plan instanceof Promise;
}
