import * as z from "zod";
import { stopEntry } from "./outcome.ts";
import type { Lease } from "./turn.ts";

/** The format version of headers and journals. Those of a newer version of the server are not touched. */
export const VERSION = 1;

/** The header of a run as every store stores it: everything that is needed to finish the run without its caller. */
export const runHeaderSchema = z.object({
  version: z.number(),
  runId: z.string(),
  /** The name of its kind. */
  kind: z.string(),
  call: z.unknown(),
  /** The project that the API key belongs to. The write lock is held for this project. */
  project: z.string(),
  /** Who made the call. Only they see the run. */
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that the run changes, or `embedded` for a sandbox inside its process. */
  sandbox: z.string().exactOptional(),
  createdAt: z.number(),
  /** A hash that is the same for the same call of the same caller. */
  fingerprint: z.string(),
  /** The call was answered before the run was planned, so no person was asked for approval yet. */
  unplanned: z.literal(true).exactOptional(),
  /** What the caller's client calls itself, which proves nothing, and the name of the input file. */
  client: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** The run was made by a dry run: a plan for `apply_plan`, removed after a day or for a newer dry run. */
  dryRun: z.literal(true).exactOptional(),
  /** The run of the same call before this one. */
  repeats: z.string().exactOptional(),
});

/** The summary of a run as every store stores it. */
export const runSummarySchema = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  /** The only targeting that the run changes, if known. */
  targetingId: z.string().exactOptional(),
  startedAt: z.number(),
  updatedAt: z.number(),
  /** Whether `resume_run` could continue the run. */
  open: z.boolean(),
  /** What lists show to people: what the run did, to which objects, with which file, and for which client. */
  about: z
    .object({
      did: z.object({ created: z.number(), changed: z.number(), deleted: z.number() }).exactOptional(),
      /** The name of its only object, and the object's new name. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      /** Several rows of its file are one item, so that its counts are not counts of rows. */
      mergesRows: z.literal(true).exactOptional(),
      plannedBy: z.string().exactOptional(),
      /** When the run was approved, in milliseconds since 1970. */
      beganAt: z.number().exactOptional(),
      /** The name of its targeting, if it was read. */
      within: z.string().exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** The run was declined or undone: it neither continues nor can be undone. */
      isOver: z.literal(true).exactOptional(),
    })
    .exactOptional(),
  /** The length of its journal in bytes. A journal that is shorter by now is damaged. */
  journalBytes: z.number().exactOptional(),
  /** The stored data of the run is damaged. This is found when the run is read, and is not written. */
  isDamaged: z.literal(true).exactOptional(),
});

/** Parses a stored header. Returns undefined if it is damaged. */
export function parseRunHeader(value: unknown) {
  const { data } = runHeaderSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

/**
 * Returns whether a text has the form of a run ID. Only such names are looked up, so that no path leads out of a
 * folder.
 */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/**
 * Returns whether a run with this summary at rest is unfinished: a later call may continue it or ask about its outcome.
 */
function isUnfinished({ open, status, counts }: z.infer<typeof runSummarySchema>): boolean {
  // A run that was interrupted before it was planned has nothing open, but is not done either. The same call can ask
  // about unknown outcomes, even if the run cannot be resumed.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/**
 * The stored status of a run. Whether a process executes the run is not a status but follows from its lease: a process
 * that was killed leaves `planning` or `running` behind.
 */
const STATUSES = [
  "planning",
  "planned",
  "waiting",
  "running",
  "interrupted",
  "finished",
  "cancelled",
  "declined",
  "expired",
] as const;
export type Status = (typeof STATUSES)[number];

/** The part of a run that changes. It changes only by compare-and-set on its version. */
export const runRecord = z.object({
  /** Increases by one with each change. 0 for a run that was only created. */
  version: z.number(),
  status: z.enum(STATUSES),
  /** How the run ended before anything was sent. The journal does not contain this. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** The run never continues, whatever is left of it. */
  isFinal: z.literal(true).exactOptional(),
  /** The summary of the run, if it is at rest. */
  rest: runSummarySchema.exactOptional(),
});
export interface RunRecord extends Readonly<z.infer<typeof runRecord>> {}

/** The record of a run that was only created. */
export const CREATED: RunRecord = { version: 0, status: "planning" };

/** The allowed transitions from each status. Starting, resuming and ending a run all use this table. */
const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  planning: ["planned", "waiting", "running", "interrupted", "finished", "cancelled"],
  // A plan that is made again stays planned. A run becomes planned again if approval is requested elsewhere.
  planned: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  waiting: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  // A process that claims a run writes a new version first, so that a suspended process fails on the version.
  running: ["running", "interrupted", "finished", "cancelled"],
  interrupted: ["running", "cancelled"],
  finished: ["running", "cancelled"],
  cancelled: ["running", "cancelled"],
  declined: [],
  expired: [],
};

/** The new status, and the fields of the record that change with it. */
export type Transition = Pick<RunRecord, "status"> & Partial<Pick<RunRecord, "ending" | "isFinal" | "rest">>;

/** Returns the record after a transition, or undefined if the transition is not allowed. */
export function transition(from: RunRecord, to: Transition): RunRecord | undefined {
  return from.isFinal || !NEXT[from.status].includes(to.status) ? undefined : { ...to, version: from.version + 1 };
}

/** Returns whether a run was not started. Nothing of it was sent. */
export function isUnstarted(status: Status): boolean {
  return status === "planning" || status === "planned" || status === "waiting";
}

/** Returns whether a run is at rest: no process executes it, and none continues it without a call. */
export function isAtRest(status: Status): boolean {
  return !isUnstarted(status) && status !== "running";
}

/** Returns whether a run never continues. */
export function isOver({ status, isFinal }: RunRecord): boolean {
  return isFinal === true || NEXT[status].length === 0;
}

/** Returns whether a later call may continue a run, decide on it, or ask about its outcome. */
export function mayBeUnfinished({ status, rest }: Pick<RunRecord, "status" | "rest">): boolean {
  return !isAtRest(status) || rest === undefined || isUnfinished(rest);
}

/** The right to execute a run, and the record of the run with which that right was taken. */
export interface HeldRecord {
  readonly lease: Lease;
  readonly record: RunRecord;
}

interface Records {
  record(runId: string): Promise<RunRecord | undefined>;
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
}

/**
 * Applies the transition that `to` returns to the record of a run, by compare-and-set. Returns the new record, or
 * undefined if the transition is not allowed. `record` is the record that was read before. Throws a LeaseLostError if
 * another process holds the passed lease.
 */
export async function moveRun(
  store: Records,
  runId: string,
  to: (from: RunRecord) => Transition | undefined,
  { lease, record }: { readonly lease?: Lease; readonly record?: RunRecord } = {},
): Promise<RunRecord | undefined> {
  for (let from = record; ; from = undefined) {
    from ??= await store.record(runId);
    const wanted = from && to(from);
    const after = from && wanted && transition(from, wanted);
    if (after === undefined || (await store.update(runId, after, lease))) return after;
  }
}
