/** The tool calls that have not been answered yet. */
export interface CallsUnderWay {
  /** Counts a call until it ends. */
  during<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is in progress, or after `withinMs` milliseconds. */
  idle(withinMs: number): Promise<void>;
}

/** Starts counting. */
export function callsUnderWay(): CallsUnderWay {
  const calls = new Set<Promise<unknown>>();
  return {
    async during(call) {
      const running = call();
      calls.add(running);
      try {
        return await running;
      } finally {
        calls.delete(running);
      }
    },
    async idle(withinMs) {
      let timer: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([Promise.allSettled(calls), over]);
      clearTimeout(timer);
    },
  };
}

const arrivals = new WeakMap<Request, number>();

/**
 * Records when an HTTP request was received completely, in milliseconds since 1970. Its calls have waited since then.
 */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

/** When a request was received completely; undefined if that was not recorded. */
export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
