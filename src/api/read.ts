import type { Clock } from "./clock.ts";
import { isApiError, NotSentError, RejectedError } from "./errors.ts";
import type { ManagementApi, RequestOptions } from "./management.ts";

/** How long and by what clock reads are tried again. */
export interface ReadRetry {
  readonly clock: Clock;
  /** From the first try until no other one starts. */
  readonly budgetMs: number;
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5000;
/** A service that cannot be reached is most likely misconfigured: waiting long for it helps nobody. */
const TRIES_TO_REACH = 4;

/**
 * The same API, whose reads are tried again with growing waits until the budget is spent: after a 5xx, a time-out, a
 * reset, a 429. A rejection is final. Throws the last error, or the signal's reason when stopped while waiting.
 */
export function withReadRetry(api: ManagementApi, retry: ReadRetry): ManagementApi {
  return {
    ...api,
    getTargeting: (targetingId, options) => again(retry, options, () => api.getTargeting(targetingId, options)),
    listOptions: (targetingId, query, options) =>
      again(retry, options, () => api.listOptions(targetingId, query, options)),
    getOption: (optionId, query, options) => again(retry, options, () => api.getOption(optionId, query, options)),
  };
}

async function again<Value>(
  { clock, budgetMs }: ReadRetry,
  options: RequestOptions | undefined,
  read: () => Promise<Value>,
): Promise<Value> {
  const end = clock.now() + budgetMs;
  for (let tries = 1; ; tries += 1) {
    try {
      return await read();
    } catch (thrown) {
      if (!isApiError(thrown) || thrown instanceof RejectedError) throw thrown;
      if (thrown instanceof NotSentError && tries >= TRIES_TO_REACH) throw thrown;
      options?.signal?.throwIfAborted();
      const asked = thrown.effect === "busy" ? thrown.retryAfterMs : 0;
      const wait = Math.max(asked, Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS));
      if (clock.now() + wait >= end) throw thrown;
      await clock.sleep(wait, options?.signal);
    }
  }
}
