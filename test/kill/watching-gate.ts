import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { listening } from "../support/stub-server.ts";
import type { Holder, LeaseName } from "./holders.ts";

/** A lease that allows a process to write, and its present holder. */
export interface HeldLease extends Holder {
  readonly name: LeaseName;
}

/** Collects what all gates of a service see. */
export interface Watcher {
  /**
   * Reads the present lease holders when a write of a process arrives. Writes that arrive together are handled one
   * after another.
   */
  look(pid: number): Promise<void>;
  /** Called when `arrived` of the `total` bytes of a write's body have arrived. */
  onBytes(pid: number, write: number, arrived: number, total: number): void;
  /** Called when the last byte of a write has arrived. */
  onWrite(pid: number, write: number): void;
  /** The lease holders that have written, as `name number`. */
  readonly written: Set<string>;
  /** Writes that arrived after the first write of a newer lease holder. */
  readonly late: string[];
}

/** How long a write takes before and after the service applies it, in milliseconds. */
export interface Pace {
  readonly beforeMs: number;
  readonly afterMs: number;
}

/**
 * A proxy between a single process and the service. Each process has its own, so that tests know who sent a request.
 */
export interface WatchingGate {
  readonly url: string;
  /** 0 until the process has started. */
  pid: number;
  close(): void;
}

/**
 * Starts a gate in front of a service. It reports to the watcher when the last byte of a write arrives, and forwards
 * everything.
 */
export async function openWatchingGate(service: string, watcher: Watcher, pace: Pace): Promise<WatchingGate> {
  let writes = 0;
  const gate = { url: "", pid: 0, close: () => {} };
  const take = async (request: IncomingMessage): Promise<Buffer> => {
    writes += 1;
    const write = writes;
    const total = Number(request.headers["content-length"] ?? 0);
    const chunks: Buffer[] = [];
    let arrived = 0;
    for await (const chunk of request) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      arrived += bytes.length;
      if (arrived < total) watcher.onBytes(gate.pid, write, arrived, total);
    }
    await watcher.look(gate.pid);
    watcher.onWrite(gate.pid, write);
    return Buffer.concat(chunks);
  };
  const server = createServer((request, response) => {
    const pass = async (): Promise<void> => {
      const { url = "/", method = "GET", headers } = request;
      const isWrite = method !== "GET";
      const body = isWrite ? await take(request) : undefined;
      if (isWrite) await delay(pace.beforeMs);
      const answer = await fetch(`${service}${url}`, {
        method,
        headers: {
          "x-api-key": String(headers["x-api-key"] ?? ""),
          authorization: String(headers.authorization ?? ""),
          "content-type": "application/json",
        },
        ...(body !== undefined && { body: new Uint8Array(body) }),
      });
      const text = await answer.text();
      if (isWrite) await delay(pace.afterMs);
      const date = answer.headers.get("date");
      response.writeHead(answer.status, { "content-type": "application/json", ...(date !== null && { date }) });
      response.end(text);
    };
    pass().catch(() => response.destroy());
  });
  gate.url = await listening(server);
  gate.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return gate;
}

/** Creates a watcher of the leases that allow writes. */
export function watcherOf(held: () => Promise<readonly HeldLease[]>): Watcher {
  const [written, late]: [Set<string>, string[]] = [new Set(), []];
  /** Records a write of a lease holder. It is late if a newer holder of the lease has already written. */
  const note = ({ name, number, pid: holder }: HeldLease, pid: number): void => {
    const key = `${name} ${number}`;
    if (holder === pid) written.add(key);
    else if (written.has(key)) late.push(`${pid} wrote beside ${holder}, which holds ${name}`);
  };
  let looks: Promise<void> = Promise.resolve();
  return {
    look(pid) {
      looks = looks.then(async () => {
        for (const one of await held()) note(one, pid);
      });
      return looks;
    },
    ...{ written, late },
    onBytes: () => {},
    onWrite: () => {},
  };
}
