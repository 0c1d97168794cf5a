import { onTestFinished } from "vitest";
import { reasonWords } from "../../src/answers/failures.ts";
import { eventsOver, sandboxOver } from "../../src/api/events.ts";
import { openHttp } from "../../src/api/http.ts";
import { managementOver } from "../../src/api/management.ts";
import { Changes } from "../../src/changes/changes.ts";
import { EventRuns } from "../../src/events/run/event-runs.ts";
import { observerOf } from "../../src/events/run/verdicts.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { processLock } from "../../src/runs/files/lease.ts";
import { Runs } from "../../src/runs/registry.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { memoryRunStore } from "./memory-store.ts";
import { testServices } from "./tool-context.ts";

const NOON = Date.UTC(2026, 2, 1, 12);

/** A clock that always shows the same time, so that answers are equal each time the tests run. */
const stoodStill: Clock = { ...systemClock, now: () => NOON };

/** Returns a generator of numbers in [0, 1) that gives the same sequence each time the tests run. */
function numbers(seed: number): () => number {
  let last = seed;
  return () => {
    last = (last * 48_271) % 2_147_483_647;
    return last / 2_147_483_647;
  };
}

/**
 * Starts a sandbox, and creates a context for all tools with fixed times, IDs and random numbers. The same calls get
 * the same answers each time the tests run. Ends with the test.
 */
export async function fixedTools(): Promise<{ readonly context: ToolContext; readonly url: string }> {
  const clock = stoodStill;
  const sandbox = await startSandbox({ now: clock.now, random: numbers(1) });
  const over = (credential: Readonly<Record<string, string>>) =>
    openHttp({ url: sandbox.url, credential, requestTimeoutMs: 20_000 });
  const [management, application] = [over({ "x-api-key": "sandbox-key" }), over({ authorization: "sandbox-app-key" })];
  onTestFinished(async () => {
    await Promise.all([management.close(), application.close()]);
    await sandbox.close();
  });
  const services = testServices(clock, 20_000);
  const api = managementOver(management, ROUTES);
  const events = eventsOver(application, ROUTES);
  const look = sandboxOver(application);
  const own = { clock, project: "project", environment: "sandbox", words: reasonWords } as const;
  const times = { retryBudgetMs: 20_000, requestTimeoutMs: 60_000 };
  const world = { ...own, ...times, store: memoryRunStore(clock), lock: processLock(clock), memory: services.memory };
  const changes = new Changes({
    ...world,
    api,
    routes: ROUTES,
    random: numbers(2),
    newRunId: ulidSource(clock.now, numbers(3)),
  });
  const sending = new EventRuns({
    ...world,
    api: events,
    newRunId: ulidSource(clock.now, numbers(4)),
    observe: observerOf(look),
  });
  const context: ToolContext = {
    ...services,
    management: api,
    runs: new Runs(world, [changes.runs, sending.runs]),
    changes,
    events,
    sending,
    sandbox: look,
    testBench: { url: async () => sandbox.url, events, sandbox: look },
    caller: "local",
    arrivedAt: clock.now(),
    signal: new AbortController().signal,
    canAsk: () => false,
  };
  return { context, url: sandbox.url };
}
