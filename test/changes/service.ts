import { onTestFinished } from "vitest";
import * as z from "zod";
import { openHttp } from "../../src/api/http.ts";
import { managementOver } from "../../src/api/management.ts";
import type { WriteCall } from "../../src/changes/call.ts";
import type { ChangeRun } from "../../src/changes/change-run.ts";
import { Changes } from "../../src/changes/changes.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { TargetingMemory } from "../../src/runs/backend.ts";
import { targetingMemory } from "../../src/runs/files/backend.ts";
import { processLock } from "../../src/runs/files/lease.ts";
import { Runs } from "../../src/runs/registry.ts";
import { countsOf, failureGroups } from "../../src/runs/report.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import type { OptionToCreate } from "../../src/spec/records.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { objectResults } from "../support/object-results.ts";

/** Returns a memory of names in which nothing is found. */
function noMemory(): TargetingMemory {
  return targetingMemory({ now: Date.now, onProblem: () => {} });
}

/** Starts a sandbox, and an engine that uses it over real HTTP. Closed when the test has ended. */
export async function startService(requestTimeoutMs = 120_000, retryBudgetMs = 300_000) {
  const sandbox = await startSandbox({ lockWaitMs: 20 });
  const http = openHttp({
    url: sandbox.url,
    credential: { "x-api-key": "sandbox-key" },
    requestTimeoutMs,
  });
  onTestFinished(async () => {
    await http.close();
    await sandbox.close();
  });
  const api = managementOver(http, ROUTES);
  const world = {
    api,
    routes: ROUTES,
    store: memoryRunStore(),
    lock: processLock(systemClock),
    clock: systemClock,
    random: () => 0.5,
    newRunId: ulidSource(Date.now, Math.random),
    project: "test",
    environment: "sandbox",
    ...{ retryBudgetMs, requestTimeoutMs: 1000 },
    words: ({ code }: { readonly code: string }) => code,
    memory: noMemory(),
  } as const;
  const changes = new Changes(world);
  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${sandbox.url}/_sandbox${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`control plane: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const run = async (call: WriteCall): Promise<Finished> => {
    const plan = await changes.plan(call, new AbortController().signal);
    const started = await changes.start(await changes.keep(call, "tester"), plan);
    if (started === undefined) throw new Error("the run was started before");
    await started.rest;
    return finished(started);
  };
  const created = async (path: string, item: object): Promise<string> => {
    const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
    const answer = await fetch(`${sandbox.url}${path}`, { method: "POST", headers, body: JSON.stringify(item) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return z.object({ _id: z.string() }).parse(await answer.json())._id;
  };
  /** Creates a targeting. Returns its ID. */
  const targeting = (name: string): Promise<string> => created("/context-targeting", { name });
  /** Creates an option. Returns its ID. */
  const option = (item: OptionToCreate & { readonly targeting: string }): Promise<string> =>
    created("/context-targeting/category", item);
  return {
    api,
    changes,
    world,
    store: world.store,
    runs: new Runs(world, [changes.runs]),
    run,
    control,
    targeting,
    option,
    url: sandbox.url,
    failuresOf: (run: ChangeRun) => failureGroups(run.state),
    faults: (faults: unknown[]) => control("POST", "/faults", { faults }),
  };
}

/** The result of a run that has stopped, in a short form for tests. */
export interface Finished {
  readonly status: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly requests: Readonly<Record<string, number>>;
  readonly results: ReturnType<typeof objectResults>;
  readonly failures: ReturnType<typeof failureGroups>;
}

function finished(run: ChangeRun): Finished {
  return {
    status: run.status(),
    counts: Object.fromEntries(Object.entries(countsOf(run.state)).filter(([, count]) => count > 0)),
    requests: { ...run.state.requests },
    results: objectResults(run.state),
    failures: failureGroups(run.state),
  };
}
