import { expect, test } from "vitest";
import { AmbiguousError, BusyError, NotSentError, RejectedError } from "../../src/api/errors.ts";
import { openHttp } from "../../src/api/http.ts";
import { managementOver, withReadRetry } from "../../src/api/management.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { routesWith } from "../../src/spec/routes.ts";

const operation = "getTargeting";
const found = { _id: "01JABCDEFGHJKMNPQRSTVWXYZ0", name: "a" };

/** A clock that records its sleeps, which end at once. */
function fakeClock(): Clock & { readonly slept: number[] } {
  let time = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => time,
    monotonic: () => time,
    async sleep(ms) {
      slept.push(ms);
      time += ms;
    },
  };
}

/** Reads that fail with these errors, in order, and then succeed. */
function failing(failures: readonly Error[], budgetMs = 120_000) {
  const clock = fakeClock();
  const left = [...failures];
  const http = openHttp({ url: "http://127.0.0.1:1", credential: {}, requestTimeoutMs: 1 });
  const getTargeting = async () => {
    const failure = left.shift();
    if (failure !== undefined) throw failure;
    return found;
  };
  const api = withReadRetry(
    { ...managementOver(http, routesWith({})), getTargeting },
    { clock, budgetMs, firstTryMs: 1000 },
  );
  return { api, clock, left };
}

const ambiguous = new AmbiguousError({ operation, reason: "status 502" });

test("reads are tried again with growing waits", async () => {
  const { api, clock } = failing([ambiguous, ambiguous, ambiguous]);
  expect(await api.getTargeting(found._id)).toEqual(found);
  expect(clock.slept).toEqual([200, 400, 800]);
});

test("the wait that the service asks for is kept", async () => {
  const { api, clock } = failing([new BusyError({ operation, statusCode: 429, retryAfterMs: 3000 })]);
  await api.getTargeting(found._id);
  expect(clock.slept).toEqual([3000]);
});

test("the last error is thrown when the budget is spent", async () => {
  const { api, clock } = failing(
    Array.from({ length: 100 }, () => ambiguous),
    10_000,
  );
  await expect(api.getTargeting(found._id)).rejects.toBe(ambiguous);
  expect(clock.now()).toBeLessThan(10_000);
});

test("a rejection is final", async () => {
  const rejected = new RejectedError({ kind: "forbidden", statusCode: 403, operation, route: "GET /" });
  const { api, clock } = failing([rejected]);
  await expect(api.getTargeting(found._id)).rejects.toBe(rejected);
  expect(clock.slept).toEqual([]);
});

test("a service that cannot be reached is given up early", async () => {
  const notSent = new NotSentError({ operation, reason: "refused" });
  const { api, left } = failing(Array.from({ length: 10 }, () => notSent));
  await expect(api.getTargeting(found._id)).rejects.toBe(notSent);
  expect(left).toHaveLength(6);
});

test("nothing is tried again once the caller has given up", async () => {
  const { api, clock } = failing([ambiguous]);
  const reason = new Error("enough");
  await expect(api.getTargeting(found._id, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(clock.slept).toEqual([]);
});
