/** The tool calls that have not been answered yet. */
export interface CallsUnderWay {
  /** Counts a call until it ends. */
  during<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is under way, or when so many milliseconds have passed. */
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

/** Notes when a request over HTTP was whole, in milliseconds since 1970: its calls have waited since then. */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

/** When a request was whole; undefined where that was not noted. */
export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
