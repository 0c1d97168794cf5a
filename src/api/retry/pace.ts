import { setMaxListeners } from "node:events";
import type { Clock } from "../../platform/clock.ts";
import { isApiError } from "../errors.ts";

/** How many reads run at the same time where no setting says it. */
export const READS_AT_A_TIME = 16;

/** How long fewer reads run at a time after the service showed that it has too much to do, in milliseconds. */
const SLOWER_MS = 5000;

/**
 * Lets so many reads of one call run at the same time. Each 429, 5xx or lost answer halves that number, and each 5 s
 * without one doubles it again, up to where it began.
 */
export class Pace {
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
