import { randomUUID } from "node:crypto";
import { link, readFile, readlink, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { addTo } from "../../platform/by-key.ts";
import type { Clock } from "../../platform/clock.ts";
import { hasCode, isCreated, makeFolder, moveIntoPlace, removeFile } from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import type { ProjectLock } from "../backend.ts";
import { HeldLease, type Lease, permitWithoutLease, RECENT_MS } from "../turn.ts";
import { namesInRun, readText, unlessMissing } from "./run-folder.ts";

/** A lease that was not renewed for this many milliseconds can be taken over. */
const TTL_MS = 10_000;

const content = z.object({
  pid: z.number(),
  host: z.string(),
  boot: z.string().optional(),
  /** The Linux namespace of the process ID. Each container has its own. */
  namespace: z.string().optional(),
  /** When the process started, in clock ticks since the machine started. */
  startedAt: z.string().optional(),
  token: z.string(),
  released: z.boolean(),
  /** Whether the previous holder could still send requests when this lease was written. */
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
 * Each holder creates a file with the next number, so only one process can follow a dead holder. The newest file is
 * never removed, because the numbers must not start again.
 *
 * A lease ends when it is released, when its process is known to be gone, or `TTL_MS` after its last renewal. In the
 * last case, the old holder may still send an announced request, so the new holder waits before it sends. The file need
 * not survive a power failure, because that ends all holders.
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
  // Among the older files are those of killed processes that never got the lease.
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

/**
 * Returns whether a lease has ended. `over`: certainly. `silent`: it can be taken over, although its holder may still
 * run.
 */
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
 * Creates the file of a lease. Returns false if it exists. The file appears together with its content, so that other
 * processes can see whether its holder was killed. Without hard links, it is empty for a moment.
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

/**
 * Whether a process still exists. `unlikely`: this machine has no such process, but the process may run in a system
 * that cannot be compared.
 */
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

/** Returns whether a process still exists. Only within the same boot and the same namespace can it be proven gone. */
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
 * Returns when a process started: field 22 of `/proc/PID/stat`. Field 2 is a name with arbitrary characters; the last
 * closing bracket ends it.
 */
async function startOf(pid: number | "self"): Promise<string | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  // A zombie is a process that has ended, but it stays listed until its parent reads its exit status.
  return fields?.[0] === "Z" ? "ended" : fields?.[19];
}

const LOOK_AGAIN_MS = 20;
/** A process changes this file when it wants the lease. */
const ASKED = "write.asked";
const KEEP_MS = 25;

export interface SharedLeases<L extends Lease> {
  take(project: string): Promise<L | undefined>;
  ask(project: string): Promise<void>;
  /** Returns a value that changes when a process asks for the lease. NaN if the value is unknown. */
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
 * Combines a queue in this process with a lease that other processes respect. The lease is held a moment longer than
 * needed, unless another process asks for it.
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
              // Waiting processes get time to take the lease first.
              await clock.sleep(2 * lookAgainMs);
            } else {
              // If the release fails, the lease expires, and another process can take it over.
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

/** Returns when a process last asked for the lease, by the clock of the file system. NaN if that is unknown. */
async function lastAsked(folder: string): Promise<number> {
  try {
    return (await stat(join(folder, ASKED))).mtimeMs;
  } catch (thrown) {
    return hasCode(thrown, "ENOENT") ? 0 : Number.NaN;
  }
}

/** Creates a lock that only works within this process. Callers take turns; the calls of one caller stay in order. */
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

/** Begins the next work, that of the caller who has waited longest. Returns false if no work waits. */
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
