import { aroundReads, type ManagementApi } from "../api/management.ts";
import { thousands } from "../platform/text.ts";
import { LEAST_READ_MS, type ToolContext } from "./context.ts";
import { ToolError } from "./define-tool.ts";

/** A read was given up, since the call has taken as long as it may (`TARGETING_MCP_WAIT_MS`). */
export class DeadlineExceeded extends ToolError {}

/** What decides how long the reads of a call may take. */
type Waiting = Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">;

/**
 * Reads, but no longer than the call may take: then `read` is aborted. Throws a DeadlineExceeded in that case, and else what
 * `read` throws. `signal` is that of the caller.
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
    `the service had not answered after ${thousands(most)} ms, which is as long as a call may take; ` +
      "nothing was changed",
    "Try again later. If it stays so, check the address in the settings and the network (targeting-mcp doctor does), " +
      "or let TARGETING_MCP_WAIT_MS allow more time.",
  );
}

/**
 * Gives what is read from a file, but waits no longer for it than the call may take. Throws a DeadlineExceeded in that case,
 * and else what the reading throws. A reading that was given up goes on and changes nothing.
 */
export async function fileWithinWait<Value>(
  { arrivedAt, waitMs, clock }: Waiting,
  read: Promise<Value>,
): Promise<Value> {
  const most = Math.max(waitMs, LEAST_READ_MS);
  const over = new AbortController();
  const late = async (): Promise<never> => {
    await clock.sleep(Math.max(0, arrivedAt + most - clock.now()), over.signal);
    throw new DeadlineExceeded(
      `the file could not be read within ${thousands(most)} ms, which is as long as a call may take; nothing was sent`,
      "Split the file, or copy it to a faster disk.",
    );
  };
  try {
    return await Promise.race([read, late()]);
  } finally {
    over.abort();
  }
}

/** What is read from a file; undefined where that takes longer than the call may. It goes on being read. */
export async function unlessLate<Value>({ arrivedAt, waitMs, clock }: Waiting, read: Promise<Value>) {
  const over = new AbortController();
  const late = clock.sleep(Math.max(0, arrivedAt + waitMs - clock.now()), over.signal).then(() => undefined);
  late.catch(() => undefined);
  try {
    return await Promise.race([read, late]);
  } finally {
    over.abort();
  }
}

/** The same API, whose reads take no longer than a call may. */
export function withDeadline(api: ManagementApi, waiting: Waiting): ManagementApi {
  return aroundReads(api, (read, options) =>
    withinWait(waiting, options?.signal, (signal) => read({ ...options, signal })),
  );
}
