import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { arrivalOf } from "../../src/server/calls/arrivals.ts";
import { bodyReader } from "../../src/server/http/bodies.ts";

const LONG = 3_600_000;
const LARGE = JSON.stringify({ method: "tools/call", params: { name: "bulk", items: "x".repeat(1_200_000) } });

test("a large body that waits for its turn has arrived before that", async () => {
  const read = bodyReader(new Set(["bulk"]), LONG);
  const arrived: (number | undefined)[] = [];
  const waiting: (() => void)[] = [];
  let bodies = 0;
  const server = createServer((incoming, outgoing) => {
    const request = new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    incoming.once("end", () => {
      bodies += 1;
    });
    // The answer to a call gives its turn to the next.
    read(request, { incoming, outgoing }, "ann").then(() => {
      arrived.push(arrivalOf(request));
      waiting.push(() => outgoing.end());
    }, outgoing.destroy.bind(outgoing));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address: AddressInfo | string | null = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const send = () => fetch(`http://127.0.0.1:${port}`, { method: "POST", body: LARGE }).then((answer) => answer.text());
  const first = send();
  await expect.poll(() => waiting.length).toBe(1);
  const second = send();
  await expect.poll(() => bodies).toBe(2);
  const released = Date.now();
  waiting[0]?.();
  await expect.poll(() => waiting.length).toBe(2);
  expect(arrived[1]).toBeLessThanOrEqual(released);
  waiting[1]?.();
  await Promise.all([first, second]);
});
