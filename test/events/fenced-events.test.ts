import { expect, test } from "vitest";
import { NotSentError } from "../../src/api/errors.ts";
import type { EventApi } from "../../src/api/events.ts";
import { fencedEvents } from "../../src/events/run/drive.ts";
import { HeldBackError, LeaseLostError, permitWithoutLease, readClocks, type Turn } from "../../src/runs/turn.ts";

/** Creates an event API behind a fence, in a time that only the test moves. Returns the outcome of each event. */
function fenced({ standsFor = 0, more = {} }: { readonly standsFor?: number; readonly more?: Partial<Turn> } = {}) {
  const time = { now: 0, still: standsFor };
  const clock = { now: () => time.now, monotonic: () => time.now, sleep: async () => {} };
  const counts = { renewals: 0, arrived: 0, connections: 0 };
  const turn: Turn = {
    ...permitWithoutLease(clock),
    renew: async () => {
      counts.renewals += 1;
      return readClocks(clock);
    },
    ...more,
  };
  const api: EventApi = {
    connect: async () => {
      counts.connections += 1;
    },
    async track(_body, options) {
      time.now += time.still;
      time.still = 0;
      try {
        options?.fence?.mayLeave();
      } catch (cause) {
        throw new NotSentError({ operation: "trackEvent", reason: "held back" }, { cause });
      }
      counts.arrived += 1;
      return { statusCode: 200, message: "ok" };
    },
  };
  return { api: fencedEvents(api, turn, clock.monotonic), time, counts };
}

test("the lease is renewed once for all events of a second, and a connection is there before", async () => {
  const { api, time, counts } = fenced();
  await Promise.all(Array.from({ length: 16 }, () => api.track("{}")));
  expect(counts).toEqual({ renewals: 1, arrived: 16, connections: 1 });
  time.now += 1001;
  await Promise.all(Array.from({ length: 16 }, () => api.track("{}")));
  expect(counts).toEqual({ renewals: 2, arrived: 32, connections: 2 });
});

test("an event that was kept back leaves once the lease is renewed", async () => {
  const { api, counts } = fenced({ standsFor: 60_000 });
  expect(await api.track("{}")).toEqual({ statusCode: 200, message: "ok" });
  expect(counts).toMatchObject({ renewals: 2, arrived: 1 });
});

test("no event leaves once another process drives the run", async () => {
  const lost = fenced({ more: { renew: () => Promise.reject(new LeaseLostError("lost")) } });
  await expect(lost.api.track("{}")).rejects.toBeInstanceOf(LeaseLostError);
  expect(lost.counts.arrived).toBe(0);
  expect(new LeaseLostError("lost")).toBeInstanceOf(HeldBackError);
});

test("where every event is too late, it is told that it was not sent", async () => {
  const mayLeave = (): never => {
    throw new HeldBackError("too late");
  };
  const { api, counts } = fenced({ more: { mayLeave } });
  await expect(api.track("{}")).rejects.toBeInstanceOf(NotSentError);
  expect(counts).toMatchObject({ renewals: 10, arrived: 0 });
});
