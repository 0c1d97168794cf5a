import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { tokensOfResult, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const START = Date.parse("2026-03-01T12:00:00Z");

const arrived = (uid: string, second: number, event: Readonly<Record<string, unknown>>) => ({
  at: new Date(START + second * 1000).toISOString(),
  event: { uid, ...event },
});
const view = { eventName: "view_item", item_id: "i" };
const purchase = { eventName: "purchase", tx_id: "t", items: [{ item_id: "i" }] };
const expect_ = [{ eventName: "view_item" }, { eventName: "purchase" }];

/**
 * Starts a session whose sandbox has events of three users: one in time, one 2 seconds late, and one in the wrong
 * order.
 */
async function threeUsers() {
  const session = await startSession();
  const events = [
    arrived("in time", 0, view),
    arrived("in time", 4, purchase),
    arrived("late", 1, view),
    arrived("late", 13, purchase),
    arrived("reversed", 2, purchase),
    arrived("reversed", 3, view),
  ];
  await session.control("/seed", { events });
  return session;
}

test("each check is made for each user, and each that was asked for is answered", async () => {
  const { client } = await threeUsers();
  const uids = ["in time", "late", "reversed", "nobody"];
  const given = await client.callTool("inspect_events", { uids, expect: expect_, inOrder: true, withinMs: 10_000 });
  expect(given.structuredContent).toMatchObject({
    expectations: [
      { uid: "in time", index: 0, met: true, found: 1 },
      { uid: "in time", index: 1, met: true, found: 1 },
      { uid: "late", index: 0, met: true },
      {
        uid: "late",
        index: 1,
        met: false,
        reason: expect.stringContaining("first expected event, but 12,000 ms after it"),
      },
      { uid: "reversed", index: 0 },
      { uid: "reversed", index: 1, met: false },
      { uid: "nobody", index: 0, met: false, found: 0, reason: "none arrived" },
      { uid: "nobody", index: 1, met: false, found: 0, reason: "none arrived" },
    ],
    order: {
      met: false,
      reason: expect.stringContaining('for uid "reversed"'),
      byUid: {
        "in time": { met: true },
        late: { met: true },
        reversed: { met: false, reason: expect.stringContaining("arrived 1,000 ms before") },
        nobody: { met: false, reason: expect.stringContaining("did not arrive") },
      },
    },
    within: {
      met: false,
      tookMs: 12_000,
      reason: 'for uid "late": 12,000 ms, 10,000 allowed',
      byUid: {
        "in time": { met: true, tookMs: 4000 },
        late: { met: false, tookMs: 12_000, reason: "12,000 ms, 10,000 allowed" },
        reversed: { met: true, tookMs: 1000 },
        nobody: {
          met: false,
          reason: 'not all of the expected events arrived: "view_item" (expectation 1), "purchase" (expectation 2)',
        },
      },
    },
  });
  const text = textOf(given);
  expect(text).toMatch(/^\d of 8 expectations met \(2 for each of 4 users\):$/m);
  expect(text).toContain("The order held at least once for 2 of 4 users:");
  expect(text).toContain('"reversed": did NOT hold: "purchase" (expectation 2) arrived 1,000 ms before');
  expect(text).toContain("The time held for 2 of 4 users:");
  expect(text).toContain('"late": did NOT hold: 12,000 ms, 10,000 allowed');
  expect(text).not.toContain("The order held:");
});

test("an expectation without order says how many users have such an event", async () => {
  const { client, control } = await threeUsers();
  await control("/seed", { events: [arrived("in time", 0, view), arrived("no purchase", 0, view)] });
  const given = await client.callTool("inspect_events", { expect: expect_ });
  expect(given.structuredContent).toMatchObject({
    expectations: [
      { met: true, users: 4, ofUsers: 4 },
      { met: true, users: 3, ofUsers: 4 },
    ],
  });
  expect(textOf(given)).toContain(
    "2 of 2 expectations met by 4 users together (to check each user, give uids or inOrder):",
  );
  expect(textOf(given)).toContain('"purchase": met, found 3, from 3 of 4 users');
  const one = await client.callTool("inspect_events", { uid: "late", expect: expect_ });
  expect(textOf(one)).not.toContain("users");
});

test("for one user, or all events together, order and time are answered side by side", async () => {
  const { client } = await threeUsers();
  const args = { uid: "in time", expect: expect_, inOrder: true };
  const held = await client.callTool("inspect_events", { ...args, withinMs: 4000 });
  expect(held.structuredContent).toMatchObject({ order: { met: true }, within: { met: true, tookMs: 4000 } });
  expect(textOf(held)).toContain(
    "The order held: the expected events arrived in this order at least once.\nThe time held: 4,000 ms.",
  );
  expect(textOf(held)).not.toContain("repetition");
  const over = await client.callTool("inspect_events", { ...args, withinMs: 3999 });
  expect(over.structuredContent).toMatchObject({
    order: { met: true },
    within: { met: false, tookMs: 4000, reason: "4,000 ms, 3,999 allowed" },
  });
  const missing = await client.callTool("inspect_events", { uid: "nobody", expect: expect_, withinMs: 1 });
  expect(missing.structuredContent).toMatchObject({ within: { met: false } });
  expect(missing.structuredContent).not.toHaveProperty("order");
  const nothing = await client.callTool("inspect_events", { uid: "in time", inOrder: true, withinMs: 1 });
  expect(textOf(nothing)).toContain("inOrder and withinMs check only the events in expect, which is empty");
  expect(nothing.structuredContent).not.toHaveProperty("order");
});

test("many users and expectations stay within the size of an answer, what is not met first", async () => {
  const session = await startSession();
  const uids = Array.from({ length: 50 }, (_, number) => `user-${number}`);
  const many = Array.from({ length: 30 }, () => ({ eventName: "view_item" }));
  const events = uids.slice(1).flatMap((uid, second) => many.map(() => arrived(uid, second, view)));
  await session.control("/seed", { events });
  const given = await session.client.callTool("inspect_events", { uids, expect: many, inOrder: false, withinMs: 5 });
  expect(tokensOfResult(given)).toBeLessThan(3500);
  expect(textOf(given)).toContain("1,470 of 1,500 expectations met (30 for each of 50 users):");
  expect(given.structuredContent).toMatchObject({
    expectations: expect.arrayContaining([expect.objectContaining({ uid: "user-0", index: 29, met: false })]),
    within: { met: false, byUid: { "user-0": { met: false } } },
  });
  expect(textOf(given)).toMatch(/^\(\d+ more, 0 of them not met: to see more, give uids "user-\d+", .*\)$/m);
});

test("a page that ends before its limit says why, and where it goes on", async () => {
  const session = await startSession();
  const long = { ...view, item_name: "word ".repeat(60) };
  await session.control("/seed", { events: Array.from({ length: 22 }, (_, second) => arrived("u", second, long)) });
  const given = await session.client.callTool("inspect_events", { uid: "u", limit: 1000 });
  const { events, notes, cursor } = z
    .object({ events: z.array(z.unknown()), notes: z.array(z.string()), cursor: z.string() })
    .parse(given.structuredContent);
  expect(events.length).toBeLessThan(22);
  expect(notes[0]).toBe(`No more than these ${events.length} events fit an answer.`);
  expect(textOf(given)).toContain(cursor);
});

test("without uid, order and time of several users are checked for each of them", async () => {
  const { client } = await threeUsers();
  const given = await client.callTool("inspect_events", { expect: expect_, inOrder: true, withinMs: 10_000 });
  expect(textOf(given)).toContain("The order held at least once for 2 of 3 users:");
  expect(textOf(given)).toContain("The time held for 2 of 3 users:");
  expect(textOf(given)).toContain("1 of 3 users meet all expectations and checks. 2 do not:");
  expect(textOf(given)).not.toContain("but not met");
});

test("an order that holds beside an expectation that is not met is said of the events that arrived", async () => {
  const { client } = await threeUsers();
  const more = expect_.map((one) => ({ ...one, count: one.eventName === "purchase" ? 1 : 0 }));
  const args = { uid: "in time", expect: more, inOrder: true, withinMs: 10_000 };
  const given = await client.callTool("inspect_events", args);
  expect(textOf(given)).toContain("NOT met");
  const unmet = 'but not met: expectation 1, "view_item" (expected 0, found 1).';
  expect(textOf(given)).toContain(`The order held for the events that arrived, ${unmet}`);
  expect(textOf(given)).toContain(`The time held for the events that arrived: 0 ms, ${unmet}`);
});

test("all users who do not meet everything are named, over several answers if there are many", async () => {
  const session = await startSession();
  const uids = Array.from({ length: 300 }, (_, number) => `user-${number}-of-the-app`);
  const events = uids.flatMap((uid, second) => [
    arrived(uid, second, view),
    ...(second % 3 === 0 ? [arrived(uid, second + 1, purchase)] : []),
  ]);
  await session.control("/seed", { events });
  const call = { expect: expect_, inOrder: true, limit: 20 };
  const answer = z.looseObject({
    usersNotMet: z.object({ total: z.literal(200), uids: z.array(z.string()) }).optional(),
    events: z.array(z.unknown()).optional(),
    cursor: z.string().optional(),
  });
  const next = async (cursor: string | undefined, further = {}) => {
    const given = await session.client.callTool("inspect_events", { ...call, ...further, ...(cursor && { cursor }) });
    expect(tokensOfResult(given)).toBeLessThan(3500);
    return { ...answer.parse(given.structuredContent), text: textOf(given) };
  };
  for (const further of [{}, { coverage: true }]) {
    const named: string[] = [];
    let page = await next(undefined, further);
    expect(page.text).toContain("100 of 300 users meet all expectations and checks. 200 do not, of which these are 1-");
    expect(page.text).toMatch(/, then the \d+ after these in the list of users\)$/m);
    for (;;) {
      named.push(...(page.usersNotMet?.uids ?? []));
      for (const uid of page.usersNotMet?.uids ?? []) expect(page.text).toContain(`"${uid}"`);
      if (named.length >= 200) break;
      expect(page.text).toContain(`: the same call with cursor ${page.cursor}`);
      page = await next(page.cursor, further);
    }
    expect(new Set(named)).toEqual(new Set(uids.filter((_, number) => number % 3 !== 0)));
    expect(named).toHaveLength(200);
  }
  const first = await next(undefined);
  const other = { ...call, inOrder: false, cursor: first.cursor };
  expect(textOf(await session.client.callTool("inspect_events", other))).toContain("does not come from this query");
});

test("a list of users ends after the last event, and an order that was repeated can be checked each time", async () => {
  const session = await startSession();
  const long = "long words in a uid ".repeat(5);
  const uids = Array.from({ length: 30 }, (_, number) => `${number} ${long}`);
  const events = uids.map((uid, second) => arrived(uid, second, view));
  const rounds = [view, purchase, view, purchase, purchase, view];
  await session.control("/seed", { events: [...events, ...rounds.map((one, at) => arrived("again", 99 + at, one))] });
  const named: unknown[] = [];
  let cursor: string | undefined;
  for (let calls = 0; calls === 0 || cursor !== undefined; calls += 1) {
    expect(calls).toBeLessThan(50);
    const args = { expect: expect_, inOrder: true, limit: 1000, ...(cursor !== undefined && { cursor }) };
    const given = await session.client.callTool("inspect_events", args);
    expect(textOf(given)).not.toContain("No events match");
    const found = z
      .object({ usersNotMet: z.object({ uids: z.array(z.string()) }).optional(), cursor: z.string().optional() })
      .parse(given.structuredContent);
    named.push(...(found.usersNotMet?.uids ?? []));
    cursor = found.cursor;
  }
  expect(new Set(named).size).toBe(30);
  expect(named).toHaveLength(30);
  const once = { uid: "again", expect: expect_, inOrder: true };
  const held = textOf(await session.client.callTool("inspect_events", once));
  expect(held).toContain("The order held: the expected events arrived in this order at least once.");
  expect(held).toContain(
    "To check every repetition, list the events in expect again for each repetition, and leave count out.",
  );
  const every = { ...once, expect: [...expect_, ...expect_, ...expect_] };
  expect(textOf(await session.client.callTool("inspect_events", every))).toContain(
    'The order did NOT hold: "purchase" (expectation 6) arrived 1,000 ms before "view_item" (expectation 5)',
  );
});

test("an event that is expected more often than it arrived does not hold in time either", async () => {
  const { client } = await threeUsers();
  const three = [...expect_, { eventName: "purchase" }];
  const text = textOf(await client.callTool("inspect_events", { uid: "late", expect: three, withinMs: 20_000 }));
  expect(text).toMatch(/^2 of 3 expectations met:$/m);
  expect(text).toContain('expectation 3, "purchase": NOT met, expected 2 times, found 1');
  expect(text).toContain('The time did NOT hold: not all of the expected events arrived: "purchase" (expectation 3).');
});

test("with limit 1, the order of as many users is shown as the answer names", async () => {
  const { client, control } = await startSession();
  const users = Array.from({ length: 50 }, (_, at) => `fu${at}`);
  await control("/seed", { events: users.flatMap((uid) => [arrived(uid, 1, purchase), arrived(uid, 2, view)]) });
  const asked = { expect: expect_, inOrder: true };
  const linesOf = (text: string) => text.split("\n").filter((line) => line.includes("did NOT hold"));
  const all = textOf(await client.callTool("inspect_events", { ...asked, uids: users }));
  const [, named = ""] = /where it did not hold: to see more, give limit 1 and uids (.*), then the/.exec(all) ?? [];
  const uids = named.split(", ").map((uid) => uid.slice(1, -1));
  expect(uids.length).toBeGreaterThan(5);
  const given = await client.callTool("inspect_events", { ...asked, limit: 1, uids });
  expect(linesOf(textOf(given))).toHaveLength(uids.length);
  expect(tokensOfResult(given)).toBeLessThan(3500);
});
