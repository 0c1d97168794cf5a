import { expect, test } from "vitest";
import * as z from "zod";
import { eventLog, eventPage } from "../../src/sandbox/logs.ts";

const event = (uid: string, text = "{}") => ({
  at: "2026-01-01T00:00:00.000Z",
  verdict: "recorded" as const,
  findings: [],
  uid,
  eventName: "app_open",
  text,
  isJson: true,
});

test("the last 100,000 events are kept, and older ones counted", () => {
  const log = eventLog();
  for (let index = 0; index < 100_250; index += 1) log.add(event(String(index)));
  const { events, total, dropped } = log.read({}, 2);
  expect({ total, dropped }).toEqual({ total: 100_000, dropped: 250 });
  expect(events.map(({ uid }) => uid)).toEqual(["100248", "100249"]);
  expect(log.read({ uid: "249" }, 1).total).toBe(0);
  expect(log.read({ uid: "250" }, 1).total).toBe(1);
  expect(log.counts()).toEqual({ recorded: 100_250, ignored: 0, rejected: 0 });
  log.clear();
  expect(log.read({}, 1)).toEqual({ events: [], total: 0, dropped: 0 });
});

test("large events are dropped sooner, so that memory stays bounded", () => {
  const log = eventLog();
  const text = "x".repeat(4 * 1_048_576);
  for (let index = 0; index < 40; index += 1) log.add(event(String(index), text));
  expect(log.read({}, 0)).toEqual({ events: [], total: 16, dropped: 24 });
});

test("what is wrong with events takes room, too", () => {
  const log = eventLog();
  const findings = Array.from({ length: 100 }, (_, position) => ({
    path: `items[${position}].item_id`,
    rule: "requiredMissing" as const,
    effect: "ignored" as const,
  }));
  for (let index = 0; index < 10_000; index += 1) log.add({ ...event(String(index)), findings });
  const { total, dropped } = log.read({}, 0);
  expect(total + dropped).toBe(10_000);
  expect(total).toBeLessThan(6000);
});

test("a page shows the bodies of the newest events, as many as an answer holds", () => {
  const log = eventLog();
  const text = JSON.stringify({ note: "x".repeat(1_048_576) });
  for (let index = 0; index < 20; index += 1) log.add(event(String(index), text));
  const page = z
    .object({ events: z.array(z.looseObject({ uid: z.string(), body: z.unknown().optional() })) })
    .parse(JSON.parse(eventPage(log, { limit: 100 })));
  expect(page.events.map(({ uid }) => uid)).toEqual(Array.from({ length: 20 }, (_, index) => String(index)));
  expect(page.events.map(({ body }) => body !== undefined).indexOf(true)).toBe(5);
  expect(page.events.at(-1)?.body).toBeDefined();
});
