const arrivals = new WeakMap<Request, number>();

/** Notes when a request over HTTP was whole, in milliseconds since 1970: its calls have waited since then. */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

/** When a request was whole; undefined where that was not noted. */
export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
