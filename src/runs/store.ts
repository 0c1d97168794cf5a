import * as z from "zod";
import { FileError, type Pieces } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { stopEntry } from "./outcome.ts";
import type { RetentionWatch } from "./retention-clock.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** Runs cannot be stored or read. The message is the problem; `remedy` says how to fix it. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The store has lost entries that it had confirmed. So the journal does not show everything that was applied. */
export class LostEntriesError extends RunStoreError {}

/** The stored data of a run is damaged, so it is unknown what the run has sent or changed. */
export class DamagedRunError extends RunStoreError {
  readonly runId: string;
  readonly holdsRemoved: boolean;
  readonly header: RunHeader | undefined;
  constructor(
    runId: string,
    { holdsRemoved = false, header }: Partial<Pick<DamagedRunError, "holdsRemoved" | "header">> = {},
  ) {
    const sent = "It may have sent all, some or none of its requests, and it cannot be resumed";
    const remedy = holdsRemoved
      ? `${sent}. The data that it was to remove is complete (targeting://runs/${runId}/removed). ` +
        `undo_run {"runId":"${runId}"} plans to restore the part of it that is missing now.`
      : `${sent} or undone. Read the current state with list_options, and make a new call for the missing changes.`;
    super(`the journal of run ${runId} is damaged: what it did cannot be read`, remedy);
    this.runId = runId;
    this.holdsRemoved = holdsRemoved;
    this.header = header;
  }
}

/** The store cannot be reached now. For the current call, nothing was sent. */
export class StoreUnavailableError extends RunStoreError {}

/** The header of a run, written before the run starts. Its kind has parsed the call. */
export interface RunHeader<Call = unknown> extends Readonly<Omit<z.infer<typeof runHeaderSchema>, "version" | "call">> {
  readonly call: Call;
}

/** The summary of a stopped run, which is stored in the run's record. */
export interface RunSummary extends Readonly<z.infer<typeof runSummarySchema>> {}

export interface RunJournal {
  /** Adds an entry. It is on disk once `flush` has resolved. */
  append(line: Line): void;
  /** Resolves when all added entries are on disk and the lease of the run is still held, or throws a LeaseLostError. */
  flush(): Promise<void>;
  /**
   * Does the same as `flush` and renews both leases. A request may be sent only while the returned readings are fresh.
   */
  intend(turn: Turn): Promise<Intent>;
  /** Writes the entries to disk; if that fails, the next `flush` throws. Throws if the call has to be answered now. */
  write(): Promise<void>;
  /** Appends an entry for the process that has taken over the run, about a request that was sent too late. */
  appendLate(line: Line): Promise<void>;
  /** Closes the journal. If the lease is still held, first writes the entries that are not on disk yet. */
  close(): Promise<void>;
}

export interface Revision {
  readonly text: string;
  /** How many bytes have to be read to load the run. */
  readonly bytes: number;
}

/** A run as it is stored. Its kind has parsed the call and parses the entries, which can be read repeatedly. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
  /** The entries of the plan that is proposed for approval. */
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * A part of a run besides its journal. `input`: the file of the call. `sheet`: the sheet that a plan was made from.
 * `proposed`: the proposed plan. `removed`: the removed Context IDs and options. `former`: the previous values.
 * `rejects`: the rows of the file that failed.
 */
export type RunPart = "input" | "sheet" | "proposed" | "removed" | "former" | "rejects";

/** A caller's runs (older than `before`), runs that may be unfinished, or the last run of a call (by fingerprint). */
export type RunQuery =
  | { readonly caller: string; readonly before?: string }
  | { readonly unfinished: Unfinished }
  | { readonly lastOf: string };

/** Which runs that may be unfinished to list. `callerName` includes the callers with this name and any keys. */
export type Unfinished =
  | "all"
  | { readonly fingerprint: string }
  | { readonly callerName: string }
  | Pick<RunHeader, "caller" | "project" | "environment">;

export interface RunStore {
  /** Stores a new run. Its status is `planning`. */
  create(header: RunHeader): Promise<void>;
  /** Replaces a record; false if the stored version is not the one before `record.version`. Throws a LeaseLostError. */
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
  /** Returns the record of a run, which also says whether its stored data is damaged. Undefined if there is no run. */
  record(runId: string): Promise<RunRecord | undefined>;
  read(runId: string): Promise<StoredRun | undefined>;
  revision(runId: string): Promise<Revision | undefined>;
  /**
   * Returns IDs of runs, the newest first. For a caller, one page is returned; the page after the last one is empty. A
   * query for unfinished runs may also return finished ones. The cost hardly depends on the number of stored runs.
   */
  list(query: RunQuery): Promise<readonly string[]>;
  /**
   * Takes the lease of a run. Returns undefined while another process holds it. Entries that the previous holder
   * appends later do not count.
   */
  lease(runId: string): Promise<Lease | undefined>;
  isDriven(runId: string): Promise<boolean>;
  journal(runId: string, lease: Lease): Promise<RunJournal>;
  discard(runId: string): Promise<void>;
  /** Calls the listener when another process may have changed the run. Absent if processes do not notify each other. */
  watch?: Watch;
  /** Runs `work` while no other process runs `work` for the same call. */
  withCallLock<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  readonly parts: PartStore;
  readonly stops: StopStore;
  readonly sizes: SizeStore;
  readonly retention: RetentionStore;
  /** The runs of ended processes. Absent if such runs wait until a call resumes them. */
  readonly left?: OrphanedRuns;
}

/** Calls the listener until the returned function is called. The calls are only hints, and some may be missing. */
type Watch = (runId: string, listener: () => void) => () => void;

interface PartStore {
  keep(runId: string, part: RunPart, pieces: Pieces): Promise<void>;
  /** Returns the content of a part. It is empty if no such part was stored. */
  read(runId: string, part: RunPart): ByteSource;
}

export interface StopStore {
  ask(runId: string): Promise<void>;
  /** Returns the names of the requests to stop a run that were not withdrawn. Each request has its own name. */
  asked(runId: string): Promise<readonly string[]>;
  forget(runId: string, asked: readonly string[]): Promise<void>;
  /** Calls the listener when a stop is requested. Absent if processes do not notify each other. */
  watch?: Watch;
}

interface SizeStore {
  of(runIds: readonly string[]): Promise<number>;
  /** Throws a ShareFullError if this many further bytes exceed the caller's share. Absent if callers have no shares. */
  checkRoom?(caller: string, bytes: number): Promise<void>;
}

interface RetentionStore extends RetentionWatch {
  /** Removes the runs whose time of storage is over. */
  tidy(): Promise<void>;
}

/** Runs whose processes have ended. Workers claim and continue them, so they count as executed while a worker lives. */
export interface OrphanedRuns {
  /**
   * Records that this process executes a run of a project, until the returned function is called. Returns undefined if
   * this process must leave the run to others once its plan is stored: it is not a worker, or it already writes to the
   * maximum number of projects.
   */
  drives(project: string): (() => void) | undefined;
  hasWorker(project: string): Promise<boolean>;
  hasRoomFor(project: string): boolean;
  /** Leaves a run to other processes. Its lease must be released first. */
  leave(runId: string): Promise<void>;
  /**
   * Announces that this process claims orphaned runs. `wake` is called when a run was left to others, or when this
   * process can take another project.
   */
  startClaiming(projects: readonly string[], wake: () => void): Promise<void>;
  /** Returns orphaned runs. Those of callers with the fewest executed projects come first, then the oldest. */
  found(projects: readonly string[], most: number, except?: readonly string[]): Promise<readonly OrphanedRun[]>;
  /**
   * Announces which runs this process may not execute. Other processes then do not expect this process to continue
   * them.
   */
  refuses(runIds: readonly string[]): Promise<void>;
}

export type OrphanedRun = Pick<RunHeader, "runId" | "project">;

/** Returns the name of a caller: the stored owner of a run without the digest of the caller's keys. */
export function callerName(owner: string): string {
  return owner.replace(/^keys:\w+ /, "");
}

export async function undefinedIf<T>(
  isExpected: (thrown: unknown) => boolean,
  work: Promise<T>,
): Promise<T | undefined> {
  try {
    return await work;
  } catch (thrown) {
    if (isExpected(thrown)) return undefined;
    throw thrown;
  }
}

/** Returns whether an error means that a run has a newer format, is damaged, or is being removed. */
export function isUnreadable(thrown: unknown): boolean {
  return (thrown instanceof RunStoreError && !(thrown instanceof StoreUnavailableError)) || thrown instanceof FileError;
}

/**
 * Returns the result of `reading`. Returns undefined if the run cannot be read, but throws if the store cannot be
 * reached.
 */
export function undefinedIfUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf(isUnreadable, reading);
}

/** Only the call of a run is stored, because its process ended early. Nothing was sent. */
export class NothingStoredError extends RunStoreError {}

export function undefinedIfNothingStored<T>(taking: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => thrown instanceof NothingStoredError, taking);
}

const CALL_GROUPS = 64;

/** Returns the group of a call. Calls in the same group are handled one after another. */
export function callGroupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % CALL_GROUPS);
}

/** The pieces of a journal entry: JSON without line breaks. */
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

/** Returns the lines of a text. A last line without a line break is left out, because it was not written completely. */
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
  /** The person who requested the run on the web page. */
  person: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** The run is a dry run: a plan for `apply_plan`. It is removed after a day, or earlier for a newer dry run. */
  dryRun: z.literal(true).exactOptional(),
  repeats: z.string().exactOptional(),
});

const kindCounts = z.object({ items: z.number(), created: z.number(), changed: z.number(), deleted: z.number() });

/** What a run changed in objects that existed. An object can count several times. */
const changeKinds = z.object({
  renamed: z.number(),
  moved: z.number(),
  /** The name of the only group to which objects were moved. Null for the top level. Absent if there are several. */
  into: z.string().nullable().exactOptional(),
  /** How many groups now show or hide their sub-options. */
  exposed: z.number(),
  /** How many options got Context IDs and lost some, and how many Context IDs these are. */
  extended: z.number(),
  added: z.number(),
  reduced: z.number(),
  removed: z.number(),
});
export type ChangeKinds = Readonly<z.infer<typeof changeKinds>>;

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
      /** How many objects of the run are options inside new targetings. */
      inside: z.object({ items: z.number(), succeeded: z.number() }).exactOptional(),
      /** If the run has only one object: the name of the object, and its new name if it was renamed. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      person: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      /** Set if several rows of the run's file are one item, so that its counts are not counts of rows. */
      mergesRows: z.literal(true).exactOptional(),
      plannedBy: z.string().exactOptional(),
      /** The run that this one undoes. */
      undoes: z.string().exactOptional(),
      /** How many objects of the run are groups or targetings. The others are options, or what its tool changes. */
      groups: kindCounts.exactOptional(),
      targetings: kindCounts.exactOptional(),
      how: changeKinds.exactOptional(),
      beganAt: z.number().exactOptional(),
      within: z.string().exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** Whether the run was declined or undone, so that it can be neither continued nor undone. */
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

/** Returns whether a later call may continue a stopped run or ask about its outcome. */
function isUnfinished({ open, status, counts }: z.infer<typeof runSummarySchema>): boolean {
  // An interrupted run may not be planned yet. Unknown outcomes can be asked about without resuming.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/**
 * The statuses of a run. They do not show whether it is executed (the lease does): a killed process leaves `planning`
 * or `running` behind.
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

/** The record of a run, which changes. A new version of it is stored only if the stored version is the previous one. */
export const runRecord = z.object({
  /** Increases by one with each change. 0 for a run that was just created. */
  version: z.number(),
  status: z.enum(STATUSES),
  /** How the run ended before it started. The journal does not contain this. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** Whether the run can never continue, even if some of its objects are not done. */
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

/**
 * Changes a run to the status of `to`, again if another process was faster. Returns undefined if the transition is not
 * allowed. `record`: the current record, if already read. Throws a LeaseLostError.
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
