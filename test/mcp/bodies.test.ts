import { createServer } from "node:http";
import { expect, test } from "vitest";
import { bodyReader, type Held } from "../../src/http/bodies.ts";
import { arrivalOf } from "../../src/mcp/server-parts.ts";
import { served } from "../support/stub-server.ts";

const LONG = 3_600_000;
const SMALL = JSON.stringify({ method: "ping" });
const LARGE = JSON.stringify({ method: "tools/call", params: { name: "bulk", items: "x".repeat(1_200_000) } });

/**
 * Starts a server that reads bodies, and records how much of each has arrived. A body counts as in work until its
 * answer is sent.
 */
async function reading() {
  const read = bodyReader(new Set(["bulk"]), LONG);
  const arrived: (number | undefined)[] = [];
  const bodies: { readonly held: Held | undefined; readonly answer: () => void }[] = [];
  let whole = 0;
  const server = createServer((incoming, outgoing) => {
    const headers = { "content-type": "application/json" };
    const request = new Request("http://localhost/mcp", { method: "POST", headers });
    incoming.once("end", () => {
      whole += 1;
    });
    read(request, { incoming, outgoing }, "ann").then((body) => {
      if (body instanceof Response) throw new Error(`the body was refused: ${body.status}`);
      arrived.push(arrivalOf(request));
      if (body.held === undefined) outgoing.end();
      else bodies.push({ held: body.held, answer: () => outgoing.end() });
    }, outgoing.destroy.bind(outgoing));
  });
  const url = await served(server);
  const send = async (body: string): Promise<void> => {
    await (await fetch(url, { method: "POST", body })).text();
  };
  return { arrived, bodies, send, whole: () => whole };
}

test("a large body that waits for its turn has arrived before that", async () => {
  const { arrived, bodies, send, whole } = await reading();
  const sent = [send(LARGE)];
  await expect.poll(() => bodies.length).toBe(1);
  sent.push(send(LARGE));
  await expect.poll(whole).toBe(2);
  const released = Date.now();
  bodies[0]?.answer();
  await expect.poll(() => bodies.length).toBe(2);
  expect(arrived[1]).toBeLessThanOrEqual(released);
  bodies[1]?.answer();
  await Promise.all(sent);
});

test("a body of very many values is worked on alone, however short they are", async () => {
  const { bodies, send, whole } = await reading();
  const many = JSON.stringify({ method: "tools/call", params: { name: "bulk", items: Array(900_000).fill(0) } });
  const sent = [send(many)];
  await expect.poll(() => bodies.length).toBe(1);
  sent.push(send(LARGE));
  await expect.poll(whole).toBe(2);
  bodies[0]?.held?.planned();
  // After the answer to a small body, the server would have accepted the large one if it could.
  await send(SMALL);
  expect(bodies.length).toBe(1);
  bodies[0]?.answer();
  await expect.poll(() => bodies.length).toBe(2);
  bodies[1]?.answer();
  await Promise.all(sent);
});
