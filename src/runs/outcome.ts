import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

const number = z.number().exactOptional();
const text = z.string().exactOptional();

export const reason = z.object({
  /** An error code of the API (management-api 7.2) or one of `OWN_CODES`. */
  code: z.string(),
  statusCode: number,
  detail: z.record(z.string(), z.unknown()).exactOptional(),
  operation: z
    .enum(["createTargetings", "renameTargetings", "deleteTargetings", "addOptions", "updateOptions", "deleteOptions"])
    .exactOptional(),
  /** If `code` alone is ambiguous: the fields that were sent for the refused item, and the kind of its option. */
  sent: z.array(z.string()).readonly().exactOptional(),
});

export const asked = z.enum([
  "agreed_in_client",
  "agreed_in_view",
  "agreed_on_page",
  "agreed_by_token",
  "agreed_in_terminal",
  "not_needed",
]);

export const takenName = z.object({ given: z.string(), name: z.string() });
export const nearIds = z.object({
  count: z.number(),
  first: z.array(z.object({ given: z.string(), held: z.string() })),
});
/** Context IDs that contain separators, so that each may really be several IDs. `first` is an example. */
export const joinedIds = z.object({ count: z.number(), separators: z.string(), first: z.string() });
export const elsewhere = z.object({ count: z.number(), first: z.array(z.string()) });
export const rowCounts = z.object({
  read: z.number(),
  merged: z.number(),
  skipped: z.number(),
  /** The lines of merged rows. `of`: the line of the earlier row. Absent if more than MAX_JOINED rows were merged. */
  joined: z.array(z.object({ line: z.number(), of: z.number() })).exactOptional(),
});
export const MAX_JOINED = 25;

export const stopEntry = z.object({
  t: z.literal("stop"),
  cause: z.enum(["finished", "cancelled", "interrupted", "ended"]),
  reason: reason.exactOptional(),
  at: z.number(),
});

const placed = { parent: z.string().nullable().exactOptional(), parentName: z.string().nullable().exactOptional() };
const side = z.union([z.string(), z.object({ name: text, ...placed })]).exactOptional();

const knownChange = z.object({
  /** What a rename or a move changes: the name, the group, or both. `from` is before and `to` after the change. */
  from: side,
  to: side,
  exposeChildren: z.object({ from: z.boolean(), to: z.boolean() }).exactOptional(),
  /** How many Context IDs are added and removed, and how many requested ones were already present or absent. */
  added: number,
  removed: number,
  alreadyThere: number,
  absent: number,
});

export const reportedObject = z.object({
  /** The position in the caller's `items` or among the data rows of the file, counted from 0. */
  index: z.number(),
  line: number,
  child: number,
  grandchild: number,
  name: text,
  _id: text,
  /** Absent for options, events, and targetings of a tool that changes only targetings. */
  kind: z.enum(["group", "targeting"]).exactOptional(),
  uid: text,
  /** Only for events: the names that were corrected, each as `eventName addToCart → add_to_cart`. */
  mended: z.array(z.string()).readonly().exactOptional(),
  change: knownChange.exactOptional(),
  contextCount: number,
  optionKind: z.enum(["group", "topLevel", "subOption"]).exactOptional(),
});

export type Outcome = "succeeded" | "alreadyDone" | "skipped" | "failed" | "notApplied" | "unknown";

export type Standing = Outcome | "pending";

/** Why an object did not succeed or a run stopped. `answers/` has the sentences. */
export type Reason = Readonly<z.infer<typeof reason>>;

export interface OptionPosition {
  readonly parent?: string | null;
  readonly parentName?: string | null;
}

export type KnownChange = Readonly<z.infer<typeof knownChange>>;

/** Returns whether a change sets only values that the object already had. False if the previous values are unknown. */
export function changesNothing({ from, to, exposeChildren: shown, ...rest }: KnownChange = {}): boolean {
  const { added = 0, removed = 0 } = rest;
  if (added + removed > 0 || shown?.from !== shown?.to) return false;
  if (from !== undefined) return placeAndName(from) === placeAndName(to);
  return shown !== undefined || rest.alreadyThere !== undefined || rest.absent !== undefined;
}

/** Returns equal texts for equal positions and names. Groups are compared by ID, if known: they may be renamed. */
function placeAndName(side: KnownChange["from"]): string | undefined {
  if (typeof side !== "object") return side;
  const { name, parent, parentName } = side;
  return JSON.stringify([name, parent === undefined ? parentName : parent]);
}

export type Did = "created" | "changed" | "deleted" | "same";

/** How many objects a run created, changed and deleted. `gone`: already gone when their deletion was sent again. */
export type DidCounts = Readonly<Record<Did, number>> & { readonly gone?: number };

export type Asked = z.infer<typeof asked>;

/** A name in the call, and the existing name that was meant although case, outer spaces or composition differ. */
export type MatchedName = Fixed<z.infer<typeof takenName>>;

/** Options that were found in another group than the one that the call names. `first` has examples of their names. */
export type Elsewhere = Fixed<z.infer<typeof elsewhere>>;

export interface OtherCount {
  readonly name?: string | undefined;
  readonly _id?: string | undefined;
  readonly expected: number;
  readonly found: number;
}

/** How many rows of a file were read, merged into an earlier item, or skipped because they were empty. */
export type RowCounts = Fixed<z.infer<typeof rowCounts>>;

/** An object in the report of a run: an item of the call, or a part of an item such as a sub-option. */
export type ReportedObject = Readonly<z.infer<typeof reportedObject>>;

export type StopCause = "finished" | "cancelled" | "interrupted" | "ended";

export const OUTCOMES: readonly Outcome[] = ["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown"];

/** How many objects have each outcome. Together, these are all objects. `skipped` is absent if it is 0. */
export type Counts = Readonly<Record<Exclude<Standing, "skipped">, number>> & { readonly skipped?: number };

export const NO_COUNTS: Counts = { pending: 0, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0 };

/** Returns when a run last changed, in milliseconds since 1970. A run without entries changed when it was created. */
export function changedAt(
  { createdAt }: { readonly createdAt: number },
  { updatedAt }: { readonly updatedAt: number },
): number {
  return Math.max(createdAt, updatedAt);
}

/** The codes that this server uses in addition to the error codes of the API, with their meaning. */
export const OWN_CODES = {
  INVALID_NAME: "the name breaks the rules of management-api 8.3",
  INVALID_ID: "an ID is not a ULID",
  INVALID_CONTEXT_ID: "a Context ID is empty, longer than 256 bytes, damaged or partly invisible",
  INVALID_ROW: "a row of a file cannot be read as an item, or contradicts the option that it names",
  INVALID_ITEM: "the fields of the item contradict each other",
  DUPLICATE_IN_INPUT: "an earlier item of the same call has the same name or ID",
  NAME_NOT_FOUND: "no option or targeting has this name",
  NAME_AMBIGUOUS: "several options or targetings have this name",
  NOT_EMPTY: "the option holds Context IDs or sub-options, and only empty ones should be deleted",
  EXISTS: "an option with this name exists, and existing ones should be skipped",
  TOO_MANY_CONTEXT_IDS: "the option would hold more Context IDs than an option may",
  EMPTY_GROUP: "the option group would have neither sub-options nor Context IDs",
  PLAN_STALE: "the object has changed since the plan was made, and the change affects the plan",
  NO_FREE_PLACE: "in every order, the changes would for a moment exceed the limit of options of the targeting",
  PLAN_STALE_ELSEWHERE: "another object of the plan has changed since the plan was made",
  NEEDS_FAILED: "the group or targeting that the item needs failed",
  NO_ANSWER: "no answer or read within the retry budget shows whether the item was applied",
  NOT_SENT: "the service could not be reached within the retry budget",
  BUSY: "other writes kept the project locked during the whole retry budget",
  RATE_LIMITED: "the service limits the rate of requests for longer than the retry budget",
  CANCELLED: "the run was cancelled before the item was sent",
  NOT_PLANNED: "the run could not be planned, so nothing was sent",
  FILE_UNREADABLE: "the file of the call cannot be read or has no rows",
  NOT_SAVED: "the data to save could not be read or written",
  WITHDRAWN: "the run was cancelled before it was started",
  UNDONE: "the run was undone before the item was sent",
  NOT_DECIDED: "nobody approved or declined the run in time",
  DECLINED: "the change was declined",
  INTERRUPTED: "the run stopped before the item was sent",
  RUN_ENDED: "an earlier request ended the run before the item was sent",
  PARTLY_APPLIED: "only a part of the item was applied so far",
  OWNER_UNCLEAR: "an option or targeting with this name now exists, and another writer may have created it",
  STOPPED_BY_ERROR: "the run stopped at an error of this machine, such as a full disk",
  REJECTED: "the service refused the request with a status that the API documents do not list",
  VALIDATION: "the service refused the request or the item as invalid",
  UNAUTHORIZED: "the service does not accept the key",
  FORBIDDEN: "the key lacks the scope that the request needs",
  WRONG_ROUTE: "the service has no such route",
  REDIRECTED: "the address answers with a redirect",
  FOREIGN_ANSWER: "something between this server and the service refused the request",
  TOO_LARGE: "the service refused the request as too large",
} as const;

export type OwnCode = keyof typeof OWN_CODES;

export function ownReason(code: OwnCode, detail?: Readonly<Record<string, unknown>>): Reason {
  return detail === undefined ? { code } : { code, detail };
}
