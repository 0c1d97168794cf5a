interface TimedEvent {
  readonly at: number;
  readonly act: () => void;
}

/** Time that passes only while someone waits. Events that are due happen during the wait, in their order. */
export class VirtualTime {
  #now: number;
  readonly #events: TimedEvent[] = [];

  /** `start` is in milliseconds since 1970. */
  constructor(start: number) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Calls a function at a time. */
  at(time: number, act: () => void): void {
    this.#events.push({ at: time, act });
    this.#events.sort((a, b) => a.at - b.at);
  }

  /** Lets this many milliseconds pass. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (let event = this.#events[0]; event !== undefined && event.at <= until; event = this.#events[0]) {
      this.#events.shift();
      this.#now = Math.max(this.#now, event.at);
      event.act();
    }
    this.#now = until;
  }

  /** Lets all remaining events happen. */
  drain(): void {
    for (let event = this.#events[0]; event !== undefined; event = this.#events[0]) {
      this.advance(Math.max(0, event.at - this.#now));
    }
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    this.advance(ms);
    signal?.throwIfAborted();
  }
}
