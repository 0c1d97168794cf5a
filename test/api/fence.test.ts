import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { AmbiguousError, NotSentError } from "../../src/api/errors.ts";
import { openHttp } from "../../src/api/http.ts";
import { type Fence, HeldBackError } from "../../src/runs/turn.ts";
import { startRaw, startStub } from "../support/stub-server.ts";

const SMALL = JSON.stringify({ items: ["a"] });
const LARGE = JSON.stringify({ items: ["x".repeat(3_000_000)] });
/** A body that does not fit into the buffers of the machine. */
const HUGE = JSON.stringify({ items: ["x".repeat(20_000_000)] });
/** Longer than parts of a body may take before the right to send the last part must be renewed (src/api/http.ts). */
const LONG_WAY_MS = 600;
/** How many bytes may still be on their way when the last part is sent (src/api/http.ts). */
const FEW_BYTES = 131_072;

/** The time that passes between two parts. The test sets it, so that the speed of the machine does not matter. */
let passedMs = 0;
beforeEach(() => {
  passedMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => passedMs);
  onTestFinished(() => clock.mockRestore());
});

/** Waits for the first bytes of a body, which show that it is being sent. */
async function bodyBegun(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (;;) {
    await once(socket, "readable");
    const chunk: unknown = socket.read(65_536) ?? socket.read();
    if (chunk instanceof Buffer) chunks.push(chunk);
    const whole = Buffer.concat(chunks);
    const head = whole.indexOf("\r\n\r\n");
    if (head >= 0 && whole.length > head + 4) return whole;
  }
}

function open(url: string) {
  const http = openHttp({ url, credential: {}, requestTimeoutMs: 120_000 });
  onTestFinished(() => http.close());
  const send = (body: string, fence?: Fence) =>
    http.send({ operation: "addOptions", method: "POST", path: "/x", body, fence });
  return { http, send };
}

/** A fence that records each question, and refuses if the test says so. */
function fence(refuses: { readonly leave?: boolean; readonly renew?: boolean } = {}) {
  const asked: string[] = [];
  const refuse = (): never => {
    throw new HeldBackError("it stood still");
  };
  const made: Fence = {
    mayLeave: () => {
      asked.push("mayLeave");
      if (refuses.leave) refuse();
    },
    hasLeft: () => void asked.push("hasLeft"),
    renew: async () => {
      asked.push("renew");
      if (refuses.renew) refuse();
    },
  };
  return { made, asked };
}

describe("what a fence lets through", () => {
  test.each([
    ["small", SMALL, ["mayLeave", "hasLeft"]],
    ["large", LARGE, ["mayLeave", "hasLeft"]],
  ])("a %s body travels whole, and the fence is asked right before its end", async (_, body, order) => {
    const { url, received } = await startStub(() => ({ status: 200, json: {} }));
    const { made, asked } = fence();
    expect((await open(url).send(body, made)).statusCode).toBe(200);
    expect(asked).toEqual(order);
    expect(received.map((one) => one.body === body)).toEqual([true]);
    expect(received[0]?.headers).toMatchObject({ "content-length": String(Buffer.byteLength(body)) });
    expect(received[0]?.headers).not.toHaveProperty("transfer-encoding");
  });
});

describe("what a fence keeps back was not sent", () => {
  test("a small body: not a byte leaves, and the connection serves the next request", async () => {
    const { url, received } = await startStub(() => ({ status: 200, json: {} }));
    const { send } = open(url);
    const held = await send(SMALL, fence({ leave: true }).made).catch((thrown: unknown) => thrown);
    expect(held).toBeInstanceOf(NotSentError);
    expect(held).toMatchObject({ reason: "it stood still", cause: expect.any(HeldBackError) });
    expect(received).toEqual([]);
    expect((await send(SMALL)).statusCode).toBe(200);
    expect(received).toHaveLength(1);
  });

  test.each([{ leave: true }, { renew: true }])("a large body never comes to its end: %j", async (refuses) => {
    const arrived: { bytes: number; ended?: Promise<unknown> } = { bytes: 0 };
    const url = await startRaw(async (socket: Socket) => {
      arrived.ended = once(socket, "close");
      arrived.bytes += (await bodyBegun(socket)).length;
      // Sending took long, so the right to send is renewed.
      passedMs = LONG_WAY_MS;
      socket.on("data", (chunk: Buffer) => {
        arrived.bytes += chunk.length;
      });
    });
    const held = await open(url)
      .send(HUGE, fence(refuses).made)
      .catch((thrown: unknown) => thrown);
    expect(held).toBeInstanceOf(NotSentError);
    await arrived.ended;
    expect(arrived.bytes).toBeLessThan(HUGE.length);
  });
});

test("the last slice waits until those before have drained, and after a long way leaves only once the right is renewed", async () => {
  const arrived: Buffer[] = [];
  let socket: Socket | undefined;
  const url = await startRaw((taken) => {
    socket = taken;
  });
  let renewals = 0;
  let release = (): void => {};
  const renewed = new Promise<void>((resolve) => {
    release = resolve;
  });
  const sending = open(url).send(HUGE, {
    mayLeave: () => {},
    hasLeft: () => {},
    renew: async () => {
      renewals += 1;
      await renewed;
    },
  });
  await expect.poll(() => socket).toBeDefined();
  if (socket === undefined) throw new Error("nothing has connected");
  arrived.push(await bodyBegun(socket));
  passedMs = LONG_WAY_MS;
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  // The service does not read. What does not fit into the machine's buffers has not been sent yet.
  expect(renewals).toBe(0);
  socket.on("data", (chunk) => void arrived.push(chunk)).resume();
  await expect.poll(() => renewals).toBe(1);
  const text = (): string => Buffer.concat(arrived).toString("latin1");
  const bodySoFar = (): number => text().length - text().indexOf("\r\n\r\n") - 4;
  const withoutLast = Math.floor((HUGE.length - 1) / 65_536) * 65_536;
  await expect.poll(bodySoFar).toBe(withoutLast);
  release();
  await expect.poll(bodySoFar).toBe(HUGE.length);
  socket?.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
  expect((await sending).statusCode).toBe(200);
});

/**
 * Returns how many bytes of a connection this machine still holds because they have not arrived, from a table of Linux.
 */
function queuedBytes(from: number, to: number): number {
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/self/net/tcp", "latin1").split("\n");
  const row = rows
    .map((line) => line.trim().split(/\s+/))
    .find(([, local, remote]) => {
      return local?.endsWith(`:${hex(from)}`) && remote?.endsWith(`:${hex(to)}`);
    });
  return Number.parseInt(row?.[4]?.split(":")[0] ?? "0", 16);
}

// Only on Linux can a process see how many bytes are still on their way (src/api/http.ts).
test.runIf(process.platform === "linux")("the last slice leaves once nearly all before it has arrived", async () => {
  const body = JSON.stringify({ items: ["x".repeat(4_000_000)] });
  const queued = { most: 0, atTheEnd: -1 };
  let ofConnection = (): number => 0;
  const url = await startRaw(async (socket) => {
    const { remotePort = 0, localPort = 0 } = socket;
    ofConnection = () => queuedBytes(remotePort, localPort);
    let bytes = (await bodyBegun(socket)).length;
    passedMs = LONG_WAY_MS;
    // When the machine's buffers are full, the service reads the rest piece by piece.
    await expect.poll(ofConnection).toBeGreaterThan(4 * FEW_BYTES);
    queued.most = ofConnection();
    socket.on("data", (chunk) => {
      bytes += chunk.length;
      socket.pause();
      void setImmediate().then(() => socket.resume());
      if (bytes > body.length) socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    });
  });
  const mayLeave = (): void => {
    queued.atTheEnd = ofConnection();
  };
  const { made, asked } = fence();
  expect((await open(url).send(body, { ...made, mayLeave })).statusCode).toBe(200);
  // By then, the right with which the request was announced is too old.
  expect(asked).toEqual(["renew", "hasLeft"]);
  expect(queued.most).toBeGreaterThan(4 * FEW_BYTES);
  expect(queued.atTheEnd).toBeGreaterThanOrEqual(0);
  expect(queued.atTheEnd).toBeLessThanOrEqual(FEW_BYTES);
});

test("a connection that breaks in the middle of a body sent nothing; after its last byte nobody knows", async () => {
  const breaking = (after: number) =>
    startRaw((socket) => {
      let bytes = 0;
      socket.on("data", (chunk) => {
        bytes += chunk.length;
        if (bytes >= after) socket.resetAndDestroy();
      });
    });
  const middle = open(await breaking(1)).send(HUGE, fence().made);
  await expect(middle).rejects.toBeInstanceOf(NotSentError);
  await expect(open(await breaking(LARGE.length)).send(LARGE)).rejects.toBeInstanceOf(AmbiguousError);
});

test("a connection is made without a request, and the next request uses it", async () => {
  let connections = 0;
  let bytes = 0;
  const url = await startRaw((socket) => {
    connections += 1;
    socket.on("data", (chunk) => {
      bytes += chunk.length;
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    });
  });
  const { http, send } = open(url);
  await http.connect("addOptions");
  await http.connect("addOptions");
  expect({ connections, bytes }).toEqual({ connections: 1, bytes: 0 });
  expect((await send(SMALL)).statusCode).toBe(200);
  // The answer arrives a moment before its connection counts as idle.
  await setImmediate();
  await http.connect("addOptions");
  expect((await send(SMALL)).statusCode).toBe(200);
  expect(connections).toBe(1);
});
