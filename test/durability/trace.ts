import { dirname } from "node:path";

/** The state of the disk when a request was sent to the service. */
interface Sending {
  /** The first line of the request. */
  readonly request: string;
  /** The files and folders whose content or name a power failure at this moment would have lost. */
  readonly unsynced: readonly string[];
}

/** A system call, at the line where it started (if it sends bytes) or ended (all others). */
interface Call {
  readonly name: string;
  readonly args: string;
  readonly result: string;
}

/**
 * Reads a record of `strace -f -y`, for a disk that keeps only what was synced. Returns the requests in order, and what
 * was not synced when the process ended. Considers only names below `folder` for which `counts` returns true.
 */
export function readTrace(text: string, folder: string, counts: (path: string) => boolean) {
  const unsyncedNames = new Set<string>();
  const unsyncedContents = new Set<string>();
  const sendings: Sending[] = [];
  const isOurs = (path: string): boolean => path.startsWith(folder);
  const unsynced = (): readonly string[] => [...new Set([...unsyncedNames, ...unsyncedContents])].filter(counts).sort();
  const there = new Set<string>();
  const made = (path: string): void => {
    if (isOurs(path) && !there.has(path)) unsyncedNames.add(path);
    there.add(path);
  };
  const gone = (path: string): void => {
    there.delete(path);
    unsyncedNames.delete(path);
    unsyncedContents.delete(path);
  };
  for (const { name, args, result } of callsIn(text)) {
    const paths = [...args.matchAll(/"([^"]*)"/g)].map(([, path = ""]) => path);
    const [, opened = ""] = /^\d+<([^>]*)>/.exec(args) ?? [];
    const [first = "", second = ""] = paths;
    if (/^\s*-1/.test(result)) continue;
    if (name === "mkdir") made(first);
    else if (name === "openat" && args.includes("O_CREAT")) made(first);
    else if (name === "link") made(second);
    else if (name === "rename") {
      // The content moves with the name.
      if (unsyncedContents.has(first)) unsyncedContents.add(second);
      gone(first);
      there.delete(second);
      made(second);
    } else if (name === "unlink") gone(first);
    else if (name === "fsync" || name === "fdatasync") {
      unsyncedContents.delete(opened);
      if (name === "fsync") for (const path of unsyncedNames) if (dirname(path) === opened) unsyncedNames.delete(path);
    } else if (isOurs(opened)) unsyncedContents.add(opened);
    else {
      const request = /(POST|PUT|PATCH|DELETE) (\/\S*)/.exec(args);
      if (opened.startsWith("socket") && request) {
        sendings.push({ request: `${request[1]} ${request[2]}`, unsynced: unsynced() });
      }
    }
  }
  return { sendings, unsyncedAtEnd: unsynced() };
}

/**
 * Returns the system calls of several threads in order. A call that was interrupted by one of another thread counts
 * where it ended; if it sends bytes, where it started.
 */
function* callsIn(text: string): Generator<Call> {
  const begun = new Map<string, { readonly name: string; readonly args: string }>();
  for (const line of text.split("\n")) {
    const [, thread = "", rest = ""] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    const [, name = "", args = ""] = /^(\w+)\((.*) <unfinished \.\.\.>$/.exec(rest) ?? [];
    const resumed = /^<\.\.\. (\w+) resumed>(.*?)\)?\s+= (.*)$/.exec(rest);
    const whole = /^(\w+)\((.*)\)\s+= (.*)$/.exec(rest);
    if (name !== "") {
      if (/^write/.test(name) || name === "sendto") yield { name, args, result: "" };
      else begun.set(thread, { name, args });
    } else if (resumed !== null) {
      const before = begun.get(thread);
      begun.delete(thread);
      if (before !== undefined) yield { name: before.name, args: before.args + resumed[2], result: resumed[3] ?? "" };
    } else if (whole !== null) yield { name: whole[1] ?? "", args: whole[2] ?? "", result: whole[3] ?? "" };
  }
}
