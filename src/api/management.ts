import { setMaxListeners } from "node:events";
import { defined } from "../platform/by-key.ts";
import type { Clock } from "../platform/clock.ts";
import type { Fence } from "../runs/turn.ts";
import type { BulkResult, OptionPage, OptionWithContexts, TargetingRecord } from "../spec/records.ts";
import type { BulkOperation, RouteTable } from "../spec/routes.ts";
import {
  bulkResults,
  type Called,
  call,
  optionPageIn,
  optionWithContextsIn,
  retryAfter,
  serverTimeOf,
  targetingIn,
  valueIn,
} from "./answers.ts";
import { BusyError, isApiError, NotSentError, RATE_LIMITED, RejectedError } from "./errors.ts";
import type { Http } from "./http.ts";

export interface BulkAnswer {
  readonly results: readonly BulkResult[];
  /** The time of the service in milliseconds since 1970 (header `Date`). Absent if the service sent none. */
  readonly serverTime?: number;
}

/** The items or IDs of a bulk request, already as JSON, because their size had to be known to form the request. */
export interface BulkItems {
  readonly count: number;
  readonly json: Uint8Array;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** The maximum number of attempts of a read. Set only if the caller can continue without the result. */
  readonly mostTries?: number;
}

interface GetOptionQuery {
  readonly limit?: number;
  readonly offset?: number;
}

/** Which page of a list to read (limits: management-api 8.1). With `parent`, lists the sub-options of this group. */
interface ListOptionsQuery extends GetOptionQuery {
  readonly parent?: string | undefined;
}

/**
 * The management API. Each read or bulk request is one HTTP request (but see `withReadRetry`). Every change is a bulk
 * request. Throws an ApiError if the request fails, or the signal's reason if it was aborted before it was sent.
 */
export interface ManagementApi {
  /**
   * Sends one bulk request (management-api 2.3). Some routes need `targetingId`. `fence` may stop the request right
   * before it is sent. Throws an AmbiguousError if the results are not complete and readable.
   */
  bulk(
    operation: BulkOperation,
    items: BulkItems,
    options?: RequestOptions & { readonly targetingId?: string | undefined; readonly fence?: Fence },
  ): Promise<BulkAnswer>;
  /** Opens a connection if none is idle, so that the next request need not wait. Throws a NotSentError if it fails. */
  connect?(operation: BulkOperation): Promise<void>;
  /** Returns this API for one tool call, with its own limit for simultaneous reads. Absent if reads are not limited. */
  forCall?(): ManagementApi;
  /** How many reads may run at the same time now. Absent if reads are not limited. */
  readonly pace?: { readonly width: number };

  getTargeting(targetingId: string, options?: RequestOptions): Promise<TargetingRecord>;
  listOptions(targetingId: string, query?: ListOptionsQuery, options?: RequestOptions): Promise<OptionPage>;
  getOption(optionId: string, query?: GetOptionQuery, options?: RequestOptions): Promise<OptionWithContexts>;
}

/** What reads need: the API, and a signal that stops them. */
export interface Reading {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
}

type Read<Value> = (options?: RequestOptions) => Promise<Value>;

/** Returns an API whose reads all go through `around`, for example to retry them. */
export function aroundReads(
  api: ManagementApi,
  around: <Value>(read: Read<Value>, options: RequestOptions | undefined) => Promise<Value>,
): ManagementApi {
  return {
    ...api,
    getTargeting: (id, options) => around((within) => api.getTargeting(id, within), options),
    listOptions: (id, query, options) => around((within) => api.listOptions(id, query, within), options),
    getOption: (id, query, options) => around((within) => api.getOption(id, query, within), options),
  };
}

/** Returns the management API (management-api 4) over HTTP. `spec/records.ts` has the forms of its answers. */
export function managementOver(http: Http, routes: RouteTable): ManagementApi {
  return {
    async bulk(operation, { count, json }, { signal, targetingId, fence } = {}) {
      const list = operation === "deleteTargetings" || operation === "deleteOptions" ? "ids" : "items";
      const body = Buffer.concat([Buffer.from(`{"${list}":`), json, Buffer.from("}")]);
      const called = await call(http, routes, operation, { parameters: { targetingId }, body, signal, fence });
      return { results: valueIn(called, (answer) => bulkResults(answer, count)), ...clockOf(called) };
    },
    connect: (operation) => http.connect(operation),
    async getTargeting(targetingId, { signal, timeoutMs } = {}) {
      const parts = { parameters: { targetingId }, signal, timeoutMs };
      return valueIn(await call(http, routes, "getTargeting", parts), targetingIn);
    },
    async listOptions(targetingId, { limit, offset, parent } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { targetingId }, query: { limit, offset, parent }, signal, timeoutMs };
      const called = await call(http, routes, "listOptions", parts);
      return { ...valueIn(called, optionPageIn), ...clockOf(called) };
    },
    async getOption(optionId, { limit, offset } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { optionId }, query: { limit, offset }, signal, timeoutMs };
      const called = await call(http, routes, "getOption", parts);
      return { ...valueIn(called, optionWithContextsIn), ...clockOf(called) };
    },
  };
}

function clockOf({ answer }: Called): { readonly serverTime?: number } {
  return defined({ serverTime: serverTimeOf(answer.headers) });
}

interface ReadRetry {
  readonly clock: Clock;
  /** How long after a read was requested further attempts may start, in milliseconds. */
  readonly budgetMs: number;
  /**
   * The time limit of the first attempt, in milliseconds. Each further attempt may take twice as long as the one
   * before. So attempts that hang end early, and a slow service still gets enough time.
   */
  readonly firstTryMs: number;
  /** How many reads of one tool call may run at a time. Default: 16. */
  readonly width?: number;
}

const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 5000;
/** After this many attempts, a service that cannot be reached is not tried again: its address is probably wrong. */
const TRIES_TO_REACH = 4;
const LONGEST_TRY_MS = 2 ** 31 - 1;

/**
 * Limits simultaneous reads (`AdaptiveConcurrency`). Retries reads that got a 429 or no usable answer, with growing
 * waits, for `budgetMs`; if the service cannot be reached, only up to 4 attempts. Does not retry a read that was
 * rejected. Throws the last error, or the signal's reason if aborted during a wait.
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

const READS_AT_A_TIME = 16;

const SLOWER_MS = 5000;

/**
 * Limits how many reads of one tool call run at the same time. A 429, a 5xx or a lost answer halves the limit. After
 * each 5 seconds without one, the limit doubles again.
 */
export class AdaptiveConcurrency {
  readonly #most: number;
  readonly #clock: Clock;
  #width: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  #running = 0;
  /** The reads that wait because the limit is reached: each function wakes one of them. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#width = most;
    this.#clock = clock;
  }

  /** How many reads may run at the same time now. At least 1. */
  get width(): number {
    const now = this.#clock.now();
    while (this.#width < this.#most && now - this.#changedAt >= SLOWER_MS) {
      this.#width = Math.min(this.#most, this.#width * 2);
      this.#changedAt += SLOWER_MS;
    }
    return this.#width;
  }

  /** Runs a read when the limit allows it. Throws its error, or the signal's reason if aborted during the wait. */
  async run<Value>(read: () => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    // All reads of a call listen to the same signal. Without this, Node would warn about too many listeners.
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

  /** Halves the limit after a read failed, unless the limit has changed since the read started. */
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
 * Returns a client that follows the `Retry-After` of a 429: until that time, it sends no more requests of the same kind
 * (read or write), and throws a BusyError instead. `now` returns monotonic milliseconds.
 */
export function keepingToLimits(http: Http, now: () => number): Http {
  const freeAt = { reads: Number.NEGATIVE_INFINITY, writes: Number.NEGATIVE_INFINITY };
  return {
    ...http,
    async send(request) {
      const kind = request.method === "GET" ? "reads" : "writes";
      const retryAfterMs = Math.ceil(freeAt[kind] - now());
      if (retryAfterMs > 0) {
        const { operation } = request;
        throw new BusyError({ operation, statusCode: RATE_LIMITED, retryAfterMs, isHeldBack: true });
      }
      const answer = await http.send(request);
      if (answer.statusCode === RATE_LIMITED) {
        freeAt[kind] = Math.max(freeAt[kind], now() + retryAfter(answer.headers));
      }
      return answer;
    },
  };
}
