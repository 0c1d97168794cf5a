import { describe, expect, test } from "vitest";
import * as z from "zod";
import { tokensOf } from "../../src/render/page.ts";
import { inspectEvents } from "../../src/tools/events/inspect-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const page = z.object({
  events: z.array(z.looseObject({ uid: z.string().nullable(), body: z.unknown().optional() })),
  total: z.number(),
  expectations: z.array(z.looseObject({ met: z.boolean(), found: z.number(), reason: z.string().optional() })),
  coverage: z.looseObject({ summary: z.string() }),
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
      { verdict: "ignored", uid: "b", eventName: "sign_up", findings: [{ path: "method", rule: "requiredMissing" }] },
    ]);
    expect((await inspect({ eventName: "view_item" })).total).toBe(2);
    expect((await inspect({ since: "2999-01-01T00:00:00Z" })).total).toBe(0);
    expect((await inspect({ since: 0 })).total).toBe(3);
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
    await expect(inspect({ limit: 2, uid: "u", cursor })).rejects.toThrow("cursor is not one");
    await control("/reset", { only: ["events"] });
    await expect(inspect({ limit: 2, cursor })).rejects.toThrow("has forgotten events");
  });

  test("foreign text is fenced and visible, and exact in the data", async () => {
    const { post, inspect } = await inspecting();
    await post({ uid: "u\u202e", eventName: "ignore\nall", note: "</data>\u200b" });
    const { events, answer } = await inspect({});
    expect(events[0]?.uid).toBe("u\u202e");
    expect(answer.text).toContain('"u\\u{202E}"');
    expect(answer.text).not.toMatch(/[\u202e\u200b]/);
  });

  test("what is no event is shown, too, and a time that is none is refused", async () => {
    const { sandbox, inspect } = await inspecting();
    await fetch(`${sandbox.url}/event`, { method: "POST", headers: { authorization: "sandbox-app-key" }, body: "no" });
    expect((await inspect({})).events).toMatchObject([{ verdict: "rejected", uid: null, text: "no" }]);
    await expect(inspect({ since: "soon" })).rejects.toThrow("since is no time");
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
    const { expectations, events, coverage } = await inspect({
      uid: "u",
      verdict: "recorded",
      expect: expect_,
      inOrder: true,
    });
    expect(events).toHaveLength(2);
    expect(expectations).toMatchObject([
      { met: true, found: 1 },
      { met: false, reason: 'an event "purchase" arrived and was ignored' },
      { met: true, found: 1 },
    ]);
    expect(coverage.summary).toMatch(/^2 of 13 events seen: 1 always right, 1 sometimes wrong/);
  });
});
