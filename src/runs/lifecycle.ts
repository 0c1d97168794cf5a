import * as z from "zod";
import { stopEntry } from "./outcome.ts";
import type { Lease } from "./turn.ts";

/** An entry of a journal as its kind writes it: JSON without a line break, in pieces. */
export type Line = readonly (string | Uint8Array)[];

/** Headers and journals of this form are read; those of a newer version of the server are left alone. */
export const VERSION = 1;

/** The header of a run as every store keeps it: all that is needed to finish it without its caller. */
export const keptHeader = z.object({
  version: z.number(),
  runId: z.string(),
  /** The name of its kind. */
  kind: z.string(),
  call: z.unknown(),
  /** The project behind the key: what the write lock is held for. */
  project: z.string(),
  /** Who made the call; only they see the run. */
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that it works on; `embedded` for one inside its process. */
  sandbox: z.string().exactOptional(),
  createdAt: z.number(),
  /** The same for the same call of the same caller. */
  fingerprint: z.string(),
  /** Its call had answered before it was planned, so that no person was asked to confirm it yet. */
  unplanned: z.literal(true).exactOptional(),
  /** What the client of the caller calls itself, which proves nothing, and the name of the file that was given. */
  client: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** It was made by a dry run: a plan that `apply_plan` applies, removed after a day, or for a newer dry run. */
  dryRun: z.literal(true).exactOptional(),
});

/** The summary of a run as every store keeps it. */
export const keptSummary = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  /** The one targeting that it changes, where that is known. */
  targetingId: z.string().exactOptional(),
  startedAt: z.number(),
  updatedAt: z.number(),
  /** Whether `resume_run` could continue the run. */
  open: z.boolean(),
  /** What people read about it in lists: what it did, to what, with which file, and for which client. */
  about: z
    .object({
      did: z.object({ created: z.number(), changed: z.number(), deleted: z.number() }).exactOptional(),
      /** Its only object, and the new name of it. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      plannedBy: z.string().exactOptional(),
      /** When it was approved. */
      beganAt: z.number().exactOptional(),
      /** The name of its targeting, where that was read. */
      within: z.string().exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** It was declined or undone: it neither goes on nor is undone. */
      isOver: z.literal(true).exactOptional(),
    })
    .exactOptional(),
  /** How long its journal was, in bytes: one that is shorter by now is damaged. */
  journalBytes: z.number().exactOptional(),
  /** What is kept of the run is damaged; found when it is read, and not written. */
  isDamaged: z.literal(true).exactOptional(),
});

/** The header that was kept as this; undefined where it is damaged. */
export function headerIn(value: unknown) {
  const { data } = keptHeader.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

/** Whether a text has the form of a run's ID. Only such names are looked up, so that no path leads out of a folder. */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/**
 * Whether a run that came to rest like this is not finished: a later call may go on with it, or ask what it came to.
 */
function isUnfinished({ open, status, counts }: z.infer<typeof keptSummary>): boolean {
  // One that was interrupted before it was planned has nothing open, and is not done either. What is unknown can be
  // asked about by the same call, also where it cannot be resumed.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/** The number of groups in which calls take turns: calls of one group wait for each other. */
const GROUPS = 64;

/** The group of calls that a call takes turns with. */
export function groupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % GROUPS);
}

/** An entry as bytes, with its line break. */
export function lineBytes(line: Line): Uint8Array[] {
  return [...line.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)), NEWLINE];
}

const NEWLINE = Buffer.from("\n");

/** Entries one after the other, each with its line break. */
export function* inLines(lines: Iterable<Line>): Generator<string | Uint8Array> {
  for (const line of lines) {
    yield* line;
    yield "\n";
  }
}

/** The lines that end with a line break. */
export async function* wholeLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = [];
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end !== -1; end = piece.indexOf(LINE_FEED, from)) {
      yield Buffer.concat([...rest, piece.subarray(from, end)]).toString("utf8");
      rest = [];
      from = end + 1;
    }
    if (from < piece.length) rest.push(piece.subarray(from));
  }
}

const LINE_FEED = 0x0a;

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
