import * as z from "zod";
import { FileError, type Pieces, undefinedIf } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { parseJson } from "../platform/json.ts";
import { stopEntry } from "./outcome.ts";
import type { RetentionWatch } from "./retention-clock.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** Runs cannot be stored or read. The message states the problem; `remedy` says how to fix it. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The store has or may have lost entries that it had confirmed. So the journal may not show all that was applied. */
export class LostEntriesError extends RunStoreError {}

/** The stored data of a run is damaged, so it is unknown what the run has sent or changed. */
export class DamagedRunError extends RunStoreError {
  readonly runId: string;
  readonly holdsRemoved: boolean;
  readonly header: RunHeader | undefined;
  constructor(
    runId: string,
    {
      holdsRemoved = false,
      header,
      kind = header?.kind,
    }: Partial<Pick<DamagedRunError, "holdsRemoved" | "header"> & Pick<RunHeader, "kind">> = {},
  ) {
    const sent = "The run may have sent all, some or none of its requests, and it cannot be resumed";
    const again =
      kind === "events"
        ? 'To send its events again, and risk recording them twice: the same call with onUnknown "resend".'
        : "Read the current state with list_options, and make a new call for the missing changes.";
    const remedy = holdsRemoved
      ? `${sent}. Its copy of the data to remove is complete (targeting://runs/${runId}/removed). ` +
        `undo_run {"runId":"${runId}"} plans to restore the data that is missing now.`
      : `${sent} or undone. ${again}`;
    super(`the journal of run ${runId} is damaged, so it is unknown what the run did`, remedy);
    this.runId = runId;
    this.holdsRemoved = holdsRemoved;
    this.header = header;
  }
}

/** The store cannot be reached, or has no tables yet. The message says whether the call may have started a run. */
export class StoreUnavailableError extends RunStoreError {}

/** What is stored when a run is created. `call` has a type once the code for the run's kind has parsed it. */
export interface RunHeader<Call = unknown> extends Readonly<Omit<z.infer<typeof runHeaderSchema>, "version" | "call">> {
  readonly call: Call;
}

export interface RunSummary extends Readonly<z.infer<typeof runSummarySchema>> {}

export interface RunJournal {
  /** Adds an entry. It is certainly on disk only after `flush` has resolved. */
  append(line: Line): void;
  /** Resolves when all added entries are on disk and the lease is still held. Throws a LeaseLostError if it is not. */
  flush(): Promise<void>;
  /**
   * Writes the journal entry of the next request to disk, and renews the lease of the run and that of the write lock.
   * Returns clock readings from before the renewal. The request may be sent only within `SEND_WINDOW_MS` of these
   * readings. Throws a LostEntriesError each time once the store has lost entries, as `flush` and `close` do.
   */
  intend(turn: Turn): Promise<Intent>;
  /**
   * Writes the added entries to disk. A failure makes the next `flush` throw. Throws itself only if the call must be
   * answered before the write ends.
   */
  write(): Promise<void>;
  /**
   * Appends an entry although the lease or earlier entries were lost. The process that executes the run next reads it.
   * The entry follows the last stored one and does not count as progress of the run.
   */
  appendLate(line: Line): Promise<void>;
  /** Writes the added entries if the lease is still held, and closes the journal. */
  close(): Promise<void>;
}

export interface Revision {
  readonly text: string;
  readonly bytes: number;
}

/** A stored run. The code for the run's kind (`understood`) parses the call, and entries each time they are read. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * What is stored of a run in addition to its journal. `input`: the file, plan or events of the call. `sheet`: the
 * spreadsheet from which a plan was made. `proposed`: the plan of a run that is not started. `removed`: the Context IDs
 * and options that the run removes. `former`: the previous values of what it changes. `rejects`: rows that failed.
 */
export type RunPart = "input" | "sheet" | "proposed" | "removed" | "former" | "rejects";

/** Selects a caller's runs (older than `before`), runs that may be unfinished, or the newest run with a fingerprint. */
export type RunQuery =
  | { readonly caller: string; readonly before?: string }
  | { readonly unfinished: Unfinished }
  | { readonly lastOf: string };

/** Selects runs that may be unfinished. `callerName`: of all callers with this name, whatever their keys. */
export type Unfinished =
  | "all"
  | { readonly fingerprint: string }
  | { readonly callerName: string }
  | Pick<RunHeader, "caller" | "project" | "environment">;

export interface RunStore {
  create(header: RunHeader): Promise<void>;
  /** Replaces a record. Returns false if another process has stored a newer version. Throws a LeaseLostError. */
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
  /** Returns the record of a run. Its summary, if any, says whether stored data is damaged. Undefined without a run. */
  record(runId: string): Promise<RunRecord | undefined>;
  read(runId: string): Promise<StoredRun | undefined>;
  revision(runId: string): Promise<Revision | undefined>;
  /**
   * Returns the IDs of runs, the newest first. A query for a caller returns one page; an empty page is the end. A query
   * for unfinished runs may also return finished ones. It may omit all but the newest 1,000, except with `callerName`.
   * Fast even if many are stored.
   */
  list(query: RunQuery): Promise<readonly string[]>;
  /** Returns the run with the last entry, and its time by this process's clock if it ended. Absent on one machine. */
  lastChanged?(fingerprint: string): Promise<{ runId: string; endedAt: number | undefined } | undefined>;
  /** Takes the lease of a run. Undefined while it is held. The previous holder can then only use `appendLate`. */
  lease(runId: string): Promise<Lease | undefined>;
  /** If the store does not answer this call in time, the error names this run. Absent for a store of this machine. */
  mention?(runId: string): void;
  isDriven(runId: string): Promise<boolean>;
  /** Keeps a run that is not planned yet, even if its call fails. False if it was removed. Absent if none is removed. */
  retain?(runId: string): Promise<boolean>;
  /**
   * Opens a journal for writing. `wasLeft`: the process that executed the run before did not bring it to rest. If the
   * store may have lost entries of that process, the first write then throws a LostEntriesError.
   */
  journal(runId: string, lease: Lease, wasLeft?: boolean): Promise<RunJournal>;
  discard(runId: string): Promise<void>;
  /** Calls the listener when another process may have changed the run. Absent if processes do not notify each other. */
  watch?: Watch;
  /** Runs `work` while no `work` of an identical call runs, in this or another process. */
  withCallLock<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  readonly parts: PartStore;
  readonly stops: StopStore;
  readonly sizes: SizeStore;
  readonly retention: RetentionStore;
  /** The runs whose process has ended, for processes that continue them. Absent if only a call can resume them. */
  readonly left?: OrphanedRuns;
}

/** Calls the listener when something may have changed, until the returned function is called. Changes can be missed. */
type Watch = (runId: string, listener: () => void) => () => void;

interface PartStore {
  keep(runId: string, part: RunPart, pieces: Pieces): Promise<void>;
  read(runId: string, part: RunPart): ByteSource;
}

export interface StopStore {
  ask(runId: string): Promise<void>;
  /** Returns an ID for each request to stop a run, except withdrawn ones. `forget` withdraws requests by these IDs. */
  asked(runId: string): Promise<readonly string[]>;
  forget(runId: string, asked: readonly string[]): Promise<void>;
  /** Calls the listener when a stop is requested. Absent if processes do not notify each other. */
  watch?: Watch;
}

interface SizeStore {
  of(runIds: readonly string[]): Promise<number>;
  /** Throws a ShareFullError if the caller's share has no room for this many more bytes. Absent without shares. */
  checkRoom?(caller: string, bytes: number): Promise<void>;
}

interface RetentionStore extends RetentionWatch {
  /** Removes old runs: those that are too old, too many or too large. Removes none while the clock is in doubt. */
  tidy(): Promise<void>;
}

/** Runs whose process has ended. While another process ("worker") can continue them, they count as executed. */
export interface OrphanedRuns {
  /**
   * Registers that this process executes a run of a project, until the returned function is called. Returns undefined
   * if this process may only plan the run: it is no worker, or the project is one of `startClaiming` and this process
   * already executes runs of the maximum number of other projects.
   */
  drives(project: string): (() => void) | undefined;
  hasWorker(project: string): Promise<boolean>;
  hasRoomFor(project: string): boolean;
  /** Tells other processes to continue a run, whose lease must already be released. */
  leave(runId: string): Promise<void>;
  /**
   * Announces that this process continues orphaned runs of these projects. Calls `wake` when there may be such runs, or
   * when this process has room for another project.
   */
  startClaiming(projects: readonly string[], wake: () => void): Promise<void>;
  /** Returns orphaned runs. Those of callers with the fewest projects in execution come first, then the oldest. */
  found(projects: readonly string[], most: number, except?: readonly string[]): Promise<readonly OrphanedRun[]>;
  /** Announces runs that this process may not execute. Otherwise, they would count as executed by this process. */
  refuses(runIds: readonly string[]): Promise<void>;
}

export type OrphanedRun = Pick<RunHeader, "runId" | "project">;

/** Returns the name of a caller: `owner` without the digest of the caller's API keys. */
export function callerName(owner: string): string {
  return owner.replace(/^keys:\w+ /, "");
}

/** Returns whether an error says that a run cannot be read: newer format, damaged, or just being removed. */
export function isUnreadable(thrown: unknown): boolean {
  return (thrown instanceof RunStoreError && !(thrown instanceof StoreUnavailableError)) || thrown instanceof FileError;
}

/** Returns what `reading` returns, or undefined if the run cannot be read. Throws if the store cannot be reached. */
export function undefinedIfUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf(isUnreadable, reading);
}

/** A run has only its call, because its process ended before it stored more. Nothing was sent to the service. */
export class NothingStoredError extends RunStoreError {}

export function undefinedIfNothingStored<T>(taking: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => thrown instanceof NothingStoredError, taking);
}

const CALL_GROUPS = 64;

/** Assigns a call to one of a few groups. The calls of one group share a call lock, so they wait for each other. */
export function callGroupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % CALL_GROUPS);
}

/** A journal entry: JSON without line breaks, in pieces. */
export type Line = readonly (string | Uint8Array)[];

const NEWLINE = 0x0a;

export function lineBytes(line: Line): Uint8Array[] {
  return [...line.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)), Buffer.of(NEWLINE)];
}

export function* inLines(lines: Iterable<Line>): Generator<string | Uint8Array> {
  for (const line of lines) {
    yield* line;
    yield "\n";
  }
}

/** Yields the lines of a text. A last line without a line break is incomplete and is omitted. */
export async function* wholeLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = [];
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      yield Buffer.concat([...rest, piece.subarray(from, end)]).toString("utf8");
      rest = [];
      from = end + 1;
    }
    if (from < piece.length) rest.push(piece.subarray(from));
  }
}

/** The version of the format of headers and journals. Runs with a newer version are not read. */
export const VERSION = 1;

export const runHeaderSchema = z.object({
  version: z.number(),
  runId: z.string(),
  kind: z.string(),
  call: z.unknown(),
  /** The project of the API key. Write requests of one project are sent one at a time. */
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that the run changes, or `embedded` for a sandbox inside the process of the run. */
  sandbox: z.string().exactOptional(),
  createdAt: z.number(),
  /** A hash that is equal for identical calls of one caller. With it, a repeated call finds its earlier run. */
  fingerprint: z.string(),
  /** Set if the call was answered before planning. The caller does not know whether the run needs approval. */
  unplanned: z.literal(true).exactOptional(),
  /** The name that the caller's program gives itself (not verified), which shows people where the run is from. */
  client: z.string().exactOptional(),
  person: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** Set for a dry run: a plan for `apply_plan`. It is removed after a day, or earlier if newer plans need its room. */
  dryRun: z.literal(true).exactOptional(),
  repeats: z.string().exactOptional(),
});

const kindCounts = z.object({ items: z.number(), created: z.number(), changed: z.number(), deleted: z.number() });

/** How many existing objects a run changed, by kind of change. One object can count for several kinds. */
const changeKinds = z.object({
  renamed: z.number(),
  moved: z.number(),
  /** The name of the only group into which objects were moved; null: the top level. Absent if several or unknown. */
  into: z.string().nullable().exactOptional(),
  /** How many groups now show or hide their sub-options. */
  exposed: z.number(),
  /** How many options got (`extended`) or lost (`reduced`) Context IDs, and how many (`added`, `removed`). */
  extended: z.number(),
  added: z.number(),
  reduced: z.number(),
  removed: z.number(),
});
export type ChangeKinds = Readonly<z.infer<typeof changeKinds>>;

const firstNames = z.array(z.string()).readonly().exactOptional();

const runSummarySchema = z.object({
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
      inside: z.object({ items: z.number(), succeeded: z.number() }).exactOptional(),
      /** The name of the run's only object, and its new name if it was renamed. Absent for several objects. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      person: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      /** Set if rows of the file were merged, so that the counts of items are not counts of rows. */
      mergesRows: z.literal(true).exactOptional(),
      plannedBy: z.string().exactOptional(),
      undoes: z.string().exactOptional(),
      /** When the run ended, if it was undone later. Otherwise `updatedAt` says when it ended. */
      endedAt: z.number().exactOptional(),
      /** How many objects are groups or targetings. The others are what the tool changes, mostly options. */
      groups: kindCounts.exactOptional(),
      targetings: kindCounts.exactOptional(),
      how: changeKinds.exactOptional(),
      /** The names of the first objects that the run created, changed or deleted. Renamed ones have the new name. */
      names: z.object({ created: firstNames, changed: firstNames, deleted: firstNames }).exactOptional(),
      beganAt: z.number().exactOptional(),
      within: z.string().exactOptional(),
      /**
       * The first targetings that the run deleted, by ID and with the names that they had. For `delete_targeting` also
       * how many options these contained, if known, and how many of these were groups.
       */
      deletedTargetings: z
        .object({
          first: z.array(z.object({ _id: z.string(), name: z.string() })).readonly(),
          ...{ options: z.number().exactOptional(), groups: z.number().exactOptional() },
        })
        .exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** Set if nobody approved or declined the run in time. */
      isExpired: z.literal(true).exactOptional(),
      /** Set if the run was withdrawn, declined, undone or not decided in time. It cannot be continued or undone. */
      isOver: z.literal(true).exactOptional(),
    })
    .exactOptional(),
  /** The length of the journal in bytes. A shorter journal has lost entries, so it counts as damaged. */
  journalBytes: z.number().exactOptional(),
  /** Set when reading finds that the stored data is damaged. It is never stored. */
  isDamaged: z.literal(true).exactOptional(),
});

export function parseRunHeader(value: unknown) {
  const { data } = runHeaderSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

const versioned = z.looseObject({ version: z.number() });

/** Parses the header of a run. Throws a RunStoreError if its format is newer, or a DamagedRunError if it is invalid. */
export function readRunHeader(runId: string, text: string): RunHeader {
  const value = parseJson(text);
  const { data } = versioned.safeParse(value);
  if (data !== undefined && data.version > VERSION) {
    throw new RunStoreError(`run ${runId} was made by a newer version of this server`, "Use that newer version.");
  }
  const header = parseRunHeader(value);
  // A different ID means that the header was copied from another run or that the folder was renamed.
  if (header?.runId !== runId) throw new DamagedRunError(runId);
  return header;
}

/** Returns whether a text can be the ID of a run. Only such IDs get into paths, so that no path leaves the folder. */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** Returns whether a stopped run can be resumed or has outcomes that a later call can still find out. */
function isUnfinished({ open, status, counts }: z.infer<typeof runSummarySchema>): boolean {
  // An interrupted run may have no items yet. Unknown outcomes can be found out without resuming the run.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/** The statuses of a run. `planning` and `running` do not prove that a process executes it. Only the lease does. */
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

/** The part of a run that changes. A new version is stored only if the stored version is the one before it. */
export const runRecord = z.object({
  version: z.number(),
  status: z.enum(STATUSES),
  /** How the run ended before it was started. Its journal does not contain this. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** Set if the run can never be continued, although some of its objects may not be done. */
  isFinal: z.literal(true).exactOptional(),
  rest: runSummarySchema.exactOptional(),
});
export interface RunRecord extends Readonly<z.infer<typeof runRecord>> {}

export const CREATED: RunRecord = { version: 0, status: "planning" };

const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  planning: ["planned", "waiting", "running", "interrupted", "finished", "cancelled"],
  // A plan that is made again stays `planned`. A `waiting` run becomes `planned` if it then needs no approval.
  planned: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  waiting: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  // A process that takes over a run stores a new version first. The previous process can then no longer store its own.
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

/** Returns whether a later call may continue a run, decide about it, or find out its outcome. */
export function mayBeUnfinished({ status, rest }: Pick<RunRecord, "status" | "rest">): boolean {
  return !isAtRest(status) || rest === undefined || isUnfinished(rest);
}

export interface HeldRecord {
  readonly lease: Lease;
  readonly record: RunRecord;
  /** Whether another process executed the run before and did not bring it to rest. */
  readonly wasLeft?: boolean;
}

/**
 * Changes the status of a run. Tries again if another process was faster. Undefined if the run may not get the new
 * status. `record` is the current record, if it is already read. Throws a LeaseLostError.
 */
export async function moveRun(
  store: Pick<RunStore, "record" | "update">,
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
