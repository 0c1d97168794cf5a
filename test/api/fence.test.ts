import { once } from "node:events";
import type { Socket } from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { AmbiguousError, NotSentError } from "../../src/api/errors.ts";
import { openHttp } from "../../src/api/http.ts";
import { type Fence, HeldBackError } from "../../src/platform/fence.ts";
import { startRaw, startStub } from "../support/stub-server.ts";

const SMALL = JSON.stringify({ items: ["a"] });
const LARGE = JSON.stringify({ items: ["x".repeat(3_000_000)] });
/** More than the buffers of a machine take at once. */
const HUGE = JSON.stringify({ items: ["x".repeat(20_000_000)] });
/** Longer than slices may take without a renewal of the right to send the last one (src/api/http.ts). */
const LONG_WAY_MS = 600;

function open(url: string) {
  const http = openHttp({ url, credential: {}, requestTimeoutMs: 20_000 });
  onTestFinished(() => http.close());
  const send = (body: string, fence?: Fence) =>
    http.send({ operation: "addOptions", method: "POST", path: "/x", body, fence });
  return { http, send };
}

/** A fence that writes down what it is asked, and refuses where it is told to. */
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
    const url = await startRaw((socket: Socket) => {
      arrived.ended = once(socket, "close");
      // The right to send is renewed where the way was long.
      const read = (chunk: Buffer): void => {
        arrived.bytes += chunk.length;
      };
      void setTimeout(LONG_WAY_MS).then(() => socket.on("data", read));
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
    socket = taken.pause();
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
  await setTimeout(LONG_WAY_MS);
  // A service that does not read: what the machine's buffers do not take is not on its way.
  expect(renewals).toBe(0);
  socket?.on("data", (chunk) => void arrived.push(chunk)).resume();
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

// Only Linux tells what is still on its way (src/api/delivered.ts).
test.runIf(process.platform === "linux")(
  "a service that reads slowly has the last slice soon after it left",
  async () => {
    const bytesPerSecond = 2_000_000;
    const body = JSON.stringify({ items: ["x".repeat(4_000_000)] });
    let leftAt = 0;
    let bytes = 0;
    let wholeAt = 0;
    const url = await startRaw((socket) => {
      socket.on("data", (chunk) => {
        bytes += chunk.length;
        socket.pause();
        void setTimeout((1000 * chunk.length) / bytesPerSecond).then(() => socket.resume());
        if (bytes <= body.length) return;
        wholeAt = performance.now();
        socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
      });
    });
    const mayLeave = (): void => {
      leftAt = performance.now();
    };
    const { made, asked } = fence();
    expect((await open(url).send(body, { ...made, mayLeave })).statusCode).toBe(200);
    // What the request was announced with is too old by then.
    expect(asked).toEqual(["renew", "hasLeft"]);
    // What the buffers of this machine hold at once takes more than a second.
    expect(wholeAt - leftAt).toBeLessThan(600);
  },
);

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
  // The answer is there a moment before its connection is idle.
  await setImmediate();
  await http.connect("addOptions");
  expect((await send(SMALL)).statusCode).toBe(200);
  expect(connections).toBe(1);
});
