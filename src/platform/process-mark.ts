import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

/** Identifies a process, as far as the system allows. */
export interface ProcessMark {
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
export type Presence = "gone" | "unlikely" | "perhaps";

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
export async function presenceOf(mark: ProcessMark): Promise<Presence> {
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
