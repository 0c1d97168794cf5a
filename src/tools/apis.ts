import { RejectedError } from "../api/errors.ts";
import type { EventApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";
import type { SandboxApi } from "../api/sandbox.ts";
import type { EventRuns } from "../events/event-runs.ts";
import type { TestBench, ToolContext } from "./context.ts";
import { ToolError } from "./definition.ts";
import { readingWithinWait, withinWait } from "./within-wait.ts";

/**
 * The management API, for a tool that is listed only where it is configured. Its reads end with the wait of the call:
 * they then throw a TookTooLong.
 */
export function managementOf(
  context: Pick<ToolContext, "management" | "arrivedAt" | "waitMs" | "clock">,
): ManagementApi {
  if (context.management !== undefined) return readingWithinWait(context.management, context);
  throw new ToolError("the management API is not configured", "Set TARGETING_API_URL and TARGETING_API_KEY.");
}

/** The event API, for a tool that is listed only where it is configured. */
export function eventsOf({ events }: ToolContext): EventApi {
  if (events !== undefined) return events;
  throw new ToolError("the event API is not configured", "Set EVENT_API_URL and EVENT_APP_KEY.");
}

/** The sandbox that tests of events run against, for a tool that is listed only where events are configured. */
export function testBenchOf({ testBench }: ToolContext): TestBench {
  if (testBench !== undefined) return { ...testBench, sandbox: lookedAt(testBench.sandbox) };
  throw new ToolError("the event API is not configured", "Set EVENT_API_URL and EVENT_APP_KEY.");
}

/** The sandbox to look at, for a tool that is listed only where there is one. Looking ends with the wait of the call. */
export function sandboxOf(context: ToolContext): SandboxApi {
  const { sandbox } = context;
  if (sandbox !== undefined) {
    const { events } = lookedAt(sandbox);
    return {
      events: (query, options) =>
        withinWait(context, options?.signal, (signal) => events(query, { ...options, signal })),
    };
  }
  throw new ToolError("there is no sandbox to look at", "Set TARGETING_MCP_SANDBOX_URL to the address of one.");
}

function lookedAt(sandbox: SandboxApi): SandboxApi {
  return {
    async events(query, options) {
      try {
        return await sandbox.events(query, options);
      } catch (thrown) {
        if (!(thrown instanceof RejectedError)) throw thrown;
        throw new ToolError(
          `the sandbox does not let anybody look into it from here (status ${thrown.statusCode})`,
          "It shows its events only on the machine it runs on: check TARGETING_MCP_SANDBOX_URL.",
        );
      }
    },
  };
}

/** The runs of events, for a tool that is listed only where the event API is configured. */
export function eventRunsOf({ eventRuns }: ToolContext): EventRuns {
  if (eventRuns !== undefined) return eventRuns;
  throw new ToolError("the event API is not configured", "Set EVENT_API_URL and EVENT_APP_KEY.");
}
