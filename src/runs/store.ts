import * as z from "zod";
import { FileError, type Pieces } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { stopEntry } from "./outcome.ts";
import type { RetentionWatch } from "./retention-clock.ts";
import type { Intent, Lease, Turn } from "./turn.ts";

/** Runs cannot be stored or read. The message is the problem, and `remedy` says how to fix it. */
export class RunStoreError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The store has lost entries that it had confirmed, so the journal does not show everything that was applied. */
export class LostEntriesError extends RunStoreError {}

/** The stored data of a run is damaged. So it is unknown what the run has sent or changed. */
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

/** The store cannot be reached now. The current call has sent nothing. */
export class StoreUnavailableError extends RunStoreError {}

/** What is stored of a run before it starts. The code for the run's kind has parsed the call. */
export interface RunHeader<Call = unknown> extends Readonly<Omit<z.infer<typeof runHeaderSchema>, "version" | "call">> {
  readonly call: Call;
}

export interface RunSummary extends Readonly<z.infer<typeof runSummarySchema>> {}

export interface RunJournal {
  /** Adds an entry. It is on disk after `flush` has resolved. */
  append(line: Line): void;
  /** Resolves when all added entries are on disk and the lease is still held. Otherwise throws a LeaseLostError. */
  flush(): Promise<void>;
  /** Flushes the journal and renews both leases. A request may be sent only while the returned readings are fresh. */
  intend(turn: Turn): Promise<Intent>;
  /** Writes the entries to disk. If that fails, the next `flush` throws. Throws if the call must be answered now. */
  write(): Promise<void>;
  /** Appends an entry about a request that was sent too late, for the process that has taken over the run. */
  appendLate(line: Line): Promise<void>;
  /** Closes the journal. Writes the remaining entries first if the lease is still held. */
  close(): Promise<void>;
}

export interface Revision {
  readonly text: string;
  readonly bytes: number;
}

/** A stored run. The code for its kind has parsed the call, and parses the entries each time they are read. */
export interface StoredRun<Call = unknown, Entry = string> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
  readonly proposed: AsyncIterable<Entry>;
  readonly entries: AsyncIterable<Entry>;
}

/**
 * What is stored of a run besides its journal. `input`: the file of the call. `sheet`: the sheet of a plan. `proposed`:
 * the plan that waits for approval. `removed`: the removed Context IDs and options. `former`: the previous values.
 * `rejects`: the failed rows of the file.
 */
export type RunPart = "input" | "sheet" | "proposed" | "removed" | "former" | "rejects";

/** Selects a caller's runs (older than `before`), runs that may be unfinished, or the last run of a fingerprint. */
export type RunQuery =
  | { readonly caller: string; readonly before?: string }
  | { readonly unfinished: Unfinished }
  | { readonly lastOf: string };

/** Selects runs that may be unfinished. `callerName` selects all callers with this name, whatever their keys are. */
export type Unfinished =
  | "all"
  | { readonly fingerprint: string }
  | { readonly callerName: string }
  | Pick<RunHeader, "caller" | "project" | "environment">;

export interface RunStore {
  create(header: RunHeader): Promise<void>;
  /** Replaces a record. False if the stored version is not the one before `record.version`. Throws a LeaseLostError. */
  update(runId: string, record: RunRecord, lease?: Lease): Promise<boolean>;
  /** Returns the record of a run, which also says whether the stored data is damaged. Undefined if there is no run. */
  record(runId: string): Promise<RunRecord | undefined>;
  read(runId: string): Promise<StoredRun | undefined>;
  revision(runId: string): Promise<Revision | undefined>;
  /**
   * Returns the IDs of runs, the newest first. For a caller, this is one page; an empty page is the end. Runs that may
   * be unfinished can include finished ones. The number of stored runs hardly matters for the time it takes.
   */
  list(query: RunQuery): Promise<readonly string[]>;
  /**
   * Takes the lease of a run. Undefined while another process holds it. Later entries of the previous holder have no
   * effect.
   */
  lease(runId: string): Promise<Lease | undefined>;
  isDriven(runId: string): Promise<boolean>;
  journal(runId: string, lease: Lease): Promise<RunJournal>;
  discard(runId: string): Promise<void>;
  /** Calls the listener when another process may have changed the run. Absent if processes do not notify each other. */
  watch?: Watch;
  /** Runs `work`. Meanwhile, no other process runs its `work` for the same call. */
  withCallLock<T>(fingerprint: string, work: () => Promise<T>): Promise<T>;
  readonly parts: PartStore;
  readonly stops: StopStore;
  readonly sizes: SizeStore;
  readonly retention: RetentionStore;
  /** The runs of ended processes. Absent if such runs wait for a call that resumes them. */
  readonly left?: OrphanedRuns;
}

/** Calls the listener until the returned function is called. Each call is only a hint, and calls may be missing. */
type Watch = (runId: string, listener: () => void) => () => void;

interface PartStore {
  keep(runId: string, part: RunPart, pieces: Pieces): Promise<void>;
  read(runId: string, part: RunPart): ByteSource;
}

export interface StopStore {
  ask(runId: string): Promise<void>;
  /** Returns the names of the requests to stop a run. Withdrawn requests are left out. */
  asked(runId: string): Promise<readonly string[]>;
  forget(runId: string, asked: readonly string[]): Promise<void>;
  /** Calls the listener when a stop is requested. Absent if processes do not notify each other. */
  watch?: Watch;
}

interface SizeStore {
  of(runIds: readonly string[]): Promise<number>;
  /** Throws a ShareFullError if this many more bytes would exceed the caller's share. Absent if there are no shares. */
  checkRoom?(caller: string, bytes: number): Promise<void>;
}

interface RetentionStore extends RetentionWatch {
  /** Removes the runs that are too old, or too many, to be kept longer. */
  tidy(): Promise<void>;
}

/** Runs whose processes have ended. Workers continue them, so they count as executed while a worker is alive. */
export interface OrphanedRuns {
  /**
   * Records until the returned function is called that this process executes a run of a project. Returns undefined if
   * the process must leave the run to others once its plan is stored: it is not a worker, or it already executes runs
   * of the maximum number of projects.
   */
  drives(project: string): (() => void) | undefined;
  hasWorker(project: string): Promise<boolean>;
  hasRoomFor(project: string): boolean;
  /** Leaves a run to other processes. The lease of the run must be released before. */
  leave(runId: string): Promise<void>;
  /**
   * Announces that this process claims orphaned runs. Calls `wake` when a run was left to others, or when this process
   * can take another project.
   */
  startClaiming(projects: readonly string[], wake: () => void): Promise<void>;
  /** Returns orphaned runs. Callers with the fewest projects in execution come first, then the oldest runs. */
  found(projects: readonly string[], most: number, except?: readonly string[]): Promise<readonly OrphanedRun[]>;
  /** Announces the runs that this process must not execute, so that other processes do not wait for it. */
  refuses(runIds: readonly string[]): Promise<void>;
}

export type OrphanedRun = Pick<RunHeader, "runId" | "project">;

/** Returns the name of a caller: the stored owner of a run without the digest of the keys. */
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

/** Returns whether an error says that a run has a newer format, is damaged, or is being removed. */
export function isUnreadable(thrown: unknown): boolean {
  return (thrown instanceof RunStoreError && !(thrown instanceof StoreUnavailableError)) || thrown instanceof FileError;
}

/** Returns the result of a read, or undefined if the run cannot be read. Throws if the store cannot be reached. */
export function undefinedIfUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  return undefinedIf(isUnreadable, reading);
}

/** Only the call of a run is stored, because its process ended early. Nothing was sent to the service. */
export class NothingStoredError extends RunStoreError {}

export function undefinedIfNothingStored<T>(taking: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => thrown instanceof NothingStoredError, taking);
}

const CALL_GROUPS = 64;

/** Returns the group of a call. The calls of one group are handled one after another. */
export function callGroupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % CALL_GROUPS);
}

/** A journal entry in pieces: JSON without line breaks. */
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

/** Returns the lines of a text. A last line without a line break is incomplete and is left out. */
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

/** The version of the format of headers and journals. Runs with a newer version are not touched. */
export const VERSION = 1;

export const runHeaderSchema = z.object({
  version: z.number(),
  runId: z.string(),
  kind: z.string(),
  call: z.unknown(),
  /** The project of the API key. A write lock belongs to a project. */
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that the run changes, or `embedded` for a sandbox inside its process. */
  sandbox: z.string().exactOptional(),
  createdAt: z.number(),
  /** A hash that is equal for identical calls of the same caller. */
  fingerprint: z.string(),
  /** Set if the call was answered before the run was planned. The caller has then not seen an approval request yet. */
  unplanned: z.literal(true).exactOptional(),
  /** The name that the caller's client gives itself (not verified). Like `fileName`, it shows where the run is from. */
  client: z.string().exactOptional(),
  person: z.string().exactOptional(),
  fileName: z.string().exactOptional(),
  /** Set for a dry run, a plan for `apply_plan`. It is removed after a day, or earlier for a newer one. */
  dryRun: z.literal(true).exactOptional(),
  repeats: z.string().exactOptional(),
});

const kindCounts = z.object({ items: z.number(), created: z.number(), changed: z.number(), deleted: z.number() });

/** How many existing objects a run changed, by kind of change. One object can count several times. */
const changeKinds = z.object({
  renamed: z.number(),
  moved: z.number(),
  /** The name of the only group into which objects were moved. Null for the top level. Absent if there are several. */
  into: z.string().nullable().exactOptional(),
  /** The number of groups that now show or hide their sub-options. */
  exposed: z.number(),
  /** How many options got or lost Context IDs, and how many Context IDs these are. */
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
      /** Only if the run has one object: its name, and its new name if it was renamed. */
      only: z.string().exactOptional(),
      to: z.string().exactOptional(),
      client: z.string().exactOptional(),
      person: z.string().exactOptional(),
      fileName: z.string().exactOptional(),
      /** Set if several rows of the file can be one item, so that the counts are not counts of rows. */
      mergesRows: z.literal(true).exactOptional(),
      plannedBy: z.string().exactOptional(),
      undoes: z.string().exactOptional(),
      /** When the run ended, if it was undone later. Otherwise it ended at `updatedAt`. */
      endedAt: z.number().exactOptional(),
      /** How many objects are groups or targetings. The others are options, or what the tool changes. */
      groups: kindCounts.exactOptional(),
      targetings: kindCounts.exactOptional(),
      how: changeKinds.exactOptional(),
      /** The present names of the first objects that were created, changed and deleted. */
      names: z.object({ created: firstNames, changed: firstNames, deleted: firstNames }).exactOptional(),
      beganAt: z.number().exactOptional(),
      within: z.string().exactOptional(),
      decided: z.object({ is: z.enum(["approved", "declined"]), who: z.string(), where: z.string() }).exactOptional(),
      /** Set if the run was declined or undone. It can then be neither continued nor undone. */
      isOver: z.literal(true).exactOptional(),
    })
    .exactOptional(),
  /** The length of the journal in bytes. If the journal is shorter, it is damaged. */
  journalBytes: z.number().exactOptional(),
  /** Set when the stored data is found to be damaged. Never stored. */
  isDamaged: z.literal(true).exactOptional(),
});

export function parseRunHeader(value: unknown) {
  const { data } = runHeaderSchema.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

/** Returns whether a text can be the ID of a run. Only such texts are used in paths, so no path leaves the folder. */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** Returns whether a later call may continue a stopped run or ask about its outcome. */
function isUnfinished({ open, status, counts }: z.infer<typeof runSummarySchema>): boolean {
  // An interrupted run may not be planned yet. Unknown outcomes can be asked about without resuming the run.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/**
 * The statuses of a run. They do not show whether a process executes it: a killed process leaves `planning` or
 * `running` behind. Only the lease shows it.
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

/** The changing part of a run. A new version is stored only if the stored version is the previous one. */
export const runRecord = z.object({
  version: z.number(),
  status: z.enum(STATUSES),
  /** How the run ended before it started. The journal does not say this. */
  ending: stopEntry.omit({ t: true }).exactOptional(),
  /** Set if the run can never continue, even if some of its objects are not done. */
  isFinal: z.literal(true).exactOptional(),
  rest: runSummarySchema.exactOptional(),
});
export interface RunRecord extends Readonly<z.infer<typeof runRecord>> {}

export const CREATED: RunRecord = { version: 0, status: "planning" };

const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  planning: ["planned", "waiting", "running", "interrupted", "finished", "cancelled"],
  // A plan that is made again stays `planned`. A `waiting` run becomes `planned` if another channel asks for approval.
  planned: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  waiting: ["planned", "waiting", "running", "interrupted", "finished", "cancelled", "declined", "expired"],
  // A process that claims a run writes a new version first, so that the previous process can no longer write.
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
 * Changes the status of a run. Tries again if another process was faster. Undefined if the new status is not allowed.
 * `record` is the current record, if already read. Throws a LeaseLostError.
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
