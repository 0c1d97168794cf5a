import { remedyOf } from "../answers/request-messages.ts";
import { networkFailure, RejectedError } from "../api/errors.ts";
import type { EventApi, SandboxApi } from "../api/events.ts";
import { aroundReads, type ManagementApi } from "../api/management.ts";
import type { Changes } from "../changes/changes.ts";
import type { EventRuns } from "../events/run/event-runs.ts";
import type { SuiteFormat } from "../events/suites/emit.ts";
import { thousands } from "../platform/text.ts";
import type { SaveRuns } from "../saves/save-runs.ts";
import { halfWords } from "../settings/environment.ts";
import {
  LEAST_READ_MS,
  type TestBench,
  type ToolContext,
  ToolError,
  type ToolServices,
  type Toolset,
  timeLeft,
  type Waiting,
} from "./define-tool.ts";

/** Throws a ToolError if settings that a tool needs are missing. `either`: those of one of the two APIs are enough. */
export function checkSettingsComplete(toolset: Toolset, { half, blocked, management, events }: ToolServices): void {
  const whole = management ?? events;
  const ofEither = whole === undefined ? (half?.targeting ?? half?.events) : undefined;
  const pair = blocked ?? (toolset === "either" ? ofEither : half?.[toolset]);
  if (pair === undefined) return;
  const { missing: variable, present } = pair;
  const otherwise = present === undefined ? "" : ` (or to remove ${present} there)`;
  throw new ToolError(
    `${halfWords(pair)}; nothing was sent`,
    `Tell the person to set ${variable}${pair.problem === undefined ? "" : " to a valid value"} where this server is started, ` +
      `usually in the env of its entry in the host's configuration${otherwise}, and to restart it; ` +
      "targeting-mcp doctor checks the settings.",
  );
}

/** Returns the management API for a call. A read that outlasts the call throws a DeadlineExceeded. */
export function managementOf(context: Waiting & Pick<ToolContext, "management">): ManagementApi {
  const management = configured("management", context.management);
  return aroundReads(management.forCall?.() ?? management, (read, options) =>
    withinWait(context, options?.signal, (signal) => read({ ...options, signal })),
  );
}

export function eventsOf({ events }: ToolContext): EventApi {
  return configured("event", events);
}

export function testBenchOf({ testBench }: ToolContext): TestBench {
  const bench = configured("event", testBench);
  return { ...bench, sandbox: withRefusalsExplained(bench.sandbox) };
}

/**
 * Returns the address to which the page of a Playwright test sends its events. Other formats do not use it. Throws a
 * ToolError if the port of the embedded sandbox is in use.
 */
export async function emittedUrl(format: SuiteFormat, { testBench }: Pick<ToolServices, "testBench">): Promise<string> {
  if (format !== "playwright" || testBench === undefined) return DEFAULT_SANDBOX_URL;
  try {
    return await testBench.url();
  } catch (thrown) {
    const { reason, network } = networkFailure(thrown);
    if (network !== "sandboxPort") throw thrown;
    throw new ToolError(reason, remedyOf({ network }));
  }
}

const DEFAULT_SANDBOX_URL = "http://127.0.0.1:4010";

/** Returns the sandbox whose events are inspected. A read that outlasts the call throws a DeadlineExceeded. */
export function sandboxOf(context: ToolContext): SandboxApi {
  const { sandbox } = context;
  if (sandbox === undefined) {
    throw new ToolError("no sandbox is configured", "Set TARGETING_MCP_SANDBOX_URL to the address of a sandbox.");
  }
  const { events } = withRefusalsExplained(sandbox);
  return {
    events: (query, options) => withinWait(context, options?.signal, (signal) => events(query, { ...options, signal })),
  };
}

function withRefusalsExplained(sandbox: SandboxApi): SandboxApi {
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

export function changesOf({ changes }: Pick<ToolServices, "changes">): Changes {
  return configured("management", changes);
}

export function savesOf({ saves }: ToolContext): SaveRuns {
  return configured("management", saves);
}

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

/** Thrown if a read takes longer than its call may take (`TARGETING_MCP_WAIT_MS`). */
export class DeadlineExceeded extends ToolError {}

/** Runs `read`. When the call must be answered, aborts it and throws a DeadlineExceeded. */
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
    if (!late.signal.aborted || signal?.aborted === true) throw thrown;
    throw new DeadlineExceeded(
      `the service had not answered after ${thousands(most)} ms, which is the longest time for a call; ` +
        "nothing was changed",
      "Try again later. If it keeps failing, check the address and the network with targeting-mcp doctor, " +
        "or raise TARGETING_MCP_WAIT_MS.",
    );
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for `read`. When the call must be answered, throws a DeadlineExceeded, but lets the read go on. */
export async function fileWithinWait<Value>(waiting: Waiting, read: Promise<Value>): Promise<Value> {
  const waitMs = Math.max(waiting.waitMs, LEAST_READ_MS);
  const finished = read.then((value) => ({ value }));
  const found = await undefinedIfLate({ ...waiting, waitMs }, finished);
  if (found !== undefined) return found.value;
  throw new DeadlineExceeded(
    `the file could not be read within ${thousands(waitMs)} ms, which is the longest time for a call; nothing was sent`,
    "Split the file, or copy it to a faster disk.",
  );
}

/** Waits for `work`. When the call must be answered, returns undefined, but lets the work go on. */
export function undefinedIfLate<Value>(waiting: Waiting, work: Promise<Value>): Promise<Value | undefined> {
  return undefinedAfter(timeLeft(waiting), work, waiting);
}

/** Waits for `work`. After `ms` milliseconds, or if `gaveUp` is aborted, returns undefined, but lets the work go on. */
export async function undefinedAfter<Value>(
  ms: number,
  work: Promise<Value>,
  { clock }: Pick<Waiting, "clock">,
  gaveUp?: AbortSignal,
): Promise<Value | undefined> {
  const over = new AbortController();
  const signal = gaveUp === undefined ? over.signal : AbortSignal.any([over.signal, gaveUp]);
  const ignoreAbort = (thrown: unknown): undefined => {
    if (!signal.aborted) throw thrown;
  };
  const late = clock.sleep(ms, signal).then(() => undefined, ignoreAbort);
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}
