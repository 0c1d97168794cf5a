import { expect, test } from "vitest";
import * as z from "zod";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startStub } from "../support/stub-server.ts";

const TARGETING = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const answered = z.object({
  result: z.object({
    structuredContent: z.looseObject({
      runId: z.string().optional(),
      status: z.string().optional(),
      counts: z.record(z.string(), z.number()).optional(),
      failures: z.array(z.looseObject({ errorCode: z.string(), message: z.string(), remedy: z.string() })).optional(),
      error: z.object({ message: z.string(), remedy: z.string().optional() }).optional(),
      requests: z.record(z.string(), z.number()).optional(),
      nextSteps: z.array(z.string()).optional(),
    }),
    content: z.array(z.object({ text: z.string() })),
  }),
});

/**
 * Starts the command with a service that answers 429 to everything except single reads, and asks to wait for an hour.
 */
async function limited(isReadLimited = false) {
  const service = await startStub(({ method }) =>
    method === "GET" && !isReadLimited
      ? { status: 200, json: { _id: TARGETING, name: "Spring", items: [] } }
      : { status: 429, text: "<title>Too many</title>", headers: { "retry-after": "3600" } },
  );
  const command = startCommand([], {
    TARGETING_API_URL: service.url,
    TARGETING_API_KEY: "some-key",
    EVENT_API_URL: service.url,
    EVENT_APP_KEY: "some-key",
  });
  for (const message of OPENING) command.send(message);
  let calls = 0;
  return {
    call: async (name: string, args: unknown) => {
      calls += 1;
      command.send(toolCall(calls, name, args));
      return answered.parse(await command.answer(calls)).result;
    },
    posts: () => service.received.filter(({ method }) => method === "POST").length,
    reads: () => service.received.filter(({ method }) => method === "GET").length,
  };
}

test("a write that is limited says so with the time, and is not sent again before it, not even when resumed", async () => {
  const { call, posts } = await limited();
  const items = [{ name: "One" }, { name: "Two" }];
  const { structuredContent: first, content } = await call("bulk_add_options", { targetingId: TARGETING, items });
  expect(first.failures).toMatchObject([
    { errorCode: "RATE_LIMITED", statusCode: 429, message: expect.stringContaining("asks to wait 60 min"), count: 2 },
  ]);
  expect(JSON.stringify([first, content])).not.toMatch(/locked|other writes/);
  expect(posts()).toBe(1);
  const { structuredContent: second } = await call("resume_run", { runId: first.runId });
  expect(second.failures).toMatchObject([{ errorCode: "RATE_LIMITED" }]);
  expect(second.failures?.[0]?.remedy).toMatch(/^Wait until the service allows requests again\. Call resume_run/);
  const { content: third, structuredContent } = await call("resume_run", { runId: first.runId });
  expect(JSON.stringify(third)).toContain("Wait until the service allows requests again. To retry longer, raise");
  expect(structuredContent.requests).toEqual({ planned: 1, sent: 1, resent: 0, waitedMs: 0 });
  expect(posts()).toBe(1);
});

test("events that are limited say so, and none is sent before the time", async () => {
  const { call, posts } = await limited();
  const one = await call("track_event", { uid: "u", eventName: "app_open", platform: "web" });
  const events = ["a", "b", "c"].map((uid) => ({ uid, eventName: "app_open", platform: "web" }));
  const many = await call("track_events", { items: events });
  expect(JSON.stringify([one, many])).not.toMatch(/locked|other writes/);
  for (const { structuredContent } of [one, many]) {
    for (const { message } of structuredContent.failures ?? [])
      expect(message).toContain("limits the rate of requests");
    expect(structuredContent.failures).not.toEqual([]);
  }
  expect(posts()).toBe(1);
});

test("a read that is limited says so with the time, and is sent once", async () => {
  const { call, reads } = await limited(true);
  const { structuredContent } = await call("get_targeting", { targetingId: TARGETING });
  expect(structuredContent.error?.message).toContain("asks to wait 60 min");
  await call("get_targeting", { targetingId: TARGETING });
  expect(reads()).toBe(1);
});
