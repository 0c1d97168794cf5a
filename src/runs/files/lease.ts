import { randomUUID } from "node:crypto";
import { link, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { addTo } from "../../platform/by-key.ts";
import type { Clock } from "../../platform/clock.ts";
import { hasCode, isCreated, makeFolder, moveIntoPlace, removeFile, unlessMissing } from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import type { ProjectLock } from "../backend.ts";
import { HeldLease, type Lease, permitWithoutLease, RECENT_MS } from "../turn.ts";
import { namesInRun, readText } from "./run-folder.ts";

/** After this many milliseconds without a renewal, another process can take over the lease. */
const TTL_MS = 10_000;

const content = z.object({
  pid: z.number(),
  host: z.string(),
  boot: z.string().optional(),
  /** The Linux namespace of the process ID. Each container has its own. */
  namespace: z.string().optional(),
  /** When the process started, in clock ticks of the machine. A later process with the same ID has another value. */
  startedAt: z.string().optional(),
  token: z.string(),
  released: z.boolean(),
  /** Whether an earlier holder could still send requests when this lease was taken or released. */
  unsettled: z.boolean().optional(),
});
type LeaseContent = z.infer<typeof content>;

interface Generation {
  readonly number: number;
  readonly content: LeaseContent | undefined;
  readonly beatAt: number;
}

/**
 * Tries to take a lease in a folder. Returns undefined if another process holds the lease or the folder does not exist.
 *
 * Each holder creates a file with the next number, so only one process can succeed the previous holder. The file with
 * the highest number is never removed, because the numbers must not start again.
 *
 * A lease ends when it is released, when its process is gone or seems to be, or `TTL_MS` after its last renewal. If it
 * is not certain that the old holder is gone, it may still send an announced request, so the new holder waits before it
 * sends. The file is not forced to disk, because a power failure ends all holders anyway.
 */
export async function tryLease(folder: string, name: string, clock: Clock): Promise<Lease | undefined> {
  const newest = await newestGeneration(folder, name);
  const end = newest === undefined ? "over" : await endOf(newest, clock.now());
  if (end === "held") return undefined;
  const isTakenOver = end === "silent";
  const number = (newest?.number ?? 0) + 1;
  const file = fileOf(folder, name, number);
  const token = randomUUID();
  const unsettled = isTakenOver || newest?.content?.unsettled === true;
  const mine: LeaseContent = { ...(await ownMark()), token, released: false, ...(unsettled && { unsettled }) };
  if (!(await unlessMissing(createFile(file, mine)))) return undefined;
  const files = await filesOf(folder, name);
  if (newestIn(files, name) !== number) {
    await removeFile(file);
    return undefined;
  }
  // Removes all older files, because a process that was killed while it took the lease leaves its file behind.
  const older = files.filter((other) => Number.parseInt(other.slice(prefixOf(name).length), 10) < number);
  await Promise.all(older.map((other) => removeFile(join(folder, other))));
  return new FileLease(name, { folder, number, file, mine }, isTakenOver, clock);
}

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

  /** A failed write is ignored. If writes keep failing, another process takes over the lease. */
  protected async renewed(): Promise<boolean> {
    const at = new Date();
    await utimes(this.#of.file, at, at).catch(() => undefined);
    return this.stillHeld();
  }

  async stillHeld(): Promise<boolean> {
    const { folder, number, file, mine } = this.#of;
    const [files, text] = await Promise.all([filesOf(folder, this.name), readText(file)]);
    return newestIn(files, this.name) === number && text !== undefined && parseContent(text)?.token === mine.token;
  }

  protected async giveBack(unsettled: boolean): Promise<void> {
    await unlessMissing(replaceFile(this.#of.file, { ...this.#of.mine, released: true, unsettled }));
  }
}

export async function isLeased(folder: string, name: string, now: () => number): Promise<boolean> {
  const newest = await newestGeneration(folder, name);
  return newest !== undefined && (await endOf(newest, now())) === "held";
}

/** Returns whether a lease has ended. `silent`: another process may take it, although the holder may still run. */
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
  const found = await unlessMissing(Promise.all([readText(file), stat(file)]));
  if (found === undefined) return newestGeneration(folder, name);
  const [text = "", { mtimeMs }] = found;
  return { number, content: parseContent(text), beatAt: mtimeMs };
}

/** Returns the highest number of a lease's files. Numbers begin at 1; 0 means that there is no file. */
function newestIn(files: readonly string[], name: string): number {
  const numbers = files.map((file) => Number(file.slice(prefixOf(name).length)));
  return Math.max(0, ...numbers.filter(Number.isSafeInteger));
}

async function filesOf(folder: string, name: string): Promise<readonly string[]> {
  return (await namesInRun(folder)).filter((file) => file.startsWith(prefixOf(name)));
}

function prefixOf(name: string): string {
  return `${name}.lease.`;
}

function fileOf(folder: string, name: string, number: number): string {
  return join(folder, `${prefixOf(name)}${number}`);
}

function parseContent(text: string): LeaseContent | undefined {
  return content.safeParse(parseJson(text)).data;
}

/**
 * Creates the file of a lease. Returns false if it exists. The content is in the file as soon as the file exists, so
 * that other processes can check whether its holder was killed. On file systems without hard links, the file is empty
 * for a moment.
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

type ProcessMark = Omit<LeaseContent, "token" | "released" | "unsettled">;

/** Whether a process exists. `unlikely`: no process has its ID, but without `/proc`, it may be on another machine. */
type Presence = "gone" | "unlikely" | "perhaps";

let own: Promise<ProcessMark> | undefined;

export function ownMark(): Promise<ProcessMark> {
  own ??= readOwnMark();
  return own;
}

async function readOwnMark(): Promise<ProcessMark> {
  const [boot, namespace, startedAt] = await Promise.all([
    readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => undefined),
    readlink("/proc/self/ns/pid").catch(() => undefined),
    startOf("self"),
  ]);
  return { pid: process.pid, host: hostname(), boot: boot?.trim(), namespace, startedAt };
}

/** Returns whether a process still exists. `gone` is only certain for a process of the same boot and namespace. */
async function presenceOf(mark: ProcessMark): Promise<Presence> {
  const mine = await ownMark();
  if (mine.boot === undefined && mark.boot === undefined) {
    return mark.host === mine.host && !isThere(mark.pid) ? "unlikely" : "perhaps";
  }
  const isComparable = mark.boot === mine.boot && mark.namespace !== undefined && mark.namespace === mine.namespace;
  if (!isComparable || mark.startedAt === undefined) return "perhaps";
  if (mark.pid === mine.pid) return mark.startedAt === mine.startedAt ? "perhaps" : "gone";
  if (!isThere(mark.pid)) return "gone";
  const startedAt = await startOf(mark.pid);
  return startedAt === undefined || startedAt === mark.startedAt ? "perhaps" : "gone";
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "EPERM";
  }
}

/**
 * Returns when a process started: field 22 of `/proc/PID/stat`. Field 2 is a name in brackets, which can contain any
 * characters, so the other fields are counted from the last closing bracket.
 */
async function startOf(pid: number | "self"): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended, but stays listed until its parent process has read its exit status.
  return fields?.[0] === "Z" ? "ended" : fields?.[19];
}

const LOOK_AGAIN_MS = 20;
/** A process that wants the lease writes to this file, so that the holder releases the lease earlier. */
const ASKED = "write.asked";
const KEEP_MS = 25;

export interface SharedLeases<L extends Lease> {
  take(project: string): Promise<L | undefined>;
  ask(project: string): Promise<void>;
  /** Returns a value that changes whenever a process asks for the lease. NaN if that is unknown. */
  asked(project: string, lease: L): Promise<number>;
}

export function machineLock(folder: (project: string) => string, clock: Clock): ProjectLock {
  return sharedLock(
    {
      take: async (project) => {
        await makeFolder(folder(project));
        return tryLease(folder(project), "write", clock);
      },
      ask: (project) => writeFile(join(folder(project), ASKED), `${randomUUID()}\n`, { mode: 0o600 }),
      asked: (project) => lastAsked(folder(project)),
    },
    clock,
    LOOK_AGAIN_MS,
  );
}

/**
 * Combines a queue for the callers in this process with a lease that excludes other processes. The lease is kept for
 * `KEEP_MS` after the work, in case more work follows, unless another process has already asked for it.
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
            return await work(lease);
          } finally {
            if (lease.lost.aborted) kept.delete(project);
            else if ((await leases.asked(project, lease)) !== mine.lastAsked) {
              await giveBack(project);
              // Without this pause, this process could take the lease again before the process that asked for it.
              await clock.sleep(2 * lookAgainMs);
            } else {
              // A failed release is ignored: the lease expires, and another process can take it over.
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
  readonly lastAsked: number;
  readonly timer?: NodeJS.Timeout;
}

const NEVER = new AbortController().signal;

async function isStillHeld(lease: Lease): Promise<boolean> {
  try {
    await lease.check(RECENT_MS);
    return true;
  } catch {
    await lease.release().catch(() => undefined);
    return false;
  }
}

/** Returns when the lease was last asked for, by the clock of the file system. 0 if never; NaN if unknown. */
async function lastAsked(folder: string): Promise<number> {
  try {
    return (await stat(join(folder, ASKED))).mtimeMs;
  } catch (thrown) {
    return hasCode(thrown, "ENOENT") ? 0 : Number.NaN;
  }
}

/** Creates a lock that works only within this process. Callers take turns; the calls of one caller keep their order. */
export function processLock(clock: Clock): ProjectLock {
  const turn = permitWithoutLease(clock);
  const queues = new Map<string, Queue>();
  return {
    async hold(project, work, signal, caller = "") {
      const queue = queues.get(project) ?? { waiting: new Map(), served: new Map(), turns: 0 };
      if (queues.has(project)) await waitForTurn(queue, caller, signal);
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
  readonly waiting: Map<string, (() => void)[]>;
  readonly served: Map<string, number>;
  turns: number;
}

/** Begins the next waiting work: that of the caller whose last turn is longest ago. Returns false if nothing waits. */
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

function waitForTurn({ waiting }: Queue, caller: string, signal: AbortSignal): Promise<void> {
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
    addTo(waiting, caller, begin);
  });
}
