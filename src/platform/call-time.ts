import { AsyncLocalStorage } from "node:async_hooks";

/** A call that is waited for. */
interface WaitedCall {
  /** Until when it has to be answered, in milliseconds of the monotonic clock. */
  readonly until: number;
  isAnswered: boolean;
}

const calls = new AsyncLocalStorage<WaitedCall | undefined>();

/** Does the work of a call that has to be answered by `until`, in milliseconds of the monotonic clock. */
export async function duringCall<T>(until: number, work: () => Promise<T>): Promise<T> {
  const call = { until, isAnswered: false };
  try {
    return await calls.run(call, work);
  } finally {
    call.isAnswered = true;
  }
}

/**
 * Until when the call has to be answered to which the present work belongs, in milliseconds of the monotonic clock;
 * undefined where no call waits for it, or the call was answered.
 */
export function callUntil(): number | undefined {
  const call = calls.getStore();
  return call === undefined || call.isAnswered ? undefined : call.until;
}

/** Does work that a call begins and that does not end with it. */
export function beyondCall<T>(work: () => T): T {
  // A storage that is not in use costs nothing.
  return calls.getStore() === undefined ? work() : calls.run(undefined, work);
}
