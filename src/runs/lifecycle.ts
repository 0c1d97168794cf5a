import * as z from "zod";
import { isUnfinished, keptSummary } from "./kept.ts";
import { stopEntry } from "./outcome-schema.ts";
import type { Lease } from "./turn.ts";

/**
 * Where a run stands, as it is stored. Whether a process executes it is no status: its lease says that, since a process
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

/** The part of a run that changes, and only by compare-and-set on its version. */
export const runRecord = z.object({
  /** One more for each change; 0 for a run that was only created. */
  version: z.number(),
  status: z.enum(STATUSES),
  /** How it ended before anything was sent: no journal says it. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** It never goes on, whatever is left of it. */
  isFinal: z.literal(true).exactOptional(),
  /** The run in short, where it is at rest. */
  rest: keptSummary.exactOptional(),
});
export interface RunRecord extends Readonly<z.infer<typeof runRecord>> {}

/** The record of a run that was created and nothing else. */
export const CREATED: RunRecord = { version: 0, status: "planning" };

/** What a run may become from each status. What starts it, resumes it or ends it is no other path than this. */
const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  planning: ["planned", "waiting", "running", "interrupted", "finished", "cancelled"],
  // A plan that is made anew stays one, and one whose approval is asked for elsewhere becomes one again.
  planned: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  waiting: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  // Who claims a run writes a new version first, so that a process that stood still fails on the version.
  running: ["running", "interrupted", "finished", "cancelled"],
  interrupted: ["running", "cancelled"],
  finished: ["running", "cancelled"],
  cancelled: ["running", "cancelled"],
  declined: [],
  expired: [],
};

/** What a transition brings besides the status. */
export type Transition = Pick<RunRecord, "status"> & Partial<Pick<RunRecord, "ending" | "isFinal" | "rest">>;

/** The record after a transition; undefined where the run may not become that from where it stands. */
export function transition(from: RunRecord, to: Transition): RunRecord | undefined {
  return from.isFinal || !NEXT[from.status].includes(to.status) ? undefined : { ...to, version: from.version + 1 };
}

/** Whether a run was not started: nothing of it was sent. */
export function isUnstarted(status: Status): boolean {
  return status === "planning" || status === "planned" || status === "waiting";
}

/** Whether a run is at rest: no process executes it, and none goes on with it by itself. */
export function isAtRest(status: Status): boolean {
  return !isUnstarted(status) && status !== "running";
}

/** Whether a run never goes on. */
export function isOver({ status, isFinal }: RunRecord): boolean {
  return isFinal === true || NEXT[status].length === 0;
}

/** Whether a later call may go on with a run, decide on it or ask what it came to. */
export function mayBeUnfinished({ status, rest }: Pick<RunRecord, "status" | "rest">): boolean {
  return !isAtRest(status) || rest === undefined || isUnfinished(rest);
}

/** The right to execute a run, and the record of the run by which it was taken. */
export interface HeldRecord {
  readonly lease: Lease;
  readonly record: RunRecord;
}

/** Where the records of runs are stored. */
interface Records {
  record(runId: string): Promise<RunRecord | undefined>;
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
}

/**
 * Changes the record of a run to what `to` makes of it, by compare-and-set: gives the new record, and undefined where
 * the run may not become that from where it stands. `record` is the one that was read before. Throws a LeaseLostError
 * where a lease is given that another process has.
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
