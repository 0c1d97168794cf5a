// Measures the sandbox's page in Chromium while 20,000 events arrive in a minute: the time of its slowest frame, the
// processor time of its slowest task (which does not depend on other load), and the number of rows in the page. Needs
// Debian's Chromium, or the one in CHROMIUM.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import * as z from "zod";

const EVENTS = 20_000;
const SECONDS = Number(process.env.SECONDS ?? 60);
const STEPS_PER_SECOND = 20;
const NAMES = ["purchase", "click", "view_item", "app_open"];

/** A script that records the longest time between two frames from now on. */
const WATCH_FRAMES = `
  globalThis.slowest = 0;
  let last = performance.now();
  const next = (now) => {
    globalThis.slowest = Math.max(globalThis.slowest, now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
`;

const task = z.object({ name: z.literal("RunTask"), pid: z.number(), tid: z.number(), tdur: z.number().default(0) });
const named = z.object({
  name: z.literal("thread_name"),
  pid: z.number(),
  tid: z.number(),
  args: z.object({ name: z.literal("CrRendererMain") }),
});

/**
 * Traces the tasks of the main threads of pages. Returns a function that returns the processor time of the longest one,
 * in milliseconds.
 */
async function tracedTasks(on: Browser): Promise<() => Promise<number>> {
  const session = await on.newBrowserCDPSession();
  const events: unknown[] = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await session.send("Tracing.start", {
    traceConfig: { includedCategories: ["disabled-by-default-devtools.timeline"] },
    transferMode: "ReportEvents",
  });
  return async () => {
    const complete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
    await session.send("Tracing.end");
    await complete;
    const threads = new Set(
      events.flatMap((event) => {
        const { data } = named.safeParse(event);
        return data === undefined ? [] : [`${data.pid} ${data.tid}`];
      }),
    );
    return events.reduce<number>((longest, event) => {
      const { data } = task.safeParse(event);
      const isOurs = data !== undefined && threads.has(`${data.pid} ${data.tid}`);
      return isOurs ? Math.max(longest, data.tdur / 1000) : longest;
    }, 0);
  };
}

const sandbox = spawn(process.execPath, ["dist/main.js", "sandbox", "--port", "0", "--quiet"], {
  stdio: ["ignore", "pipe", "inherit"],
});
const [first] = await once(createInterface({ input: sandbox.stdout }), "line");
const url = String(first).slice(String(first).indexOf("http"));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(url);
  await page.getByRole("heading", { name: "Events" }).waitFor();
  await send(500);
  const longestTask = await tracedTasks(browser);
  await page.evaluate(WATCH_FRAMES);
  const began = Date.now();
  const share = EVENTS / (60 * STEPS_PER_SECOND);
  for (let step = 1; step <= SECONDS * STEPS_PER_SECOND; step += 1) {
    await Promise.all([
      send(Math.round(step * share) - Math.round((step - 1) * share)),
      delay(began + (step * 1000) / STEPS_PER_SECOND - Date.now()),
    ]);
  }
  const seconds = (Date.now() - began) / 1000;
  const slowest = Number(await page.evaluate("globalThis.slowest"));
  const rows = await page.getByRole("table", { name: "Events" }).getByRole("row").count();
  console.log(
    `slowest frame of the page as ${EVENTS} events arrive in a minute: ${slowest.toFixed(0)} ms (at most 100)`,
  );
  console.log(`processor time of its slowest task: ${(await longestTask()).toFixed(0)} ms (at most 100)`);
  console.log(`rows of its list: ${rows - 1} (at most 500)`);
  console.log(
    `seconds until all events of ${SECONDS} seconds had arrived: ${seconds.toFixed(1)} (at most ${SECONDS + 5})`,
  );
} finally {
  await browser.close();
  sandbox.kill();
  await once(sandbox, "close");
}

async function send(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await fetch(`${url}/event`, {
      method: "POST",
      headers: { authorization: "sandbox-app-key", "content-type": "application/json" },
      body: JSON.stringify({ uid: `user-${at}`, eventName: NAMES[at % NAMES.length], currency: "KRW" }),
    });
  }
}
