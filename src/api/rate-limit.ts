import { BusyError, RATE_LIMITED } from "./errors.ts";
import type { Http } from "./http.ts";
import { retryAfter } from "./rejections.ts";

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
