import type * as z from "zod";
import type { knownChange, reason, reportedObject } from "./outcome-schema.ts";

/** How one reported object ends in the result of a tool that writes. */
export type Outcome = "succeeded" | "alreadyDone" | "skipped" | "failed" | "notApplied" | "unknown";

/** Where an object stands: `pending` until it has an outcome. */
export type Standing = Outcome | "pending";

/** Why an object did not succeed, as data; `render/` makes the sentences. */
export type Reason = Readonly<z.infer<typeof reason>>;

/** Where an option stands: its group, null at the top level. */
export interface OptionPlace {
  /** Absent where the ID of the group is not known. */
  readonly parent?: string | null;
  readonly parentName?: string | null;
}

/** What a run is to change of an object whose former state was read before: shown in the rows of a result. */
export type KnownChange = Readonly<z.infer<typeof knownChange>>;

/** What a run did with an object. */
export type Did = "created" | "changed" | "deleted" | "same";

/** Who confirmed a run, and where. */
export type Asked =
  | "agreed_in_client"
  | "agreed_in_view"
  | "agreed_on_page"
  | "agreed_by_token"
  | "agreed_in_terminal"
  | "not_needed";

/** A name as it was given, and the one that it was taken for, whatever its case and the spaces at its ends. */
export interface TakenName {
  readonly given: string;
  readonly name: string;
}

/** How many Context IDs look like one that their option holds, and the first of them. */
export interface NearIds {
  readonly count: number;
  readonly first: readonly { readonly given: string; readonly held: string }[];
}

/** An option that holds another number of Context IDs after a run than was expected. */
export interface OtherCount {
  readonly name?: string | undefined;
  readonly _id?: string | undefined;
  readonly expected: number;
  readonly found: number;
}

/** How many rows of a file were read, how many of them added to an item before, and how many empty ones passed over. */
export interface RowCounts {
  readonly read: number;
  readonly merged: number;
  readonly skipped: number;
}

/** A thing that is counted and reported by itself: an item of the caller's, or one of several objects that it holds. */
export type ReportedObject = Readonly<z.infer<typeof reportedObject>>;

/** How a run stopped: `finished` when nothing is left to try, else why it did not go on. */
export type StopCause = "finished" | "cancelled" | "interrupted" | "ended";

/** Outcomes in the order in which reports name them. */
export const OUTCOMES: readonly Outcome[] = ["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown"];

/** How many objects stand where; the numbers add up to the number of objects. `skipped` is absent where it is none. */
export type Counts = Readonly<Record<Exclude<Standing, "skipped">, number>> & { readonly skipped?: number };

/** When a run changed last, in milliseconds since 1970: one of which nothing was recorded yet, when it was made. */
export function changedAt(
  { createdAt }: { readonly createdAt: number },
  { updatedAt }: { readonly updatedAt: number },
): number {
  return Math.max(createdAt, updatedAt);
}
