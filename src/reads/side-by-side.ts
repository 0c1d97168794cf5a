import { setMaxListeners } from "node:events";

const READS_AT_A_TIME = 16;

/** How many reads may be in progress or wait to be yielded in order, as a multiple of the concurrent reads. */
const RESULTS_AHEAD = 2;

/** An `unreadAhead` that keeps reads concurrent if only 1 in 100 items needs a read. */
export const MANY_UNREAD = 10_000;

interface SideBySide<From, To> {
  /** Returns the items. When no more items are needed, `signal` is aborted. */
  readonly source: (signal: AbortSignal) => Iterable<From> | AsyncIterable<From>;
  /** Returns the result of an item, or undefined. If its promise needs no request, it must call `withoutRead`. */
  readonly map: (from: From, signal: AbortSignal, withoutRead: () => void) => To | undefined | Promise<To | undefined>;
  /**
   * How many more items may wait if they need no read. They wait for the reads of earlier items, because results are
   * yielded in order. Default: 0.
   */
  readonly unreadAhead?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly pace?: { readonly width: number } | undefined;
}

/** An item with its result. Of several consecutive items without a result, possibly only the last is yielded. */
export interface Fetched<From, To> {
  readonly from: From;
  readonly value: To | undefined;
}

interface Slot<From, To> extends Fetched<From, To> {
  value: To | undefined;
  failure?: { readonly thrown: unknown };
  isSettled: boolean;
  needsRead: boolean;
}

/** Reads items concurrently, and yields the results in order. If a read fails, first yields the results before it. */
export async function* sideBySide<From, To>(job: SideBySide<From, To>): AsyncGenerator<Fetched<From, To>, void> {
  const stop = new AbortController();
  const signal = job.signal === undefined ? stop.signal : AbortSignal.any([job.signal, stop.signal]);
  // Many reads listen to this signal. With the default limit, Node would warn of a memory leak.
  setMaxListeners(0, signal);
  const reading = new Reading(job, signal);
  try {
    for (;;) {
      const [head] = reading.slots;
      if (head?.isSettled === true) {
        reading.removeFirst();
        if (head.failure !== undefined) throw head.failure.thrown;
        yield head;
        continue;
      }
      reading.pull();
      if (!reading.isBusy) return reading.checkSource();
      await reading.changed();
    }
  } finally {
    stop.abort(new DOMException("no more is wanted", "AbortError"));
    reading.end();
  }
}

class Reading<From, To> {
  readonly slots: Slot<From, To>[] = [];
  readonly #job: SideBySide<From, To>;
  readonly #signal: AbortSignal;
  readonly #source: AsyncIterator<From> | Iterator<From>;
  #running = 0;
  #reads = 0;
  #isPulling = false;
  #isOver = false;
  #failure: { readonly thrown: unknown } | undefined;
  #change: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};

  constructor(job: SideBySide<From, To>, signal: AbortSignal) {
    this.#job = job;
    this.#signal = signal;
    this.#renew();
    const source = job.source(signal);
    this.#source = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  }

  pull(): void {
    const width = this.#job.pace?.width ?? READS_AT_A_TIME;
    const most = width * RESULTS_AHEAD;
    const hasRoomFor = this.#reads < most && this.slots.length < most + (this.#job.unreadAhead ?? 0);
    const hasRoom = this.#running < width && hasRoomFor;
    if (this.#isPulling || this.#isOver || !hasRoom) return;
    this.#isPulling = true;
    void this.#pull();
  }

  removeFirst(): void {
    this.#forget(this.slots.shift());
  }

  #forget(slot: Slot<From, To> | undefined): void {
    if (slot?.needsRead === true) this.#reads -= 1;
  }

  get isBusy(): boolean {
    return this.#isPulling || this.slots.length > 0;
  }

  /** Resolves when a read has ended or the source has returned an item since the last call. */
  async changed(): Promise<void> {
    await this.#change;
    this.#renew();
  }

  end(): void {
    if (this.#isOver) return;
    Promise.resolve(this.#source.return?.()).catch(() => undefined);
  }

  checkSource(): void {
    if (this.#failure !== undefined) throw this.#failure.thrown;
  }

  #renew(): void {
    this.#change = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #pull(): Promise<void> {
    try {
      const next = await this.#source.next();
      if (next.done === true) this.#isOver = true;
      else this.#take(next.value);
    } catch (thrown) {
      this.#isOver = true;
      this.#failure = { thrown };
    } finally {
      this.#isPulling = false;
      this.#wake();
    }
  }

  #take(from: From): void {
    const slot: Slot<From, To> = { from, value: undefined, isSettled: false, needsRead: true };
    this.#reads += 1;
    const withoutRead = (): void => {
      if (slot.needsRead) this.#reads -= 1;
      slot.needsRead = false;
    };
    const value = this.#job.map(from, this.#signal, withoutRead);
    if (value instanceof Promise) {
      this.#running += 1;
      void value
        .then(
          (fetched) => {
            slot.value = fetched;
          },
          (thrown: unknown) => {
            slot.failure = { thrown };
          },
        )
        .finally(() => {
          this.#running -= 1;
          slot.isSettled = true;
          this.#wake();
        });
    } else {
      withoutRead();
      slot.value = value;
      slot.isSettled = true;
    }
    const before = this.slots.at(-1);
    if (before?.isSettled === true && before.value === undefined && before.failure === undefined)
      this.#forget(this.slots.pop());
    this.slots.push(slot);
  }
}

export function pagesAhead<Page>(
  read: (offset: number, signal: AbortSignal) => Promise<Page>,
  about: Pick<SideBySide<number, Page>, "signal" | "pace">,
) {
  const { signal = new AbortController().signal } = about;
  let ahead: AsyncGenerator<Fetched<number, Page>, void> | undefined;
  const stop = async (): Promise<void> => {
    const before = ahead;
    ahead = undefined;
    await before?.return();
  };
  return {
    stop,
    /** Returns the page at `offset`, and reads ahead as `expect` has set. Reads it now if it was not read ahead. */
    async at(offset: number): Promise<Page> {
      const next = await ahead?.next();
      if (next !== undefined && next.done !== true && next.value.from === offset && next.value.value !== undefined)
        return next.value.value;
      await stop();
      return read(offset, signal);
    },
    /** Makes later calls of `at` read ahead: the pages at `offset`, `offset + step` and so on before `end`. */
    expect(offset: number, step: number, end: number): void {
      if (ahead !== undefined || step <= 0) return;
      const offsets = function* () {
        for (let at = offset; at < end; at += step) yield at;
      };
      ahead = sideBySide({ ...about, source: offsets, map: read });
    },
  };
}
