import type { Clock } from "../../platform/clock.ts";
import { isApiError, NotSentError, RejectedError } from "../errors.ts";
import { aroundReads, type ManagementApi, type RequestOptions } from "../management.ts";
import { Pace, READS_AT_A_TIME } from "./pace.ts";

/** How long and by what clock reads are tried again. */
export interface ReadRetry {
  readonly clock: Clock;
  /** From the first try until no other one starts. */
  readonly budgetMs: number;
  /**
   * How long the first try may take, in milliseconds; each further one may take twice as long as the one before. So a
   * request that hangs is given up early, and a slow service still gets the time that it needs.
   */
  readonly firstTryMs: number;
  /** How many reads of one call run at the same time; absent: 16. */
  readonly width?: number;
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5000;
/** A service that cannot be reached is most likely misconfigured, so that waiting longer does not help. */
const TRIES_TO_REACH = 4;
/** The longest time that a timer of Node takes. */
const LONGEST_TRY_MS = 2 ** 31 - 1;

/**
 * The same API, whose reads are tried again with growing waits until the budget is spent: after a 5xx, a time-out, a
 * reset, a 429. A rejection is final. So many reads run at the same time, and fewer for a while after such a failure.
 * Throws the last error, or the signal's reason when stopped while waiting.
 */
export function withReadRetry(api: ManagementApi, retry: ReadRetry): ManagementApi {
  const pace = new Pace(retry.width ?? READS_AT_A_TIME, retry.clock);
  const paced = { ...retry, pace };
  const reads = aroundReads(api, (read, options) => again(paced, options, read));
  return { ...reads, pace, forCall: () => withReadRetry(api, retry) };
}

async function again<Value>(
  { clock, budgetMs, firstTryMs, pace }: ReadRetry & { readonly pace: Pace },
  options: RequestOptions | undefined,
  read: (options: RequestOptions) => Promise<Value>,
): Promise<Value> {
  const end = clock.now() + budgetMs;
  const { mostTries = Number.POSITIVE_INFINITY, timeoutMs = LONGEST_TRY_MS } = options ?? {};
  for (let tries = 1; ; tries += 1) {
    try {
      const thisTryMs = Math.min(firstTryMs * 2 ** (tries - 1), timeoutMs);
      return await pace.run(() => read({ ...options, timeoutMs: thisTryMs }), options?.signal);
    } catch (thrown) {
      if (!isApiError(thrown) || thrown instanceof RejectedError) throw thrown;
      if (tries >= mostTries) throw thrown;
      if (thrown instanceof NotSentError && tries >= TRIES_TO_REACH) throw thrown;
      options?.signal?.throwIfAborted();
      const asked = thrown.effect === "busy" ? thrown.retryAfterMs : 0;
      const wait = Math.max(asked, Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS));
      if (clock.now() + wait >= end) throw thrown;
      await clock.sleep(wait, options?.signal);
    }
  }
}
