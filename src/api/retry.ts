import { setMaxListeners } from "node:events";
import type { Clock } from "../platform/clock.ts";
import { BusyError, isApiError, NotSentError, RATE_LIMITED, RejectedError } from "./errors.ts";
import type { Http } from "./http.ts";
import { aroundReads, type ManagementApi, type RequestOptions } from "./management.ts";
import { retryAfter } from "./rejections.ts";

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
  const pace = new AdaptiveConcurrency(retry.width ?? READS_AT_A_TIME, retry.clock);
  const paced = { ...retry, pace };
  const reads = aroundReads(api, (read, options) => again(paced, options, read));
  return { ...reads, pace, forCall: () => withReadRetry(api, retry) };
}

async function again<Value>(
  { clock, budgetMs, firstTryMs, pace }: ReadRetry & { readonly pace: AdaptiveConcurrency },
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

/** How many reads run at the same time where no setting says it. */
const READS_AT_A_TIME = 16;

/** How long fewer reads run at a time after the service showed that it has too much to do, in milliseconds. */
const SLOWER_MS = 5000;

/**
 * Lets so many reads of one call run at the same time. Each 429, 5xx or lost answer halves that number, and each 5 s
 * without one doubles it again, up to where it began.
 */
export class AdaptiveConcurrency {
  readonly #most: number;
  readonly #clock: Clock;
  #width: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  #running = 0;
  /** What lets each read start that waits for its turn. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#width = most;
    this.#clock = clock;
  }

  /** How many reads may run at the same time by now; at least one. */
  get width(): number {
    const now = this.#clock.now();
    while (this.#width < this.#most && now - this.#changedAt >= SLOWER_MS) {
      this.#width = Math.min(this.#most, this.#width * 2);
      this.#changedAt += SLOWER_MS;
    }
    return this.#width;
  }

  /** Reads as soon as there is room. Throws what `read` throws, and the signal's reason when stopped while waiting. */
  async run<Value>(read: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    // As many reads as run and wait listen to the signal of their call: that is no leak.
    if (signal !== undefined) setMaxListeners(0, signal);
    while (this.#running >= this.width) await this.#turn(signal);
    signal?.throwIfAborted();
    this.#running += 1;
    const startedAt = this.#clock.now();
    try {
      return await read();
    } catch (thrown) {
      if (isApiError(thrown) && (thrown.effect === "busy" || thrown.effect === "ambiguous")) this.#slower(startedAt);
      throw thrown;
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }

  /** Reads that left before the width was halved say nothing about the halved one. */
  #slower(startedAt: number): void {
    if (startedAt < this.#changedAt) return;
    this.#width = Math.max(1, Math.floor(this.width / 2));
    this.#changedAt = this.#clock.now() + 1;
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(start);
        reject(signal?.reason);
      };
      const start = (): void => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal?.aborted === true) return onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(start);
    });
  }

  #startNext(): void {
    let room = this.width - this.#running;
    for (const start of this.#waiting) {
      if (room <= 0) return;
      room -= 1;
      this.#waiting.delete(start);
      start();
    }
  }
}

/**
 * The same requests, but none before its time: once the service has limited reads or writes (429 with `Retry-After`),
 * each further one until then fails with a BusyError that says how long to wait, without being sent. `now` in
 * milliseconds, never going back.
 */
export function keepingToLimits(http: Http, now: () => number): Http {
  const freeAt = { reads: Number.NEGATIVE_INFINITY, writes: Number.NEGATIVE_INFINITY };
  return {
    ...http,
    async send(request) {
      const kind = request.method === "GET" ? "reads" : "writes";
      const retryAfterMs = Math.ceil(freeAt[kind] - now());
      if (retryAfterMs > 0) {
        throw new BusyError({ operation: request.operation, statusCode: RATE_LIMITED, retryAfterMs });
      }
      const answer = await http.send(request);
      if (answer.statusCode === RATE_LIMITED) {
        freeAt[kind] = Math.max(freeAt[kind], now() + retryAfter(answer.headers));
      }
      return answer;
    },
  };
}
