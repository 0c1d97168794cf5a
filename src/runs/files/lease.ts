import { randomUUID } from "node:crypto";
import { link, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import type { Clock } from "../../platform/clock.ts";
import { isCreated, makeFolder } from "../../platform/durable-files.ts";
import { hasCode, moveIntoPlace, removeFile } from "../../platform/files.ts";
import type { ProjectLock } from "../backend.ts";
import { HeldLease, type Lease, RECENT_MS, soleTurn } from "../turn.ts";
import { namesIn, readText, unlessMissing } from "./run-folder.ts";

/** How long after the last renewal another process may take over, in milliseconds. */
const TTL_MS = 10_000;

const content = z.object({
  pid: z.number(),
  host: z.string(),
  boot: z.string().optional(),
  namespace: z.string().optional(),
  startedAt: z.string().optional(),
  /** Identifies this one holding of the lease. */
  token: z.string(),
  released: z.boolean(),
  /** A request of the holder before might still have left when this was written. */
  unsettled: z.boolean().optional(),
});
type LeaseContent = z.infer<typeof content>;

interface Generation {
  readonly number: number;
  /** Undefined while its holder is still writing it, or when it is damaged. */
  readonly content: LeaseContent | undefined;
  readonly beatAt: number;
}

/**
 * Tries to take a lease that is kept in a folder; undefined while another process holds it. A lease is a file whose
 * name ends in a growing number: the process that creates the next number holds it, and creating is atomic, so that a
 * dead holder is followed by exactly one. The newest file stays when the lease is given back, so that numbers never
 * start again. A lease ends when it is given back, when its process is known to be gone, or when it has shown no life
 * for ten seconds. Only in the last case may its holder still be there, and send what it has announced: then the new
 * one waits before it sends anything. The file need not outlive a power failure, which ends all holders on the machine
 * with it.
 */
export async function tryLease(folder: string, name: string, clock: Clock): Promise<Lease | undefined> {
  const newest = await newestGeneration(folder, name);
  if (newest === undefined) await makeFolder(folder);
  const end = newest === undefined ? "over" : await endOf(newest, clock.now());
  if (end === "held") return undefined;
  const isTakenOver = end === "silent";
  const number = (newest?.number ?? 0) + 1;
  const file = fileOf(folder, name, number);
  const token = randomUUID();
  const unsettled = isTakenOver || newest?.content?.unsettled === true;
  const mine: LeaseContent = { ...(await ownMark()), token, released: false, ...(unsettled && { unsettled }) };
  if (!(await createFile(file, mine))) return undefined;
  const files = await filesOf(folder, name);
  if (newestIn(files, name) !== number) {
    // Another process was faster by more than one number: this file was made too late to count.
    await removeFile(file);
    return undefined;
  }
  // Those that were killed may have left files that never became a lease, too.
  const older = files.filter((other) => Number.parseInt(other.slice(prefixOf(name).length), 10) < number);
  await Promise.all(older.map((other) => removeFile(join(folder, other))));
  return new FileLease(name, { folder, number, file, mine }, isTakenOver, clock);
}

/** Where a lease that was just taken is kept. */
interface Taken {
  readonly folder: string;
  readonly number: number;
  readonly file: string;
  readonly mine: LeaseContent;
}

class FileLease extends HeldLease {
  readonly #of: Taken;

  constructor(name: string, of: Taken, isTakenOver: boolean, clock: Clock) {
    super({ name, epoch: BigInt(of.number), isTakenOver, isUnsettled: of.mine.unsettled === true }, clock);
    this.#of = of;
  }

  /** Where the renewal cannot be written, other processes take the lease over. */
  protected async renewed(): Promise<boolean> {
    const at = new Date();
    await utimes(this.#of.file, at, at).catch(() => undefined);
    return this.stillHeld();
  }

  /** No later number exists, and the file has the token of this holding. */
  async stillHeld(): Promise<boolean> {
    const { folder, number, file, mine } = this.#of;
    const [files, text] = await Promise.all([filesOf(folder, this.name), readText(file)]);
    return newestIn(files, this.name) === number && text !== undefined && parseContent(text)?.token === mine.token;
  }

  protected async giveBack(unsettled: boolean): Promise<void> {
    // There is nothing to give back of a run that was removed.
    await unlessMissing(replaceFile(this.#of.file, { ...this.#of.mine, released: true, unsettled }));
  }
}

/** Whether a process holds a lease now. */
export async function isLeased(folder: string, name: string, now: () => number): Promise<boolean> {
  const newest = await newestGeneration(folder, name);
  return newest !== undefined && (await endOf(newest, now())) === "held";
}

/** Whether a lease has ended: it is surely `over`, or its holder is `silent`, and may still be there. */
async function endOf({ content: held, beatAt }: Generation, now: number): Promise<"held" | "over" | "silent"> {
  if (held?.released) return "over";
  const presence = held === undefined ? "perhaps" : await presenceOf(held);
  if (presence === "gone") return "over";
  return presence === "unlikely" || now - beatAt > TTL_MS ? "silent" : "held";
}

async function newestGeneration(folder: string, name: string): Promise<Generation | undefined> {
  const number = newestIn(await filesOf(folder, name), name);
  if (number === 0) return undefined;
  const file = fileOf(folder, name, number);
  const found = await unlessMissing(Promise.all([readFile(file, "utf8"), stat(file)]));
  // Removed meanwhile by the holder of a newer number: look again.
  if (found === undefined) return newestGeneration(folder, name);
  const [text, { mtimeMs }] = found;
  return { number, content: parseContent(text), beatAt: mtimeMs };
}

/** The greatest number among the files of a lease, which count from 1 on; 0 where there is none. */
function newestIn(files: readonly string[], name: string): number {
  const numbers = files.map((file) => Number(file.slice(prefixOf(name).length)));
  return Math.max(0, ...numbers.filter(Number.isSafeInteger));
}

/** The files of a lease; none where there is no folder. */
async function filesOf(folder: string, name: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter((file) => file.startsWith(prefixOf(name)));
}

function prefixOf(name: string): string {
  return `${name}.lease.`;
}

function fileOf(folder: string, name: string, number: number): string {
  return join(folder, `${prefixOf(name)}${number}`);
}

function parseContent(text: string): LeaseContent | undefined {
  try {
    return content.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/**
 * Creates a file; false when another process has created it. It appears with its content, so that a holder
 * that is killed at any moment is known to be dead. Where the file system has no links, it is empty for a moment: a
 * process that dies in it counts as alive until its lease expires.
 */
async function createFile(file: string, value: LeaseContent): Promise<boolean> {
  const fresh = `${file}-${value.token}`;
  const text = JSON.stringify(value);
  await writeFile(fresh, text, { mode: 0o600 });
  try {
    return await isCreated(link(fresh, file)).catch(() =>
      isCreated(writeFile(file, text, { flag: "wx", mode: 0o600 })),
    );
  } finally {
    await removeFile(fresh);
  }
}

async function replaceFile(file: string, value: LeaseContent): Promise<void> {
  const fresh = `${file}-${value.token}`;
  await writeFile(fresh, JSON.stringify(value), { mode: 0o600 });
  await moveIntoPlace(fresh, file);
}

/** Identifies a process, as far as the system allows. */
interface ProcessMark {
  readonly pid: number;
  readonly host: string;
  /** The ID of the last start of its machine. */
  readonly boot?: string | undefined;
  /** The namespace of its process number: each container has its own. */
  readonly namespace?: string | undefined;
  /** When it started, in clock ticks of its machine. */
  readonly startedAt?: string | undefined;
}

/** `unlikely`: there is no process of this number here, which proves nothing where the systems cannot be compared. */
type Presence = "gone" | "unlikely" | "perhaps";

let own: Promise<ProcessMark> | undefined;

/** The mark of this process. */
export function ownMark(): Promise<ProcessMark> {
  own ??= readOwnMark();
  return own;
}

async function readOwnMark(): Promise<ProcessMark> {
  const [boot, namespace, startedAt] = await Promise.all([
    orUndefined(readFile("/proc/sys/kernel/random/boot_id", "utf8")),
    orUndefined(readlink("/proc/self/ns/pid")),
    startOf("self"),
  ]);
  return { pid: process.pid, host: hostname(), boot: boot?.trim(), namespace, startedAt };
}

/**
 * Whether a process is known to be gone. That can only be known of a process with the same boot of this machine and the
 * same namespace of process numbers. Where the system tells neither, a missing number makes it unlikely to be running.
 */
async function presenceOf(mark: ProcessMark): Promise<Presence> {
  const mine = await ownMark();
  if (mine.boot === undefined && mark.boot === undefined) {
    return mark.host === mine.host && !isThere(mark.pid) ? "unlikely" : "perhaps";
  }
  const isComparable = mark.boot === mine.boot && mark.namespace !== undefined && mark.namespace === mine.namespace;
  if (!isComparable || mark.startedAt === undefined) return "perhaps";
  if (mark.pid === mine.pid) return mark.startedAt === mine.startedAt ? "perhaps" : "gone";
  // A number without a process means that it is gone; another start time means another process.
  if (!isThere(mark.pid)) return "gone";
  const startedAt = await startOf(mark.pid);
  return startedAt === undefined || startedAt === mark.startedAt ? "perhaps" : "gone";
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    // Without the right to signal it, the process is there all the same.
    return thrown instanceof Error && "code" in thrown && thrown.code === "EPERM";
  }
}

/** The 22nd field of a process's line: its name, which comes second, is in brackets and may hold anything. */
async function startOf(pid: number | "self"): Promise<string | undefined> {
  const line = await orUndefined(readFile(`/proc/${pid}/stat`, "utf8"));
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  // A zombie: it has ended, and its parent has not read its exit status yet.
  return fields?.[0] === "Z" ? "ended" : fields?.[19];
}

async function orUndefined<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch {
    return undefined;
  }
}

/** How often a process that waits for another one looks again, in milliseconds. */
const LOOK_AGAIN_MS = 20;
/** The file by which it asks for the lease. */
const ASKED = "write.asked";
/** How long a lease is kept for the next request. */
const KEEP_MS = 25;

/** The leases that processes share, one for each project. */
export interface SharedLeases<L extends Lease> {
  /** Tries to take the lease; undefined while another process holds it. */
  take(project: string): Promise<L | undefined>;
  /** Asks the process that holds it to give it back between two requests. */
  ask(project: string): Promise<void>;
  /** A mark that changes whenever a process asks for it; not a number where that cannot be told. */
  asked(project: string, lease: L): Promise<number>;
}

/** The write lock between the processes of this machine, by leases kept below `folder`. */
export function machineLock(folder: (project: string) => string, clock: Clock): ProjectLock {
  return sharedLock(
    {
      take: (project) => tryLease(folder(project), "write", clock),
      ask: (project) => writeFile(join(folder(project), ASKED), `${randomUUID()}\n`, { mode: 0o600 }),
      asked: (project) => lastAsked(folder(project)),
    },
    clock,
    LOOK_AGAIN_MS,
  );
}

/**
 * A queue within this process, and a lease between processes. The lease stays from one request to the next, unless
 * another process asks for it: then they take turns.
 */
export function sharedLock<L extends Lease>(leases: SharedLeases<L>, clock: Clock, lookAgainMs: number): ProjectLock {
  const queue = processLock(clock);
  const kept = new Map<string, KeptLease<L>>();
  const giveBack = async (project: string): Promise<void> => {
    const { lease } = kept.get(project) ?? {};
    kept.delete(project);
    await lease?.release();
  };
  const waitedFor = async (project: string, signal: AbortSignal): Promise<L> => {
    for (;;) {
      const lease = await leases.take(project);
      if (lease !== undefined) return lease;
      await leases.ask(project);
      await clock.sleep(lookAgainMs, signal);
    }
  };
  const taken = async (project: string, signal: AbortSignal): Promise<KeptLease<L>> => {
    const before = kept.get(project);
    clearTimeout(before?.timer);
    kept.delete(project);
    if (before !== undefined && (await isStillHeld(before.lease))) return before;
    const lease = await waitedFor(project, signal);
    return { lease, lastAsked: await leases.asked(project, lease) };
  };
  return {
    hold: (project, work, signal, caller) =>
      queue.hold(
        project,
        async () => {
          const mine = await taken(project, signal);
          const { lease } = mine;
          kept.set(project, mine);
          try {
            await lease.settled(signal);
            return await work(lease);
          } finally {
            if (lease.lost.aborted) kept.delete(project);
            else if ((await leases.asked(project, lease)) !== mine.lastAsked) {
              await giveBack(project);
              // So that waiting processes notice before it is taken again.
              await clock.sleep(2 * lookAgainMs);
            } else {
              // A lease that cannot be given back expires, and another process takes it over.
              const later = (): void => void queue.hold(project, () => giveBack(project), NEVER).catch(() => undefined);
              kept.set(project, { ...mine, timer: setTimeout(later, KEEP_MS) });
            }
          }
        },
        signal,
        caller,
      ),
  };
}

interface KeptLease<L> {
  readonly lease: L;
  /** The time of the last request of another process for the lease, as it was when the lease was taken. */
  readonly lastAsked: number;
  readonly timer?: NodeJS.Timeout;
}

const NEVER = new AbortController().signal;

/** Whether a lease that was kept is still held. Where the check fails, the lease is given back if possible. */
async function isStillHeld(lease: Lease): Promise<boolean> {
  try {
    await lease.check(RECENT_MS);
    return true;
  } catch {
    await lease.release().catch(() => undefined);
    return false;
  }
}

/**
 * When a process asked last for a lease that another one holds, by the clock of the file system; NaN where that is
 * unknown.
 */
async function lastAsked(folder: string): Promise<number> {
  try {
    return (await stat(join(folder, ASKED))).mtimeMs;
  } catch (thrown) {
    return hasCode(thrown, "ENOENT") ? 0 : Number.NaN;
  }
}

/** A queue within this process, which shares nothing with others: callers in turn, and each one's work as it came. */
export function processLock(clock: Clock): ProjectLock {
  const turn = soleTurn(clock);
  const queues = new Map<string, Queue>();
  return {
    async hold(project, work, signal, caller = "") {
      const queue = queues.get(project) ?? { waiting: new Map(), served: new Map(), turns: 0 };
      if (queues.has(project)) await myTurn(queue, caller, signal);
      else {
        signal.throwIfAborted();
        queues.set(project, queue);
      }
      queue.turns += 1;
      queue.served.set(caller, queue.turns);
      try {
        return await work(turn);
      } finally {
        if (!beginNext(queue)) queues.delete(project);
      }
    },
  };
}

interface Queue {
  readonly waiting: Map<string, readonly (() => void)[]>;
  readonly served: Map<string, number>;
  turns: number;
}

/** Lets the first one begin of the caller whose last turn is longest ago; false where none waits. */
function beginNext({ waiting, served }: Queue): boolean {
  const lastTurn = (one: string): number => served.get(one) ?? 0;
  const [caller] = [...waiting.keys()].sort((one, other) => lastTurn(one) - lastTurn(other));
  if (caller === undefined) return false;
  const [begin, ...others] = waiting.get(caller) ?? [];
  waiting.delete(caller);
  if (others.length > 0) waiting.set(caller, others);
  begin?.();
  return true;
}

/** Resolves when it is one's turn; rejects with the signal's reason as soon as it is aborted. */
function myTurn({ waiting }: Queue, caller: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const begin = (): void => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      const others = (waiting.get(caller) ?? []).filter((one) => one !== begin);
      if (others.length > 0) waiting.set(caller, others);
      else waiting.delete(caller);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.set(caller, [...(waiting.get(caller) ?? []), begin]);
  });
}
