import type { BulkOperation } from "../spec/routes.ts";

/** How one reported object ends (contract, "The result of a tool that writes"). */
export type Outcome = "succeeded" | "alreadyDone" | "failed" | "unattempted" | "unknown";

/** Where an object stands: `pending` until it has an outcome. */
export type Standing = Outcome | "pending";

/** Why an object did not succeed, as data; `render/` makes the sentences. */
export interface Reason {
  /** An error code of the API (management-api 7.2), or one of our own (`OWN_CODES`). */
  readonly code: string;
  readonly statusCode?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly operation?: BulkOperation;
  /** What the refused item said (`sentFields`), where the code means several things that only this tells apart. */
  readonly sent?: readonly string[];
}

/** A thing that is counted and reported by itself: an item of the caller's, or one of several objects that it holds. */
export interface ReportedObject {
  /** Position in the caller's `items`, or the data row of the file, counted from 0. */
  readonly index: number;
  /** The line of the file, counted from 1. */
  readonly line?: number;
  /** Position in the item's `children` or `options`. */
  readonly child?: number;
  /** Position in the `children` of an option of a new targeting. */
  readonly grandchild?: number;
  readonly name?: string;
  /** The ID that the caller gave, where it gave one. */
  readonly _id?: string;
  /** Of an event: the SHA-256 hash of its `uid`, in hexadecimal. */
  readonly uid?: string;
}

/** How a run stopped: `finished` when nothing is left to try, else why it did not go on. */
export type StopCause = "finished" | "cancelled" | "interrupted" | "ended";

/** Outcomes in the order in which reports name them. */
export const OUTCOMES: readonly Outcome[] = ["succeeded", "alreadyDone", "failed", "unattempted", "unknown"];

/** How many objects stand where; the numbers add up to the number of objects. */
export type Counts = Readonly<Record<Standing, number>>;
