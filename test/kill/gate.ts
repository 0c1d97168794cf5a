import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { served } from "../support/stub-server.ts";

/**
 * When a process is killed at one of its write requests. `arrived`: when the request arrives, so that it is never
 * applied. `applied`: after the service has applied it, but before the process gets the answer.
 */
export interface DeadlyRequest {
  /** The number of the write request; the first is 1. */
  readonly nth: number;
  readonly moment: "arrived" | "applied";
}

/**
 * A proxy between the server under test and the service. It forwards requests, counts writes, and may kill the server.
 */
export interface Gate {
  readonly url: string;
  /** The number of write requests since `arm` was called. */
  writes(): number;
  /** Starts to count writes. */
  arm(): void;
}

/** Starts a gate in front of a service. `onWrite` is called for every write request before it is forwarded. */
export async function openGate(
  service: string,
  at: {
    readonly deadly?: DeadlyRequest | undefined;
    /** The number of the read at which the server is killed; the first is 1. That read is not answered. */
    readonly deadlyRead?: number | undefined;
    onWrite(writes: number): void;
    kill(): Promise<void>;
  },
): Promise<Gate> {
  let writes = 0;
  let reads = 0;
  let isArmed = false;
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request);
    const isWrite = isArmed && request.method !== "GET";
    if (isWrite) {
      writes += 1;
      at.onWrite(writes);
    }
    if (isArmed && !isWrite) {
      reads += 1;
      if (reads === at.deadlyRead) return at.kill();
    }
    const isDeadly = isWrite && writes === at.deadly?.nth;
    if (isDeadly && at.deadly?.moment === "arrived") {
      await at.kill();
      return;
    }
    try {
      const { status, headers, text } = await passedOn(service, request, body);
      if (!isDeadly) response.writeHead(status, headers).end(text);
    } finally {
      // The process is killed even if the gate could not get the answer.
      if (isDeadly) await at.kill();
    }
  };
  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  return {
    url: await served(server),
    writes: () => writes,
    arm() {
      isArmed = true;
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

async function passedOn(service: string, { url = "/", method = "GET", headers }: IncomingMessage, body: Buffer) {
  const answer = await fetch(`${service}${url}`, {
    method,
    headers: { "x-api-key": String(headers["x-api-key"] ?? ""), "content-type": "application/json" },
    ...(method === "GET" ? {} : { body: new Uint8Array(body) }),
  });
  const date = answer.headers.get("date");
  return {
    status: answer.status,
    headers: { "content-type": "application/json", ...(date === null ? {} : { date }) },
    text: await answer.text(),
  };
}
