// How much validating 100,000 events costs against parsing them from JSON, and sending 10,000 against a bare loop.
import { createServer } from "node:http";
import { Pool } from "undici";
import * as z from "zod";
import { systemClock } from "../src/api/clock.ts";
import type { EventAnswer } from "../src/api/events.ts";
import { rememberingNearestName } from "../src/events/near-names.ts";
import { sendEvents } from "../src/events/send.ts";
import { validateEvent } from "../src/events/validate.ts";

const EVENTS = 100_000;
const ROUNDS = 7;

/** Events as an application sends them: most right, one in ten with a mistake. */
function sampleEvent(index: number): Record<string, unknown> {
  const uid = `user-${index % 5000}`;
  const item = { item_id: `sku-${index}`, item_name: `머그컵 ${index}`, price: 12_900, quantity: (index % 3) + 1 };
  switch (index % 10) {
    case 0:
      return { uid, eventName: "view_item", itemId: item.item_id, price: item.price };
    case 1:
    case 2:
      return {
        uid,
        eventName: "purchase",
        tx_id: `t-${index}`,
        currency: "KRW",
        items: [item, { ...item, brand: "Acme" }],
      };
    case 3:
      return { uid, eventName: "add_to_cart", ...item, value: item.price * item.quantity, currency: "KRW" };
    default:
      return {
        uid,
        eventName: "page_view",
        page_id: `p-${index}`,
        page_url: `https://example.com/${index}`,
        platform: "web",
      };
  }
}

/** The median milliseconds of `ROUNDS` runs. */
function median(run: () => void): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return middle(times);
}

function middle(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

const lines = Array.from({ length: EVENTS }, (_, index) => JSON.stringify(sampleEvent(index)));
const parsed: unknown[] = lines.map((line) => JSON.parse(line));
const parsing = median(() => {
  for (const line of lines) JSON.parse(line);
});
const validating = median(() => {
  const nearest = rememberingNearestName();
  for (const event of parsed) validateEvent(event, nearest);
});
console.log(
  `parsing ${parsing.toFixed(0)} ms, validating ${validating.toFixed(0)} ms: ${(validating / parsing).toFixed(2)} times`,
);

const REQUESTS = 10_000;
const CONCURRENCY = 16;

const answerBody = z.object({ message: z.string() });

const batch = Array.from({ length: REQUESTS }, (_, index) => ({ index, event: pageView(index) }));
const server = createServer((request, response) => {
  request.resume().on("end", () => response.setHeader("content-type", "application/json").end('{"message":"ok"}'));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const address = server.address();
if (typeof address !== "object" || address === null) throw new Error("the server has no address");
const pool = new Pool(`http://127.0.0.1:${address.port}`, { connections: CONCURRENCY });

function pageView(n: number): Record<string, unknown> {
  return { uid: `user-${n % 1000}`, eventName: "page_view", page_id: `p-${n}`, page_url: `https://example.com/${n}` };
}

async function post(body: string): Promise<EventAnswer> {
  const headers = { authorization: "sandbox-app-key", "content-type": "application/json" };
  const answer = await pool.request({ method: "POST", path: "/event", headers, body });
  const { message } = answerBody.parse(await answer.body.json());
  return { statusCode: answer.statusCode, message };
}

async function bareLoop(): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let entry = batch[next++]; entry !== undefined; entry = batch[next++]) await post(JSON.stringify(entry.event));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

async function sender(): Promise<void> {
  const { counts } = await sendEvents(batch, { api: { track: post }, clock: systemClock, onSettled: () => {} });
  if (counts.succeeded !== REQUESTS) throw new Error(`only ${counts.succeeded} events succeeded`);
}

/** Events per second. */
async function rate(run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await run();
  return (REQUESTS * 1000) / (performance.now() - start);
}

const ratios: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const bare = await rate(bareLoop);
  const sent = await rate(sender);
  ratios.push(sent / bare);
  console.log(`bare loop ${bare.toFixed(0)} events/s, sender ${sent.toFixed(0)} events/s`);
}
console.log(`the sender runs at ${middle(ratios).toFixed(2)} of the bare loop`);
await pool.close();
server.close();
