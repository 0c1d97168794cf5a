// Measures two ratios: validating 100,000 events compared with parsing them from JSON, and track_events for 10,000
// events compared with a bare loop that has the same number of requests open at a time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import * as z from "zod";
import { reasonWords } from "../src/answers/failures.ts";
import { eventsOver } from "../src/api/events.ts";
import { openHttp } from "../src/api/http.ts";
import { EventRuns } from "../src/events/run/event-runs.ts";
import { sourceOfEvents } from "../src/events/run/source.ts";
import { nearestName, remembering } from "../src/events/spelling.ts";
import { validateEvent } from "../src/events/validate.ts";
import { systemClock } from "../src/platform/clock.ts";
import { fileRunStore } from "../src/runs/files/run-store.ts";
import { ulidSource } from "../src/spec/names-and-contexts.ts";
import { ROUTES } from "../src/spec/routes.ts";

const EVENTS = 100_000;
const ROUNDS = 7;

/** Creates an event like those of an application. Most are correct; one in ten has a mistake. */
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

/** Returns the median duration of `ROUNDS` runs, in milliseconds. */
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
  const nearest = remembering(nearestName);
  for (const event of parsed) validateEvent(event, nearest);
});
console.log(
  `parsing ${parsing.toFixed(0)} ms, validating ${validating.toFixed(0)} ms: ${(validating / parsing).toFixed(2)} times`,
);

const REQUESTS = 10_000;
const CONCURRENCY = 16;
const SENDING_ROUNDS = 11;

const answerBody = z.object({ message: z.literal("ok") });

/** The sandbox runs in its own process and takes no processor time from the sender. */
const sandbox = spawn(process.execPath, [join(import.meta.dirname, "..", "dist", "main.js"), "sandbox", "--port", "0"]);
const [firstLines] = await once(sandbox.stdout, "data");
const url = /http:\/\/\S+/.exec(String(firstLines))?.[0];
if (url === undefined) throw new Error("the sandbox did not start; is dist/ built?");

const events = Array.from({ length: REQUESTS }, (_, n) => ({
  uid: `user-${n}`,
  eventName: "page_view",
  page_id: `p-${n}`,
  page_url: `https://example.com/${n}`,
}));

const pool = new Pool(url, { connections: CONCURRENCY });
const headers = { authorization: "sandbox-app-key", "content-type": "application/json" };

async function bareLoop(): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let event = events[next++]; event !== undefined; event = events[next++]) {
      const answer = await pool.request({ method: "POST", path: "/event", headers, body: JSON.stringify(event) });
      answerBody.parse(await answer.body.json());
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
}

const http = openHttp({ url, credential: { authorization: "sandbox-app-key" }, requestTimeoutMs: 60_000 });
const stateDir = await mkdtemp(join(tmpdir(), "targeting-mcp-"));

/** Does the same as track_events: validates, writes the journal, sends and reports. */
async function sender(): Promise<void> {
  const runs = new EventRuns({
    api: eventsOver(http, ROUTES),
    store: fileRunStore(stateDir, systemClock),
    clock: systemClock,
    newRunId: ulidSource(Date.now, Math.random),
    project: "bench",
    environment: "sandbox",
    retryBudgetMs: 120_000,
    words: reasonWords,
  });
  const source = sourceOfEvents(events);
  const run = runs.start({ source, items: events.length, onUnknown: "report" }, "bench");
  await run.rest;
  if (run.status() !== "succeeded") throw new Error(`the run ${run.status()}`);
}

/** Returns the rate in events per second. */
async function rate(run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await run();
  return (REQUESTS * 1000) / (performance.now() - start);
}

/**
 * Returns the rate of the sender divided by that of the bare loop. The caller alternates which of them is first,
 * because the second one profits from a machine that is warmed up.
 */
async function compare(senderFirst: boolean): Promise<number> {
  const before = senderFirst ? await rate(sender) : undefined;
  const bare = await rate(bareLoop);
  const sent = before ?? (await rate(sender));
  console.log(`bare loop ${bare.toFixed(0)} events/s, track_events ${sent.toFixed(0)} events/s`);
  return sent / bare;
}

await bareLoop();
await sender();
const ratios: number[] = [];
for (let round = 0; round < SENDING_ROUNDS; round += 1) ratios.push(await compare(round % 2 === 1));
console.log(`track_events runs at ${middle(ratios).toFixed(2)} of the bare loop (median of ${SENDING_ROUNDS} rounds)`);
await pool.close();
await http.close();
sandbox.kill();
await rm(stateDir, { recursive: true });
