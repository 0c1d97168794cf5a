import * as z from "zod";
import { stopEntry } from "./outcome.ts";
import type { Lease } from "./turn.ts";

/** The version of the format of headers and journals. Runs with a newer version are left alone. */
export const VERSION = 1;

export const runHeaderSchema = z.object({
  version: z.number(),
  runId: z.string(),
  kind: z.string(),
  call: z.unknown(),
  /** The project that the API key belongs to. The write lock is held for this project. */
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that the run changes, or `embedded` for a sandbox inside its process. */
  sandbox: z.string().exactOptional(),
  createdAt: z.number(),
  /** A hash that is equal for identical calls of the same caller. */
  fingerprint: z.string(),
  /** The call was answered before the run was planned, so nobody was asked for approval yet. */
  unplanned: z.literal(true).exactOptional(),
  /** What the caller's client calls itself (not verified), and the name of the input file. */
  client: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** The run is a dry run: a plan for `apply_plan`. It is removed after a day, or earlier for a newer dry run. */
  dryRun: z.literal(true).exactOptional(),
  repeats: z.string().exactOptional(),
});

const kindCounts = z.object({ items: z.number(), created: z.number(), changed: z.number(), deleted: z.number() });

export const runSummarySchema = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  targetingId: z.string().exactOptional(),
  startedAt: z.number(),
  updatedAt: z.number(),
  open: z.boolean(),
  about: z
    .object({
      did: z.object({ created: z.number(), changed: z.number(), deleted: z.number() }).exactOptional(),
      /** How many of its objects are inside others: options of new targetings. */
      inside: z.object({ items: z.number(), succeeded: z.number() }).exactOptional(),
      /** If the run has only one object: its name, and its new name if it was renamed. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      /** Several rows of its file are one item, so that its counts are not counts of rows. */
      mergesRows: z.literal(true).exactOptional(),
      plannedBy: z.string().exactOptional(),
      /** The run that this one undoes. */
      undoes: z.string().exactOptional(),
      /** How many of its objects are groups or targetings. The others are options, or what its tool changes. */
      groups: kindCounts.exactOptional(),
      targetings: kindCounts.exactOptional(),
      beganAt: z.number().exactOptional(),
      within: z.string().exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** The run was declined or undone. It can be neither continued nor undone. */
      isOver: z.literal(true).exactOptional(),
    })
    .exactOptional(),
  /** The length of the journal in bytes. A shorter journal is damaged. */
  journalBytes: z.number().exactOptional(),
  /** The stored data of the run is damaged. This is set when the run is read, and never stored. */
  isDamaged: z.literal(true).exactOptional(),
});

export function parseRunHeader(value: unknown) {
  const { data } = runHeaderSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

/**
 * Returns whether a text is the ID of a run. No other text is used in a path, so no path can leave the folder of runs.
 */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** Returns whether a later call may continue a run at rest or ask about its outcome. */
function isUnfinished({ open, status, counts }: z.infer<typeof runSummarySchema>): boolean {
  // An interrupted run may not be planned yet. Unknown outcomes can be asked about without resuming.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/** The lease of a run shows whether it is executed. A killed process leaves `planning` or `running` behind. */
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

/** The part of a run that changes. A new version replaces it only if the stored version is the previous one. */
export const runRecord = z.object({
  /** Increases by one with each change. 0 for a run that was just created. */
  version: z.number(),
  status: z.enum(STATUSES),
  /** How the run ended before it started. The journal does not contain this. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** The run can never continue, even if some of its objects are not done. */
  isFinal: z.literal(true).exactOptional(),
  rest: runSummarySchema.exactOptional(),
});
export interface RunRecord extends Readonly<z.infer<typeof runRecord>> {}

export const CREATED: RunRecord = { version: 0, status: "planning" };

const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  planning: ["planned", "waiting", "running", "interrupted", "finished", "cancelled"],
  // A plan that is made again stays `planned`. A `waiting` run becomes `planned` if approval is requested elsewhere.
  planned: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  waiting: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  // A process that claims a run writes a new version first. The previous process then cannot write any more.
  running: ["running", "interrupted", "finished", "cancelled"],
  interrupted: ["running", "cancelled"],
  finished: ["running", "cancelled"],
  cancelled: ["running", "cancelled"],
  declined: [],
  expired: [],
};

export type Transition = Pick<RunRecord, "status"> & Partial<Pick<RunRecord, "ending" | "isFinal" | "rest">>;

export function transition(from: RunRecord, to: Transition): RunRecord | undefined {
  return from.isFinal || !NEXT[from.status].includes(to.status) ? undefined : { ...to, version: from.version + 1 };
}

export function isUnstarted(status: Status): boolean {
  return status === "planning" || status === "planned" || status === "waiting";
}

export function isAtRest(status: Status): boolean {
  return !isUnstarted(status) && status !== "running";
}

export function isOver({ status, isFinal }: RunRecord): boolean {
  return isFinal === true || NEXT[status].length === 0;
}

/** Returns whether a later call may continue a run, decide about it, or ask about its outcome. */
export function mayBeUnfinished({ status, rest }: Pick<RunRecord, "status" | "rest">): boolean {
  return !isAtRest(status) || rest === undefined || isUnfinished(rest);
}

export interface HeldRecord {
  readonly lease: Lease;
  readonly record: RunRecord;
}

interface Records {
  record(runId: string): Promise<RunRecord | undefined>;
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
}

/**
 * Changes a run to the status of `to`, again if another process was faster. Returns undefined if the transition is not
 * allowed. `record`: the current record, if already read. Throws a LeaseLostError.
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
