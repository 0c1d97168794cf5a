import { onTestFinished } from "vitest";
import type * as z from "zod";
import { reasonWords } from "../../src/answers/failures.ts";
import { eventsOver, sandboxOver } from "../../src/api/events.ts";
import { openHttp } from "../../src/api/http.ts";
import { Approvals } from "../../src/changes/approvals.ts";
import { EventRuns } from "../../src/events/run/event-runs.ts";
import { observerOf } from "../../src/events/run/verdicts.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { Runs } from "../../src/runs/registry.ts";
import { startSandbox } from "../../src/sandbox/index.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import type { ToolContext, ToolDefinition, ToolOutcome } from "../../src/tools/define-tool.ts";
import { hold } from "./hold.ts";
import { memoryRunStore } from "./memory-store.ts";
import { testServices } from "./tool-context.ts";

/** Starts a sandbox over HTTP, and creates a context in which event tools use this sandbox. Both end with the test. */
export async function eventTools(more: Partial<ToolContext> = {}) {
  const sandbox = await startSandbox();
  const http = openHttp({
    url: sandbox.url,
    credential: { authorization: "sandbox-app-key" },
    requestTimeoutMs: 120_000,
  });
  onTestFinished(async () => {
    await http.close();
    await sandbox.close();
  });
  const events = eventsOver(http, ROUTES);
  const store = memoryRunStore();
  const environment = more.environment ?? "sandbox";
  const look = sandboxOver(http);
  const clock = more.clock ?? systemClock;
  const about = {
    api: events,
    store,
    clock,
    newRunId: ulidSource(systemClock.now, Math.random),
    project: "project",
    environment,
    retryBudgetMs: 500,
    words: reasonWords,
    ...(environment === "sandbox" && { observe: observerOf(more.sandbox ?? look) }),
  };
  const sending = new EventRuns(about);
  const approvals = new Approvals(about);
  const context: ToolContext = {
    ...testServices(systemClock, 240_000),
    events,
    runs: new Runs(about, [sending.runs, approvals.runs]),
    approvals,
    sending,
    sandbox: look,
    testBench: { url: async () => sandbox.url, events, sandbox: look },
    caller: "local",
    // Each call counts as received when it is made.
    get arrivedAt() {
      return systemClock.now();
    },
    signal: new AbortController().signal,
    canAsk: () => false,
    ...more,
  };
  return {
    sandbox,
    context,
    store,
    /** Sends an event directly to the event API, as an application does. */
    async post(event: unknown): Promise<void> {
      await events.track(JSON.stringify(event));
    },
    /** Makes the sandbox hold all events from the nth on, until the returned function is called. */
    hold: (which: { readonly nth?: number } = {}) => hold(sandbox.url, "trackEvent", which),
    /** Sends a request to the sandbox's control plane. */
    async control(path: string, body: unknown): Promise<void> {
      await fetch(`${sandbox.url}/_sandbox${path}`, { method: "POST", body: JSON.stringify(body) });
    },
  };
}

/** Calls a tool with arguments of any type. Fails if the tool asks the person. */
export async function answerOf<Input extends z.ZodObject>(
  tool: ToolDefinition<Input>,
  given: z.input<Input>,
  context: ToolContext,
) {
  const outcome = await outcomeOf(tool, given, context);
  if ("ask" in outcome) throw new Error(`the tool unexpectedly asked the person: ${outcome.ask.message}`);
  return outcome;
}

/** Calls a tool with arguments of any type. */
export function outcomeOf<Input extends z.ZodObject>(
  tool: ToolDefinition<Input>,
  given: z.input<Input>,
  context: ToolContext,
): Promise<ToolOutcome> {
  return tool.handler(tool.input().parse(given), context);
}
