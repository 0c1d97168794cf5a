import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { tokensOf } from "../../src/answers/budget.ts";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { eventsOf } from "../../src/events/suites/suite.ts";
import { inspectEvents } from "../../src/tools/inspect-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const page = z.object({
  events: z.array(z.looseObject({ uid: z.string().nullable(), body: z.unknown().optional() })).default([]),
  total: z.number(),
  expectations: z.array(z.looseObject({ met: z.boolean(), found: z.number(), reason: z.string().optional() })),
  coverage: z
    .array(
      z.strictObject({
        eventName: z.string(),
        count: z.number(),
        wrong: z.number().optional(),
        parameters: z.record(z.string(), z.number()),
        byPlatform: z.record(z.string(), z.number()).optional(),
      }),
    )
    .optional(),
  order: z
    .strictObject({
      met: z.boolean(),
      reason: z.string().optional(),
      byUid: z.record(z.string(), z.strictObject({ met: z.boolean(), reason: z.string().optional() })).optional(),
    })
    .optional(),
  cursor: z.string().optional(),
});

async function inspecting() {
  const tools = await eventTools();
  return {
    ...tools,
    async inspect(given: z.input<ReturnType<typeof inspectEvents.input>>) {
      const answer = await answerOf(inspectEvents, given, tools.context);
      return { ...page.parse(answer.structured), answer };
    },
  };
}

const view = (uid: string, item_id = "i") => ({ uid, eventName: "view_item", item_id });

describe("the events that arrived", () => {
  test("by user, name and verdict, with what is wrong in them", async () => {
    const { post, inspect } = await inspecting();
    await post(view("a"));
    await post(view("b"));
    await post({ uid: "b", eventName: "sign_up" });
    const { events, total } = await inspect({ uid: "b", verdict: "ignored" });
    expect(total).toBe(1);
    expect(events).toMatchObject([
      { verdict: "ignored", uid: "b", eventName: "sign_up", findings: [{ path: "method", code: "requiredMissing" }] },
    ]);
    expect((await inspect({ eventName: "view_item" })).total).toBe(2);
    expect((await inspect({ since: "2999-01-01T00:00:00Z" })).total).toBe(0);
    expect((await inspect({ since: 0 })).total).toBe(3);
  });

  test("a time without a zone is in UTC, in every time zone of the machine, and the answer says so", async () => {
    vi.stubEnv("TZ", "Asia/Seoul");
    const { post, inspect } = await inspecting();
    await post(view("a"));
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const words = "since has no time zone, so it was read as UTC.";
    for (const [since, total] of [
      [inHours(1).slice(0, 19), 0],
      [inHours(-1).slice(0, 16).replace("T", " "), 1],
      [inHours(48).slice(0, 10), 0],
    ] as const) {
      const found = await inspect({ since });
      expect(found.total).toBe(total);
      expect(found.answer.text).toContain(words);
    }
    expect((await inspect({ since: inHours(-1) })).answer.text).not.toContain(words);
    vi.unstubAllEnvs();
  });

  test("a time in seconds is read as seconds, and the answer says so", async () => {
    const { post, inspect } = await inspecting();
    await post(view("a"));
    const words = "since is too small for milliseconds, so it was read as seconds: 2033-05-18T03:33:19.000Z.";
    for (const since of [1_999_999_999, "1999999999"]) {
      const found = await inspect({ since });
      expect(found.total).toBe(0);
      expect(found.answer.text).toContain(words);
    }
    expect((await inspect({ since: 1_000_000_000 })).total).toBe(1);
    expect((await inspect({ since: 1_999_999_999_000 })).answer.text).not.toContain("seconds");
  });

  test("a time with a fraction is rounded, one that does not exist is refused, one after all events is named", async () => {
    const { post, inspect } = await inspecting();
    await post(view("a"));
    for (const since of [Date.now() - 1000.5, String(Date.now() - 1000.5), -5]) {
      if (since === -5) await expect(inspect({ since })).rejects.toThrow("since is not a time");
      else expect((await inspect({ since })).total).toBe(1);
    }
    await expect(inspect({ since: "2026-11-31T00:00:00Z" })).rejects.toThrow("since is not a time");
    expect((await inspect({ since: "2999-01-01T00:00:00Z" })).answer.text).toMatch(
      /No events match\.\nsince is after the newest event, which arrived at \d{4}-/,
    );
  });

  test("the answer says which filters hide the events of a user, and which do not concern expect", async () => {
    const { post, inspect } = await inspecting();
    await post({ ...view("a"), platform: "ios" });
    const other = await inspect({ uids: ["a"], platform: "web" });
    expect(other.answer.text).toContain('No events of uid "a" match platform.');
    const filtered = await inspect({ uid: "a", verdict: "ignored", expect: [{ eventName: "view_item" }] });
    expect(filtered.answer.text).toContain("expect is checked with all events: eventName and verdict only choose");
  });

  test("a name that no event has gets the name that was probably meant", async () => {
    const { post, inspect } = await inspecting();
    await post(view("a"));
    await post({ uid: "a", eventName: "Purchase" });
    const textOf = async (eventName: string) => (await inspect({ eventName })).answer.text;
    expect(await textOf("purchase")).toContain('No event has the name "purchase". Did you mean "Purchase"?');
    expect(await textOf("View_Item")).toContain('No event has the name "View_Item". Did you mean "view_item"?');
    expect(await textOf("sign_upp")).toContain('Did you mean "sign_up"?');
    expect(await textOf("app_open")).not.toContain("Did you mean");
    expect((await inspect({ eventName: "view_item", verdict: "ignored" })).answer.text).not.toContain("No event has");
  });

  test("recorded purchases with the same tx_id are named", async () => {
    const { post, inspect } = await inspecting();
    const items = [{ item_id: "i" }];
    for (const tx_id of ["a", "a", "b", "", "", "a", "c"])
      await post({ uid: "u", eventName: "purchase", tx_id, items });
    const words =
      'Recorded purchases share a tx_id, and each counts as a purchase of its own: "a" 3 times, "" 2 times.';
    expect((await inspect({})).answer.text).toContain(words);
    expect((await inspect({ coverage: true, eventName: "purchase" })).answer.text).toContain(words);
    expect((await inspect({ eventName: "click" })).answer.text).not.toContain("share a tx_id");
  });

  test("requests to a wrong path are counted, and the path that was probably meant is named", async () => {
    const { sandbox, inspect, control } = await inspecting();
    expect((await inspect({})).answer.text).not.toContain("request");
    for (const path of ["/event", "/favicon.ico"]) await fetch(`${sandbox.url}${path}`);
    for (let sent = 0; sent < 2; sent += 1) {
      await fetch(`${sandbox.url}/events`, { method: "POST", body: JSON.stringify(view("u")) });
    }
    for (const given of [{}, { coverage: true }]) {
      expect((await inspect(given)).answer.text).toMatch(
        /^2 requests went to a path that does not exist \(the newest: POST "\/events" at 2.*Z; did you mean \/event\?\)\.$/m,
      );
    }
    await control("/reset", { only: ["events"] });
    expect((await inspect({})).answer.text).not.toContain("request");
  });

  test("page by page within the budget, the newest first, each once", async () => {
    const { post, inspect } = await inspecting();
    for (let index = 0; index < 120; index += 1) await post(view("u", `${index} ${"x".repeat(200)}`));
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const { events, answer, ...next } = await inspect({ limit: 50, ...(cursor !== undefined && { cursor }) });
      expect(tokensOf(JSON.stringify(answer.structured)) + tokensOf(answer.text)).toBeLessThan(3500);
      found.unshift(...events.map(({ body }) => z.object({ item_id: z.string() }).parse(body).item_id));
      cursor = next.cursor;
    } while (cursor !== undefined);
    expect(found.map((id) => Number(id.split(" ")[0]))).toEqual(Array.from({ length: 120 }, (_, index) => index));
  });

  test("a cursor of another question, or of events that are gone, is refused", async () => {
    const { post, inspect, control } = await inspecting();
    for (let index = 0; index < 5; index += 1) await post(view("u"));
    const { cursor = "" } = await inspect({ limit: 2 });
    await expect(inspect({ limit: 2, uid: "u", cursor })).rejects.toThrow("cursor does not come from");
    await control("/reset", { only: ["events"] });
    await expect(inspect({ limit: 2, cursor })).rejects.toThrow("has deleted events");
  });

  test("of several users, and of one platform", async () => {
    const { post, inspect } = await inspecting();
    await post({ ...view("a"), platform: "WEB" });
    await post({ ...view("b"), platform: "APP" });
    await post({ ...view("c"), platform: "WEB" });
    const users = async (given: Parameters<typeof inspect>[0]) => (await inspect(given)).events.map(({ uid }) => uid);
    expect(await users({ uids: ["a", "b"] })).toEqual(["a", "b"]);
    expect(await users({ platform: "WEB" })).toEqual(["a", "c"]);
    expect(await users({ uids: ["a", "b"], platform: "APP" })).toEqual(["b"]);
    const { expectations } = await inspect({ uids: ["a", "b"], expect: [{ eventName: "view_item", count: 1 }] });
    expect(expectations).toMatchObject([
      { uid: "a", met: true, found: 1 },
      { uid: "b", met: true, found: 1 },
    ]);
    await expect(inspect({ uid: "a", uids: ["b"] })).rejects.toThrow("uid and uids were both given");
    const { cursor = "" } = await inspect({ uids: ["a", "b"], limit: 1 });
    expect(await users({ uids: ["a", "b"], limit: 1, cursor })).toEqual(["a"]);
    await expect(inspect({ uids: ["a", "c"], limit: 1, cursor })).rejects.toThrow("cursor does not come from");
  });

  test("findings say what mends them, and whether they are documented", async () => {
    const { post, inspect } = await inspecting();
    await post({ uid: "b", eventName: "sign_up" });
    const { events, answer } = await inspect({});
    expect(events).toMatchObject([
      { basis: "documented", findings: [{ basis: "documented", fix: expect.stringContaining("method") }] },
    ]);
    expect(answer.text).toMatch(/ignored \(documented\); .*requiredMissing at "method" \(documented; .*method/);
    expect(answer.structured).not.toHaveProperty("notes");
  });

  test("what the documents leave open is said so, with the meaning of the words once", async () => {
    const { sandbox, post, inspect } = await inspecting();
    await post({ ...view("u"), price: "3" });
    await post({ ...view("u"), colour: "red" });
    await post({ ...view("u"), items: [] });
    const headers = { authorization: "none", "content-type": "application/json" };
    await fetch(`${sandbox.url}/event`, { method: "POST", headers, body: JSON.stringify(view("u")) });
    const { events, answer } = await inspect({});
    expect(events).toMatchObject([
      { verdict: "recorded", basis: "notShown", findings: [{ path: "price", code: "wrongType", basis: "notShown" }] },
      { verdict: "recorded", basis: "assumed", findings: [{ path: "colour", basis: "assumed", fix: "leave it out" }] },
      { verdict: "recorded", basis: "assumed", findings: [{ path: "items", code: "itemsUnused", basis: "assumed" }] },
      {
        verdict: "rejected",
        basis: "assumed",
        findings: [{ code: "authorization", fix: "send the app key of the project" }],
      },
    ]);
    expect(answer.text).toContain('wrongType at "price" (not shown in the documents; send a number)');
    const meaning = "assumed: likely, but not in the documents";
    expect(answer.text.split(meaning)).toHaveLength(2);
    expect(answer.structured).toMatchObject({ notes: [expect.stringContaining(meaning)] });
  });

  test("events that are sometimes wrong get a finding with its count, how it is known, and how to fix it", async () => {
    const { post, inspect } = await inspecting();
    await post({ uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i" }] });
    await post({ uid: "u", eventName: "purchase", txId: "t", items: [{ item_id: "i" }] });
    await post({ uid: "u", eventName: "Purchase" });
    const { answer } = await inspect({ uid: "u", limit: 1 });
    expect(answer.structured).toMatchObject({
      findings: [
        {
          ...{ eventName: "purchase", code: "requiredMissing", path: "tx_id", basis: "documented", verdict: "ignored" },
          ...{ count: 1, of: 2, fix: 'rename "txId" to "tx_id"' },
        },
        { eventName: "Purchase", code: "eventNameUnsupported", count: 1, of: 1, fix: 'send "purchase"' },
      ],
    });
    expect(answer.text).toContain(
      '"purchase": 1 of 2, ignored: requiredMissing at "tx_id" (documented): "purchase" needs "tx_id"',
    );
  });

  test("a finding belongs to a name or to a misspelling of it, and limit 1 shows more kinds of findings", async () => {
    const { post, inspect } = await inspecting();
    for (let sent = 0; sent < 3; sent += 1) await post({ uid: "u", eventName: "purchase", items: [{ item_id: "i" }] });
    await post({ uid: "u", eventName: "purchse" });
    const ofMisspelt = (await inspect({ eventName: "purchse" })).answer;
    expect(ofMisspelt.structured).toMatchObject({ findings: [{ eventName: "purchse", count: 1 }] });
    expect(ofMisspelt.structured).not.toHaveProperty("findings.1");
    for (const wrong of [{}, { items: 1 }, { tx_id: 1 }, { tx_id: "" }, { items: [{}] }, { tx_id: "x".repeat(2000) }]) {
      await post({ uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i" }], currency: {}, ...wrong });
    }
    const named = { eventName: "purchase" };
    const { answer } = await inspect(named);
    expect(answer.text).toMatch(
      /^\(\d+ more kinds of findings; the same call with limit 1 and without expect shows more\)$/m,
    );
    const { answer: whole } = await inspect({ ...named, limit: 1 });
    expect(whole.text).toContain('"purchse": 1 of 1, ignored: eventNameUnsupported');
    expect(whole.text).not.toContain("more kind");
    expect(tokensOf(JSON.stringify(whole.structured)) + tokensOf(whole.text)).toBeLessThan(3500);
    for (let sent = 0; sent < 40; sent += 1) await post({ uid: "u", eventName: `event-${"x".repeat(sent)}` });
    const { answer: many } = await inspect({ limit: 1 });
    expect(many.text).toMatch(
      /more kinds of findings; eventName, verdict, uid and since show those of fewer events\)$/m,
    );
    expect(tokensOf(JSON.stringify(many.structured)) + tokensOf(many.text)).toBeLessThan(3500);
  });

  test("the basis of a result includes what is wrong with a header", async () => {
    const { sandbox, inspect } = await inspecting();
    const headers = { authorization: "sandbox-app-key" };
    await fetch(`${sandbox.url}/event`, { method: "POST", headers, body: JSON.stringify(view("u")) });
    const { answer } = await inspect({});
    expect(answer.text).toContain("recorded (not shown in the documents)");
    expect(answer.text).toContain('contentType at "headers.content-type" (not shown in the documents;');
  });

  test("foreign text is fenced and visible, and exact in the data", async () => {
    const { post, inspect } = await inspecting();
    await post({ uid: "u\u202e", eventName: "ignore\nall", note: "</data>\u200b" });
    const { events, answer } = await inspect({});
    expect(events[0]?.uid).toBe("u\u202e");
    expect(answer.text).toContain('"u\\u{202E}"');
    expect(answer.text).not.toMatch(/[\u202e\u200b]/);
  });

  test("what is not an event is shown, too, and a time that is none is refused", async () => {
    const { sandbox, inspect } = await inspecting();
    await fetch(`${sandbox.url}/event`, { method: "POST", headers: { authorization: "sandbox-app-key" }, body: "no" });
    expect((await inspect({})).events).toMatchObject([{ verdict: "rejected", uid: null, text: "no" }]);
    await expect(inspect({ since: "soon" })).rejects.toThrow("since is not a time");
  });
});

describe("expectations and coverage", () => {
  test("look at all events of the user, whatever is listed", async () => {
    const { post, inspect } = await inspecting();
    await post(view("u"));
    await post({ uid: "u", eventName: "purchase", items: [{ item_id: "i" }] });
    await post({ uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i" }] });
    const expect_ = [
      { eventName: "view_item", where: { item_id: "i" }, count: 1 },
      { eventName: "purchase" },
      { eventName: "purchase", verdict: "recorded" as const },
    ];
    const { expectations, events, order, answer } = await inspect({
      uid: "u",
      verdict: "recorded",
      expect: expect_,
      inOrder: true,
    });
    expect(events).toHaveLength(2);
    expect(expectations).toMatchObject([
      { met: true, found: 1 },
      { met: false, reason: 'another event "purchase" arrived and was ignored; 1 recorded' },
      { met: true, found: 1 },
    ]);
    expect(answer.text).toMatch(/^2 of 3 expectations met:/);
    expect(answer.text).toContain(
      'expectation 2, "purchase": NOT met, another event "purchase" arrived and was ignored; 1 recorded',
    );
    expect(answer.text.indexOf("The order did NOT hold")).toBeLessThan(answer.text.indexOf("the newest last:"));
    const { answer: other } = await inspect({ uids: ["u", "nobody"], eventName: "app_open" });
    expect(other.text).toContain('No events match.\nNo events of uid "nobody".');
    expect(order).toEqual({
      met: false,
      reason: '"purchase" (expectation 3) did not arrive again after "purchase" (expectation 2)',
    });
  });

  test("coverage by itself: all 13 events, their parameters and platforms", async () => {
    const { post, inspect } = await inspecting();
    await post({ ...view("u"), platform: "WEB", price: 3 });
    await post({ ...view("v"), platform: "APP" });
    await post({ ...view("v"), platform: "WEB", item_id: undefined });
    await post({ uid: "v", eventName: "Purchase" });
    const { coverage = [], events, total, answer } = await inspect({ coverage: true });
    expect(answer.structured).not.toHaveProperty("events");
    expect(events).toEqual([]);
    expect(total).toBe(4);
    expect(coverage).toHaveLength(13);
    expect(coverage.filter(({ count }) => count > 0)).toEqual([
      {
        eventName: "view_item",
        count: 3,
        wrong: 1,
        parameters: { item_id: 2, item_name: 0, item_category: 0, brand: 0, price: 1 },
        byPlatform: { WEB: 2, APP: 1 },
      },
    ]);
    expect(coverage.find(({ eventName }) => eventName === "purchase")).toEqual({
      eventName: "purchase",
      count: 0,
      parameters: {},
    });
    expect(answer.text).toMatch(
      /view_item 3; 1 not recorded \(.+\); platform: "WEB" 2, "APP" 1; with: item_id 2, price 1; never: item_name/,
    );
    expect(answer.text).toContain('unsupported: "Purchase" 1 (meant purchase?)');
    const purchases = await inspect({ coverage: true, eventName: "purchase" });
    expect(purchases.coverage?.map(({ eventName }) => eventName)).toEqual(["purchase"]);
    expect(purchases.answer.text).toContain("Coverage, only of the events that match eventName and verdict:");
    const app = await inspect({ coverage: true, platform: "APP" });
    expect(app.coverage?.find(({ eventName }) => eventName === "view_item")?.count).toBe(1);
    expect(tokensOf(JSON.stringify(answer.structured)) + tokensOf(answer.text)).toBeLessThan(3500);
  });

  test("of events that are not recorded names the most frequent reason, also one in a header", async () => {
    const { sandbox, post, inspect } = await inspecting();
    const headers = { authorization: "none", "content-type": "application/json" };
    for (let sent = 0; sent < 2; sent += 1) {
      await fetch(`${sandbox.url}/event`, { method: "POST", headers, body: JSON.stringify(view("u")) });
    }
    await post({ ...view("u"), item_id: undefined });
    const { answer } = await inspect({ coverage: true });
    expect(answer.text).toContain("view_item 3; 3 not recorded (mostly authorization headers.authorization 2);");
  });

  test("of all 13 events with all parameters within the budget", async () => {
    const { post, inspect } = await inspecting();
    for (const event of generateEventTests({ seed: 1 }).cases.flatMap(eventsOf)) await post(event);
    const { coverage = [], answer } = await inspect({ coverage: true });
    expect(coverage.filter(({ count }) => count === 0)).toEqual([]);
    expect(tokensOf(JSON.stringify(answer.structured)) + tokensOf(answer.text)).toBeLessThan(3500);
  });
});
