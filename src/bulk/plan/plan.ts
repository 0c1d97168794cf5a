import type { ManagementApi } from "../../api/management.ts";
import type { ByteSource } from "../files/bytes.ts";
import { placeOf } from "../files/rows.ts";
import type { PlacedOption } from "../files/saved-options.ts";
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

/** A call taken apart: what is reported, what needs no request, and the steps that requests are made of. */
export class Plan {
  readonly objects: ReportedObject[] = [];
  readonly settlements: Settlement[] = [];
  readonly steps: Step[] = [];
  readonly losses: Loss[] = [];
  readonly removed: Removed[] = [];
  readonly make = new StepMaker(0);

  /** Adds something that is counted and reported by itself; gives its position. */
  object(object: ReportedObject): number {
    this.objects.push(object);
    return this.objects.length - 1;
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
    this.steps.push(step);
    return step;
  }

  /** The plan as journal entries. */
  entries(): readonly JournalEntry[] {
    return [
      { t: "objects", objects: this.objects },
      { t: "settled", settlements: this.settlements },
      { t: "steps", steps: this.steps },
    ];
  }
}
