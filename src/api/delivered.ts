import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** undici tells here which connection a request begins to leave by. */
const LEAVING = "undici:client:sendHeaders";
/** Nearly all of it arrives at once where the way is fast; a slow way is looked at less and less often. */
const LOOK_AGAIN_MS = { first: 1, most: 10 };
/** By the version of IP: reading a table takes the system a millisecond and more, however few lines it has. */
const TABLES: Readonly<Record<string, string>> = { IPv4: "/proc/self/net/tcp", IPv6: "/proc/self/net/tcp6" };

type Connection = Pick<Socket, "localPort" | "remotePort" | "remoteFamily" | "destroyed">;

/**
 * Bytes that may be on their way: a second of 1 Mbit/s. The other end says that it has the last ones only after a while
 * (Linux: 40 ms), which each request would wait for.
 */
const FEW_BYTES = 131_072;

/** How much of a request is still on its way. */
export interface OnItsWay {
  /**
   * Resolves once the machine at the other end has all that was written but a few bytes, or the connection is gone. A
   * system holds megabytes, and sends them although the process stands still. Resolves at once where the system does not
   * tell: only Linux does.
   */
  delivered(): Promise<void>;
  /** Stops looking. */
  end(): void;
}

/** Looks at the connection of the request that has this body. */
export function onItsWay(body: object): OnItsWay {
  let socket: Connection | undefined;
  const note = (told: unknown): void => {
    if (isLeaving(told) && told.request.body === body) socket = told.socket;
  };
  subscribe(LEAVING, note);
  return {
    async delivered() {
      for (let waitMs = LOOK_AGAIN_MS.first; socket !== undefined; waitMs = Math.min(2 * waitMs, LOOK_AGAIN_MS.most)) {
        if (socket.destroyed || (await queuedBytes(socket)) <= FEW_BYTES) return;
        await delay(waitMs);
      }
    },
    end: () => void unsubscribe(LEAVING, note),
  };
}

interface Leaving {
  readonly request: { readonly body?: unknown };
  readonly socket: Connection;
}

function isLeaving(told: unknown): told is Leaving {
  return typeof told === "object" && told !== null && "request" in told && "socket" in told;
}

/** How many bytes the system holds that the other end has not acknowledged, as far as it tells. */
async function queuedBytes({ localPort = 0, remotePort = 0, remoteFamily = "" }: Connection): Promise<number> {
  const table = TABLES[remoteFamily];
  if (table === undefined) return 0;
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");
  // The address of either end with its port, the state, and the bytes in the queue for sending.
  const line = new RegExp(`:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} .. ([0-9A-F]{8}):`);
  const [, queued = "0"] = line.exec(await readFile(table, "latin1").catch(() => "")) ?? [];
  return Number.parseInt(queued, 16);
}
