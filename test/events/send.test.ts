import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AmbiguousError, BusyError, NotSentError, RejectedError, type RejectionKind } from "../../src/api/errors.ts";
import type { EventAnswer, EventApi } from "../../src/api/events.ts";
import { type IndexedEvent, type SendOptions, type SendReport, sendEvents } from "../../src/events/run/send.ts";
import type { EventSettlement } from "../../src/events/run/verdicts.ts";
import { virtualClock } from "./virtual-clock.ts";

const operation = "trackEvent" as const;
const numbered = z.looseObject({ n: z.number() });
const RETRY_BUDGET_MS = 10_000;

/** What the service does with a request. The answers to `keptAnswerLost` and `droppedAnswerLost` never arrive. */
type Step = "ok" | "invalid" | "strange" | "notSent" | "busy" | "keptAnswerLost" | "droppedAnswerLost" | RejectionKind;

interface Service {
  readonly api: EventApi;
  /** The `n` of each stored event, in the order of arrival. */
  readonly kept: number[];
  /** The `n` of the event in each request that has started. */
  readonly begun: number[];
  most: number;
}

/**
 * Creates a service that follows a script: one step for each attempt at an event, and after the last step always that
 * one.
 */
function scripted(scriptOf: (n: number) => readonly Step[]): Service {
  const attempts = new Map<number, number>();
  let underWay = 0;
  const service: Service = { api: { track }, kept: [], begun: [], most: 0 };
  async function track(body: string): Promise<EventAnswer> {
    const { n } = numbered.parse(JSON.parse(body));
    service.begun.push(n);
    underWay += 1;
    service.most = Math.max(service.most, underWay);
    await setImmediate();
    underWay -= 1;
    const attempt = attempts.get(n) ?? 0;
    attempts.set(n, attempt + 1);
    const script = scriptOf(n);
    return answer(script[Math.min(attempt, script.length - 1)] ?? "ok", n);
  }
  function answer(step: Step, n: number): EventAnswer {
    switch (step) {
      case "ok":
        service.kept.push(n);
        return { statusCode: 200, message: "ok" };
      case "invalid":
        return { statusCode: 400, message: "!invalid" };
      case "strange":
        return { statusCode: 200, message: "maybe" };
      case "notSent":
        throw new NotSentError({ operation, reason: "connection refused" });
      case "busy":
        throw new BusyError({ operation, statusCode: 429, retryAfterMs: 10 });
      case "keptAnswerLost":
        service.kept.push(n);
        throw new AmbiguousError({ operation, reason: "reset" });
      case "droppedAnswerLost":
        throw new AmbiguousError({ operation, reason: "reset", statusCode: 502 });
      default:
        throw new RejectedError({ operation, kind: step, statusCode: 401, route: "POST /event" });
    }
  }
  return service;
}

function eventOf(n: number, uid = "u"): IndexedEvent {
  return { index: n, event: { uid, eventName: "app_open", n } };
}

async function send(
  events: Iterable<IndexedEvent> | AsyncIterable<IndexedEvent>,
  service: Service,
  options: Partial<SendOptions> = {},
): Promise<SendReport & { readonly settled: ReadonlyMap<number, EventSettlement>; readonly counts: Counts }> {
  const settled = new Map<number, EventSettlement>();
  const counts = { items: 0, succeeded: 0, failed: 0, unknown: 0, notApplied: 0, sent: 0, resent: 0 };
  const report = await sendEvents(events, {
    api: service.api,
    clock: virtualClock(),
    retryBudgetMs: RETRY_BUDGET_MS,
    ...options,
    onSettled(index, settlement, event) {
      expect(settled.has(index)).toBe(false);
      settled.set(index, settlement);
      counts.items += 1;
      counts[settlement.outcome] += 1;
      counts.sent += settlement.attempts;
      counts.resent += Math.max(0, settlement.attempts - 1);
      return options.onSettled?.(index, settlement, event);
    },
  });
  return { ...report, settled, counts };
}

type Counts = Readonly<Record<EventSettlement["outcome"] | "items" | "sent" | "resent", number>>;

describe("the outcome of one event", () => {
  const cases: readonly (readonly [string, readonly Step[], Partial<SendOptions>, Partial<EventSettlement>, number])[] =
    [
      ["ok", ["ok"], {}, { outcome: "succeeded", statusCode: 200, attempts: 1 }, 1],
      ["!invalid", ["invalid"], {}, { outcome: "failed", observed: "rejected", reason: "invalid", statusCode: 400 }, 0],
      ["another word", ["strange"], {}, { outcome: "unknown", reason: "answerNotUnderstood" }, 0],
      ["a lost answer", ["keptAnswerLost", "ok"], {}, { outcome: "unknown", reason: "answerLost", attempts: 1 }, 1],
      ["a 502", ["droppedAnswerLost", "ok"], {}, { outcome: "unknown", reason: "answerLost", statusCode: 502 }, 0],
      [
        "a lost answer, resent",
        ["keptAnswerLost", "ok"],
        { onUnknown: "resend" },
        { outcome: "succeeded", maybeTwice: true },
        2,
      ],
      ["answers lost for good", ["droppedAnswerLost"], { onUnknown: "resend" }, { outcome: "unknown" }, 0],
      ["lost, then never sent", ["keptAnswerLost", "notSent"], { onUnknown: "resend" }, { outcome: "unknown" }, 1],
      ["lost, then 401", ["keptAnswerLost", "unauthorized"], { onUnknown: "resend" }, { outcome: "unknown" }, 1],
      ["lost, then !invalid", ["droppedAnswerLost", "invalid"], { onUnknown: "resend" }, { outcome: "failed" }, 0],
      ["not sent at first", ["notSent", "notSent", "ok"], {}, { outcome: "succeeded", attempts: 1 }, 1],
      ["busy at first", ["busy", "ok"], {}, { outcome: "succeeded", attempts: 2 }, 1],
      ["never sent", ["notSent"], {}, { outcome: "notApplied", reason: "notSent" }, 0],
      ["always busy", ["busy"], {}, { outcome: "notApplied", reason: "busy", statusCode: 429 }, 0],
      ["too large", ["tooLarge"], {}, { outcome: "failed", reason: "rejected" }, 0],
    ];

  it.each(cases)("%s", async (_title, script, options, expected, kept) => {
    const service = scripted(() => script);
    const { settled } = await send([eventOf(0)], service, options);
    expect(settled.get(0)).toMatchObject(expected);
    expect(service.kept.length).toBe(kept);
  });

  it.each([
    [{ uid: "u", eventName: "Purchase" }, "ignored"],
    [{ uid: "u", eventName: "sign_up" }, "ignored"],
    [{ eventName: "app_open" }, "rejected"],
    [null, "rejected"],
  ])("%j is refused and never sent", async (event, verdict) => {
    const service = scripted(() => ["ok"]);
    const { settled, counts } = await send([{ index: 7, event }], service);
    expect(settled.get(7)).toMatchObject({ outcome: "failed", reason: "refused", attempts: 0, predicted: { verdict } });
    expect(service.begun).toEqual([]);
    expect(counts).toMatchObject({ items: 1, failed: 1, sent: 0 });
  });

  it("sends an event whose verdict is uncertain", async () => {
    const service = scripted(() => ["ok"]);
    const { settled } = await send(
      [{ index: 0, event: { uid: "u", eventName: "sign_up", method: "", n: 0 } }],
      service,
    );
    expect(settled.get(0)).toMatchObject({ outcome: "succeeded", predicted: { verdict: "uncertain" } });
  });
});

describe("a run", () => {
  it("counts the time in which events waited side by side once", async () => {
    const service = scripted(() => ["busy", "ok"]);
    const events = Array.from({ length: 12 }, (_, n) => ({
      index: n,
      event: { uid: `u${n}`, eventName: "app_open", n },
    }));
    const { counts, waitedMs } = await send(events, service);
    expect(counts).toMatchObject({ succeeded: 12, resent: 12 });
    expect(waitedMs).toBe(50);
  });

  it("takes events that were held back when it ends for events that were not tried", async () => {
    const held = new BusyError({ operation, statusCode: 429, retryAfterMs: 50, isHeldBack: true });
    const foreign = new RejectedError({ operation, kind: "foreign", statusCode: 403, route: "POST /event" });
    const service = scripted(() => ["ok"]);
    const track = async (body: string) => {
      throw body.includes('"u0"') ? foreign : held;
    };
    const events = Array.from({ length: 5 }, (_, n) => eventOf(n, `u${n}`));
    const { settled } = await send(events, { ...service, api: { track } });
    expect(settled.get(4)).toMatchObject({ outcome: "notApplied", reason: "runEnded", attempts: 0 });
  });

  it.each<RejectionKind>(["unauthorized", "forbidden", "wrongRoute", "redirect"])("ends at %s", async (kind) => {
    const service = scripted((n) => [n === 3 ? kind : "ok"]);
    const events = Array.from({ length: 500 }, (_, n) => eventOf(n));
    const { counts, ended, settled } = await send(events, service);
    expect(ended).toMatchObject({ kind, statusCode: 401, problem: { kind, route: "POST /event" } });
    expect(counts).toMatchObject({ items: 500, succeeded: 3, failed: 0, notApplied: 497, unknown: 0, sent: 4 });
    expect(settled.get(3)).toMatchObject({ outcome: "notApplied", reason: "runEnded", attempts: 1 });
    expect(settled.get(4)).toMatchObject({ outcome: "notApplied", reason: "runEnded", attempts: 0 });
  });

  it("ends when the service cannot be reached for a whole retry budget", async () => {
    const service = scripted(() => ["notSent"]);
    const events = Array.from({ length: 2000 }, (_, n) => eventOf(n, `u-${n}`));
    const { counts, ended } = await send(events, service);
    expect(ended).toMatchObject({ kind: "unreachable", problem: { reason: "connection refused" } });
    expect(counts).toMatchObject({ items: 2000, notApplied: 2000 });
    expect(new Set(service.begun).size).toBe(16);
  });

  it("stops when it is told to: what is under way ends, nothing else begins", async () => {
    const stop = new AbortController();
    const service = scripted(() => ["ok"]);
    const events = Array.from({ length: 300 }, (_, n) => eventOf(n, `u-${n}`));
    let settled = 0;
    const { counts } = await send(events, service, {
      signal: stop.signal,
      onSettled() {
        settled += 1;
        if (settled === 20) stop.abort();
      },
    });
    expect(counts.succeeded).toBe(service.begun.length);
    expect(counts.succeeded).toBeLessThan(20 + 16);
    expect(counts.succeeded + counts.notApplied).toBe(300);
  });

  it("stops during a wait", async () => {
    const stop = new AbortController();
    const service = scripted(() => ["notSent"]);
    const clock = virtualClock();
    const { settled } = await send([eventOf(0)], service, {
      signal: stop.signal,
      clock: {
        now: clock.now,
        monotonic: clock.monotonic,
        sleep(ms, signal) {
          stop.abort();
          return clock.sleep(ms, signal);
        },
      },
    });
    expect(settled.get(0)).toMatchObject({ outcome: "notApplied" });
  });

  it("sends at most `concurrency` at once, and one at a time of each uid, in order", async () => {
    const service = scripted((n) => (n % 7 === 0 ? ["notSent", "ok"] : ["ok"]));
    const events = Array.from({ length: 400 }, (_, n) => eventOf(n, `u-${n % 40}`));
    await send(events, service, { concurrency: 8 });
    expect(service.most).toBe(8);
    for (let user = 0; user < 40; user += 1) {
      const own = service.kept.filter((n) => n % 40 === user);
      expect(own).toEqual(own.toSorted((one, other) => one - other));
    }
  });

  it.each([
    ["each of a user of its own", 1000],
    ["of a few users", 7],
    ["of one user", 1],
  ])("announces events %s before they leave, and at most 100 beside those under way", async (_, users) => {
    const service = scripted(() => ["ok"]);
    const announced = new Set<number>();
    const ahead: number[] = [];
    const events = Array.from({ length: 1000 }, (_, n) => eventOf(n, `u-${n % users}`));
    await send(events, service, {
      beforeSend: async (indexes) => {
        ahead.push(announced.size - service.begun.length + indexes.length);
        await setImmediate();
        expect(service.begun.filter((n) => indexes.includes(n))).toEqual([]);
        for (const index of indexes) announced.add(index);
      },
    });
    expect(Math.max(...ahead)).toBeLessThanOrEqual(100);
    // One write to the disk announces many events.
    expect(ahead.length).toBeLessThan(70);
    expect(announced.size).toBe(1000);
  });

  it("announces more events at a time where the service is faster than the journal", async () => {
    const service = scripted(() => ["ok"]);
    const ahead: number[] = [];
    const events = Array.from({ length: 1000 }, (_, n) => eventOf(n, `u-${n}`));
    await send(events, service, {
      async beforeSend(indexes) {
        ahead.push(indexes.length);
        for (let turn = 0; turn < 10; turn += 1) await setImmediate();
      },
    });
    expect(ahead[0]).toBe(32);
    expect(ahead.at(-2)).toBeGreaterThanOrEqual(50);
    expect(ahead.length).toBeLessThan(22);
  });

  it("announces few events while the service is slower than the journal", async () => {
    const service = scripted(() => ["ok"]);
    let ahead = 0;
    let announced = 0;
    await send(
      Array.from({ length: 1000 }, (_, n) => eventOf(n, `u-${n % 50}`)),
      service,
      {
        async beforeSend(indexes) {
          announced += indexes.length;
          ahead = Math.max(ahead, announced - service.begun.length);
        },
      },
    );
    expect(ahead).toBeLessThanOrEqual(32);
  });

  it("reads its input as it goes", async () => {
    const service = scripted(() => ["ok"]);
    let furthest = 0;
    async function* endless(): AsyncGenerator<IndexedEvent> {
      for (let n = 0; n < 5000; n += 1) {
        furthest = Math.max(furthest, n - service.begun.length);
        yield eventOf(n, `u-${n % 100}`);
      }
    }
    const { counts } = await send(endless(), service);
    expect(counts.succeeded).toBe(5000);
    expect(furthest).toBeLessThan(1200);
  });

  it.each(["beforeSend", "onSettled"] as const)("fails when %s fails, and sends nothing after it", async (hook) => {
    const service = scripted(() => ["ok"]);
    const events = Array.from({ length: 300 }, (_, n) => eventOf(n));
    const failing = { [hook]: () => Promise.reject(new Error("the disk is full")) };
    await expect(send(events, service, failing)).rejects.toThrow("the disk is full");
    expect(service.begun.length).toBeLessThanOrEqual(1);
  });
});

describe("any schedule of faults", () => {
  const fault = fc.constantFrom<Step>(
    "ok",
    "invalid",
    "notSent",
    "busy",
    "keptAnswerLost",
    "droppedAnswerLost",
    "strange",
  );
  const schedule = fc.record({
    scripts: fc.array(fc.array(fault, { minLength: 1, maxLength: 4 }), { maxLength: 30 }),
    users: fc.integer({ min: 1, max: 5 }),
    concurrency: fc.integer({ min: 1, max: 8 }),
    onUnknown: fc.constantFrom("report" as const, "resend" as const),
  });

  it("leaves each event with one outcome that is true of what the service kept", async () => {
    await fc.assert(
      fc.asyncProperty(schedule, async ({ scripts, users, concurrency, onUnknown }) => {
        const service = scripted((n) => scripts[n] ?? []);
        const events = scripts.map((_, n) => eventOf(n, `u-${n % users}`));
        const { settled, counts } = await send(events, service, { concurrency, onUnknown });
        expect(counts.succeeded + counts.failed + counts.unknown + counts.notApplied).toBe(scripts.length);
        for (const n of scripts.keys()) {
          const kept = service.kept.filter((one) => one === n).length;
          const { outcome, maybeTwice } = settled.get(n) ?? {};
          if (outcome === "succeeded") expect(kept).toBeGreaterThanOrEqual(1);
          if (outcome === "notApplied") expect(kept).toBe(0);
          if (outcome === "failed" && onUnknown === "report") expect(kept).toBe(0);
          if (kept > 1) expect(maybeTwice === true || outcome === "unknown" || outcome === "failed").toBe(true);
          if (onUnknown === "report") expect(kept).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 300, seed: 20_260_102 },
    );
  });
});
