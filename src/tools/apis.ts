import { RejectedError } from "../api/errors.ts";
import type { EventApi, SandboxApi } from "../api/events.ts";
import { aroundReads, type ManagementApi } from "../api/management.ts";
import type { Changes } from "../changes/changes.ts";
import type { EventRuns } from "../events/run/event-runs.ts";
import type { SuiteFormat } from "../events/suites/emit.ts";
import { thousands } from "../platform/text.ts";
import type { SaveRuns } from "../saves/save-runs.ts";
import { halfWords } from "../settings/environment.ts";
import { LEAST_READ_MS, type TestBench, type ToolContext, type ToolServices } from "./context.ts";
import { ToolError, type Toolset } from "./define-tool.ts";

/**
 * Throws a ToolError if the address or the key of the tool's API is missing or invalid. For a tool of either API,
 * throws only if no API remains. Throws for every tool if a setting blocks all of them.
 */
export function checkSettingsComplete(toolset: Toolset, { half, blocked, management, events }: ToolServices): void {
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
 * Returns the management API, for a tool that is listed only if that API is configured. Its reads end with the wait of
 * the call and then throw a DeadlineExceeded.
 */
export function managementOf(
  context: Pick<ToolContext, "management" | "arrivedAt" | "waitMs" | "clock">,
): ManagementApi {
  const management = configured("management", context.management);
  return withDeadline(management.forCall?.() ?? management, context);
}

/** Returns the event API, for a tool that is listed only if that API is configured. */
export function eventsOf({ events }: ToolContext): EventApi {
  return configured("event", events);
}

/** Returns the sandbox that event tests run against, for a tool that is listed only if the event API is configured. */
export function testBenchOf({ testBench }: ToolContext): TestBench {
  const bench = configured("event", testBench);
  return { ...bench, sandbox: lookedAt(bench.sandbox) };
}

/** Returns the address at which a generated page test expects the events of the page. Other formats need no address. */
export async function emittedUrl(format: SuiteFormat, { testBench }: Pick<ToolServices, "testBench">): Promise<string> {
  return format !== "playwright" || testBench === undefined ? DEFAULT_SANDBOX_URL : testBench.url();
}

/** The default address of `targeting-mcp sandbox`. */
const DEFAULT_SANDBOX_URL = "http://127.0.0.1:4010";

/** Returns the sandbox to inspect, for a tool that is listed only if one exists. Its reads end with the call's wait. */
export function sandboxOf(context: ToolContext): SandboxApi {
  const { sandbox } = context;
  if (sandbox !== undefined) {
    const { events } = lookedAt(sandbox);
    return {
      events: (query, options) =>
        withinWait(context, options?.signal, (signal) => events(query, { ...options, signal })),
    };
  }
  throw new ToolError("no sandbox is configured", "Set TARGETING_MCP_SANDBOX_URL to the address of one.");
}

function lookedAt(sandbox: SandboxApi): SandboxApi {
  return {
    async events(query, options) {
      try {
        return await sandbox.events(query, options);
      } catch (thrown) {
        if (!(thrown instanceof RejectedError)) throw thrown;
        throw new ToolError(
          `the sandbox does not show its events to this server (status ${thrown.statusCode})`,
          "A sandbox shows its events only on its own machine: check TARGETING_MCP_SANDBOX_URL.",
        );
      }
    },
  };
}

/** Plans and starts changes, for a tool that is listed only if the management API is configured. */
export function changesOf({ changes }: Pick<ToolServices, "changes">): Changes {
  return configured("management", changes);
}

/** Saves lists to files, for a tool that is listed only if the management API is configured. */
export function savesOf({ saves }: ToolContext): SaveRuns {
  return configured("management", saves);
}

/** Starts sending events, for a tool that is listed only if the event API is configured. */
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

/** A read was aborted because the call has taken as long as it may (`TARGETING_MCP_WAIT_MS`). */
export class DeadlineExceeded extends ToolError {}

/** The parts of a context that limit how long the reads of a call may take. */
type Waiting = Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">;

/**
 * Runs `read`, and aborts it when the call's time is over. Throws a DeadlineExceeded in that case; otherwise throws
 * what `read` throws. `signal` is the signal of the caller.
 */
export async function withinWait<Value>(
  { arrivedAt, waitMs, clock }: Waiting,
  signal: AbortSignal | undefined,
  read: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const most = Math.max(waitMs, LEAST_READ_MS);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), Math.max(0, arrivedAt + most - clock.now()));
  try {
    return await read(signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]));
  } catch (thrown) {
    if (late.signal.aborted && signal?.aborted !== true) throw tookTooLong(most);
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}

function tookTooLong(most: number): DeadlineExceeded {
  return new DeadlineExceeded(
    `the service had not answered after ${thousands(most)} ms, which is the longest time for a call; ` +
      "nothing was changed",
    "Try again later. If it keeps failing, check the address in the settings and the network (targeting-mcp doctor does), " +
      "or let TARGETING_MCP_WAIT_MS allow more time.",
  );
}

/**
 * Returns what is read from a file, within the time of the call. Throws a DeadlineExceeded if that takes longer;
 * otherwise throws what the read throws. The read then continues in the background and changes nothing.
 */
export async function fileWithinWait<Value>(waiting: Waiting, read: Promise<Value>): Promise<Value> {
  const waitMs = Math.max(waiting.waitMs, LEAST_READ_MS);
  const found = await undefinedIfLate(
    { ...waiting, waitMs },
    read.then((value) => ({ value })),
  );
  if (found !== undefined) return found.value;
  throw new DeadlineExceeded(
    `the file could not be read within ${thousands(waitMs)} ms, which is the longest time for a call; nothing was sent`,
    "Split the file, or copy it to a faster disk.",
  );
}

/** Returns what is read from a file, or undefined if that takes longer than the call may. The read then continues. */
export async function undefinedIfLate<Value>({ arrivedAt, waitMs, clock }: Waiting, read: Promise<Value>) {
  const over = new AbortController();
  const late = clock.sleep(Math.max(0, arrivedAt + waitMs - clock.now()), over.signal).then(() => undefined);
  late.catch(() => undefined);
  try {
    return await Promise.race([read, late]);
  } finally {
    over.abort();
  }
}

/** Returns the same API with reads that take no longer than a call may. */
function withDeadline(api: ManagementApi, waiting: Waiting): ManagementApi {
  return aroundReads(api, (read, options) =>
    withinWait(waiting, options?.signal, (signal) => read({ ...options, signal })),
  );
}
