import { createServer, type IncomingMessage } from "node:http";
import { served } from "../support/stub-server.ts";
import type { DeadlyRequest } from "./gate.ts";

/** An event service that counts what it received. */
export interface EventService {
  readonly url: string;
  /** How many complete events of each user have arrived. */
  readonly received: ReadonlyMap<string, number>;
  /** The number of requests that were received but not answered yet. */
  unanswered(): number;
  /** Stops answering until `release` is called. */
  hold(): void;
  /** Answers the held requests, and from now on all others. */
  release(): void;
}

/**
 * Starts an event service that follows the API document (event-tracking-api 4). It answers `ok` and counts events by
 * their `uid`. `onArrival` is called with the `uid` before the answer. `deadly` is the request at which the server is
 * killed.
 */
export async function startEventService(at: {
  readonly deadly?: DeadlyRequest | undefined;
  readonly onArrival?: (uid: string) => void;
  readonly kill?: () => Promise<void>;
}): Promise<EventService> {
  const received = new Map<string, number>();
  const held: (() => void)[] = [];
  let isHolding = false;
  let arrived = 0;
  let unanswered = 0;
  const server = createServer(async (request, response) => {
    const text = await bodyOf(request);
    arrived += 1;
    unanswered += 1;
    const uid = String(JSON.parse(text).uid);
    at.onArrival?.(uid);
    const isDeadly = arrived === at.deadly?.nth;
    if (isDeadly && at.deadly?.moment === "arrived") {
      // The event has arrived, but the service has not stored it: it is lost.
      await at.kill?.();
      return;
    }
    received.set(uid, (received.get(uid) ?? 0) + 1);
    if (isDeadly) {
      await at.kill?.();
      return;
    }
    const answer = (): void => {
      unanswered -= 1;
      response.writeHead(200, { "content-type": "application/json" }).end('{"message":"ok"}');
    };
    if (isHolding) held.push(answer);
    else answer();
  });
  return {
    url: await served(server),
    received,
    unanswered: () => unanswered,
    hold() {
      isHolding = true;
    },
    release() {
      isHolding = false;
      for (const answer of held.splice(0)) answer();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}
