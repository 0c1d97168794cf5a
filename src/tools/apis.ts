import { RejectedError } from "../api/errors.ts";
import type { EventApi, SandboxApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";
import type { Changes } from "../changes/changes.ts";
import type { EventRuns } from "../events/run/event-runs.ts";
import type { SuiteFormat } from "../events/suites/emit.ts";
import type { SaveRuns } from "../saves/save-runs.ts";
import { halfWords } from "../settings/environment.ts";
import type { TestBench, ToolContext, ToolServices } from "./context.ts";
import { ToolError, type Toolset } from "./define-tool.ts";
import { withDeadline, withinWait } from "./within-wait.ts";

/**
 * Throws a ToolError where a tool works with an API of which the address or the key is missing or cannot be used; a tool
 * of either API where that leaves none; any tool where a setting blocks all.
 */
export function checkNotHalf(toolset: Toolset, { half, blocked, management, events }: ToolServices): void {
  const whole = management ?? events;
  const ofEither = whole === undefined ? (half?.targeting ?? half?.events) : undefined;
  const pair = blocked ?? (toolset === "either" ? ofEither : half?.[toolset]);
  if (pair === undefined) return;
  const { missing: variable, present } = pair;
  const otherwise = present === undefined ? "" : ` (or to take ${present} out there)`;
  throw new ToolError(
    `${halfWords(pair)}; nothing was sent`,
    `Tell the person to set ${variable}${pair.problem === undefined ? "" : " right"} where this server is started, ` +
      `which is the env of its entry in the host's configuration${otherwise}, and to restart it; ` +
      "targeting-mcp doctor checks it.",
  );
}

/**
 * The management API, for a tool that is listed only where it is configured. Its reads end with the wait of the call:
 * they then throw a DeadlineExceeded.
 */
export function managementOf(
  context: Pick<ToolContext, "management" | "arrivedAt" | "waitMs" | "clock">,
): ManagementApi {
  const management = configured("management", context.management);
  return withDeadline(management.forCall?.() ?? management, context);
}

/** The event API, for a tool that is listed only where it is configured. */
export function eventsOf({ events }: ToolContext): EventApi {
  return configured("event", events);
}

/** The sandbox that tests of events run against, for a tool that is listed only where events are configured. */
export function testBenchOf({ testBench }: ToolContext): TestBench {
  const bench = configured("event", testBench);
  return { ...bench, sandbox: lookedAt(bench.sandbox) };
}

/** Where an emitted page test expects the events of the page by default; the other formats need no address. */
export async function emittedUrl(format: SuiteFormat, { testBench }: Pick<ToolServices, "testBench">): Promise<string> {
  return format !== "playwright" || testBench === undefined ? DEFAULT_SANDBOX_URL : testBench.url();
}

/** Where `targeting-mcp sandbox` listens, unless it is shown otherwise. */
const DEFAULT_SANDBOX_URL = "http://127.0.0.1:4010";

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
          `the sandbox does not let its events be seen from here (status ${thrown.statusCode})`,
          "It shows its events only on the machine it runs on: check TARGETING_MCP_SANDBOX_URL.",
        );
      }
    },
  };
}

/** What plans and starts changes, for a tool that is listed only where the management API is configured. */
export function changesOf({ changes }: Pick<ToolServices, "changes">): Changes {
  return configured("management", changes);
}

/** What saves lists to files, for a tool that is listed only where the management API is configured. */
export function savesOf({ saves }: ToolContext): SaveRuns {
  return configured("management", saves);
}

/** What starts the sending of events, for a tool that is listed only where the event API is configured. */
export function sendingOf({ sending }: ToolContext): EventRuns {
  return configured("event", sending);
}

const SETTINGS = {
  management: "Set TARGETING_API_URL and TARGETING_API_KEY.",
  event: "Set EVENT_API_URL and EVENT_APP_KEY.",
} as const;

function configured<Service>(api: keyof typeof SETTINGS, service: Service | undefined): Service {
  if (service !== undefined) return service;
  throw new ToolError(`the ${api} API is not configured`, SETTINGS[api]);
}
