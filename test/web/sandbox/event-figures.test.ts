import { expect, test } from "vitest";
import { arrivedEvent, eventFindings, eventLog, finding } from "../../../src/sandbox/logs.ts";
import { eventDetail, eventFigures, matchingEvents } from "../../../src/web/event-figures.ts";
import type { Words } from "../../../src/web/sandbox-wire.ts";

const START = Date.UTC(2026, 0, 2, 12);

/** Creates a log with a clock that the test sets. */
function logged() {
  const log = eventLog();
  const clock = { now: START };
  const figures = eventFigures(log, () => clock.now);
  const add = (body: unknown, hasKey = true): void => {
    const text = JSON.stringify(body);
    const findings = [...(hasKey ? [] : [finding("headers.authorization", "authorization")]), ...eventFindings(body)];
    log.add(arrivedEvent({ at: new Date(clock.now).toISOString(), text, body, findings }));
  };
  return { log, clock, figures, add };
}

/** Returns words as text, with the names of fields and events in backticks. */
function text(words: Words): string {
  return words.map((one) => (typeof one === "string" ? one : `\`${one.code}\``)).join("");
}

test("events that do not count are grouped by their cause, the most frequent first", () => {
  const { add, figures } = logged();
  for (let at = 0; at < 3; at += 1)
    add({ uid: `u-${at}`, eventName: "Purchase", platform: at === 0 ? "android" : "web" });
  const items = [{ item_id: "i" }];
  for (let at = 0; at < 2; at += 1) add({ uid: `v-${at}`, eventName: "Purchase", tx_id: "t", items });
  for (let at = 0; at < 2; at += 1) add({ uid: `u-${at}`, eventName: "add_to_cart" });
  add({ uid: "u", eventName: "purchase", tx_id: "t", items: [{}, { item_id: "i" }, {}] });
  add({ uid: "u", eventName: "app_open" }, false);
  add({ uid: "u", eventName: "click", element_id: "e" }, false);
  add({ eventName: "app_open" });
  add({ uid: "u", eventName: "app_open" });
  const { problems, otherProblems } = figures.now();
  expect(problems.map(({ count, name, verdict, cause }) => `${count} ${verdict} ${name}: ${text(cause)}`)).toEqual([
    "3 ignored Purchase: unknown event name; `tx_id` is missing",
    "2 ignored Purchase: unknown event name",
    "2 ignored add_to_cart: `item_id`, `price`, `quantity` are missing",
    "2 rejected app_open: no valid app key in the header `Authorization`",
    "1 ignored purchase: `items[].item_id` is missing",
    "1 rejected app_open: `uid` is missing",
  ]);
  expect(problems.map(({ fix }) => text(fix))).toEqual([
    "rename `Purchase` to `purchase`, add `tx_id`",
    "rename `Purchase` to `purchase`",
    "add `item_id`, `price`, `quantity`",
    "send the app key of the project",
    "add `items[].item_id`",
    "add `uid`",
  ]);
  const meant = ["purchase", "purchase", "add_to_cart", undefined, "purchase", undefined];
  expect(problems.map(({ event }) => event)).toEqual(meant);
  expect(problems[0]?.platforms).toEqual([
    { platform: "web", events: 2 },
    { platform: "android", events: 1 },
  ]);
  expect(problems[3]).toMatchObject({ otherNames: 1, latest: 10 });
  expect(otherProblems).toBe(0);
});

test.each([
  [{ eventName: "purchase", transaction_id: "t-1", currency: "KRW" }, "rename `transaction_id` to `tx_id`"],
  [{ eventName: "Purchase", orderId: "o" }, "rename `Purchase` to `purchase`, rename `orderId` to `tx_id`"],
  [{ eventName: "purchase", tx_id: "t", items: [{ sku: "i" }, { sku: "j" }] }, "rename `items[].sku` to `item_id`"],
  [{ eventName: "view_content", content_id: "c".repeat(1025) }, "shorten `content_id` to 1,024 characters"],
  [{ eventName: "구매" }, "send one of the supported event names"],
  [{ eventName: "click", element_id: null }, "send a value for `element_id`"],
])("the cause of %j says how to fix it: %s", (event, words) => {
  const { add, figures } = logged();
  add({ uid: "u", ...event });
  expect(figures.now().problems.map(({ fix }) => text(fix))).toEqual([words]);
});

test("a recorded event says which of its parameters have the wrong type, and counts as recorded", () => {
  const { add, figures, log } = logged();
  const cart = { uid: "u", eventName: "add_to_cart", item_id: "i", price: "12,000원", quantity: 1 };
  add(cart);
  add({ ...cart, price: 12_000, coupon: 5, quantity: "1" });
  add({
    uid: "u",
    eventName: "purchase",
    tx_id: "t",
    items: [
      { item_id: "i", price: "1" },
      { item_id: "j", price: "2" },
    ],
  });
  add({ uid: "u", eventName: "purchase", tx_id: "t", items: {} });
  add({ ...cart, price: 12_000 });
  const causes = matchingEvents(log, { filter: "" }).events.map(({ verdict, cause }) => [verdict, text(cause ?? [])]);
  expect(causes).toEqual([
    ["recorded", "`price` is not a number"],
    ["recorded", "`quantity` is not a number"],
    ["recorded", "`items[].price` is not a number"],
    ["recorded", "`items` is not an array of objects"],
    ["recorded", ""],
  ]);
  expect(figures.now().problems).toEqual([]);
});

test("the fix of a cause is that of most of its events, whichever arrived first", () => {
  const { add, figures } = logged();
  add({ uid: "u", eventName: "purchase", currency: "KRW" });
  for (let at = 0; at < 2; at += 1) add({ uid: "u", eventName: "purchase", orderId: `o-${at}` });
  const [first] = figures.now().problems;
  expect([first?.count, text(first?.fix ?? [])]).toEqual([3, "rename `orderId` to `tx_id` (2 of 3); add `tx_id` (1)"]);
});

test("beside the three most frequent fixes of a cause, it is said how many events need another one", () => {
  const { add, figures } = logged();
  const names = ["orderId", "order_id", "transaction_id", "transactionId", "txid", "tx"];
  for (const [at, name] of names.entries())
    for (let times = at; times < names.length; times += 1) add({ uid: "u", eventName: "purchase", [name]: "o" });
  const [first] = figures.now().problems;
  expect(first?.count).toBe(21);
  expect(text(first?.fix ?? [])).toMatch(/^rename .* \(6 of 21\); .* \(5\); .* \(4\); 6 need another fix$/);
});

test("the events of one cause are found by its ID, and those of a forgotten one are none", () => {
  const { add, figures, log } = logged();
  add({ uid: "u", eventName: "Purchase" });
  add({ uid: "u", eventName: "purchase" });
  add({ uid: "vera", eventName: "Purchase" });
  const [first] = figures.now().problems;
  const listed = (id: number) =>
    matchingEvents(log, { filter: "", cause: figures.keyOf(id) ?? null }).events.map(({ seq }) => seq);
  expect(listed(first?.id ?? 0)).toEqual([1, 3]);
  expect(matchingEvents(log, { filter: "VERA", verdict: "ignored" }).events.map(({ seq }) => seq)).toEqual([3]);
  const totalOf = (filter: string) => matchingEvents(log, { filter }, 2).total;
  expect([totalOf("vera"), totalOf(""), totalOf("PURCHASE")]).toEqual([1, 3, 3]);
  add({ uid: "vera", eventName: "app_open" });
  add({ uid: "u", eventName: "purchase" });
  expect([totalOf("PURCHASE"), totalOf("vera")]).toEqual([4, 2]);
  expect(matchingEvents(log, { filter: "DROPPED vera" }).events.map(({ seq }) => seq)).toEqual([3]);
  expect(totalOf("vera")).toBe(2);
  log.clear();
  expect(totalOf("vera")).toBe(0);
  add({ uid: "u", eventName: "purchase" });
  expect(listed(first?.id ?? 0)).toEqual([]);
  expect(figures.now().problems).toMatchObject([{ name: "purchase", count: 1 }]);
});

test("the histogram counts the last ten minutes in bars of ten seconds", () => {
  const { add, clock, figures } = logged();
  add({ uid: "u", eventName: "app_open" });
  clock.now += 9_999;
  add({ uid: "u", eventName: "Purchase" });
  clock.now += 1;
  add({ eventName: "app_open" });
  const ofStart = { at: START, recorded: 1, ignored: 1, rejected: 0 };
  const later = { at: START + 10_000, recorded: 0, ignored: 0, rejected: 1 };
  expect(figures.now().histogram).toEqual({ now: clock.now, everyMs: 10_000, bars: [ofStart, later] });
  clock.now = START + 600_000;
  expect(figures.now().histogram.bars).toEqual([later]);
  clock.now += 10_000;
  expect(figures.now().histogram.bars).toEqual([]);
});

test("coverage counts each parameter, those that lacked, and unknown names with what they were meant to be", () => {
  const { add, figures } = logged();
  add({ uid: "u", eventName: "sign_up", method: "kakao" });
  add({ uid: "u", eventName: "sign_up" });
  for (const method of [7, ""]) add({ uid: "u", eventName: "sign_up", method });
  add({ uid: "u", eventName: "product_view" });
  add({ uid: "u", eventName: "구매" });
  for (let at = 0; at < 2; at += 1) add({ uid: "u", eventName: "SignUp" });
  const { coverage, unknownNames, problems } = figures.now();
  expect(coverage).toHaveLength(13);
  expect(coverage.find(({ name }) => name === "sign_up")).toEqual({
    name: "sign_up",
    count: 4,
    wrong: 1,
    misspelt: 2,
    note: ["misspelt as ", { code: "SignUp" }, " (2)"],
    parameters: [{ name: "method", required: true, count: 3, missing: 1, doubtful: 2 }],
  });
  expect(coverage.find(({ name }) => name === "view_item")).toMatchObject({ count: 0, misspelt: 1 });
  expect(unknownNames).toEqual([
    { name: "구매", count: 1, wrong: 1, misspelt: 0, parameters: [], note: ["unknown event name"] },
  ]);
  // The overview and the coverage have the same totals.
  expect(problems.map(({ of: { name, count, total } }) => `${name}: ${count} of ${total}`).toSorted()).toEqual([
    "sign_up: 3 of 6",
    "sign_up: 3 of 6",
    "view_item: 1 of 1",
    "구매: 1 of 1",
  ]);
});

test("20,000 events with 2,000 causes are counted whole, in rows and memory that are bounded", () => {
  const { add, figures } = logged();
  for (let at = 0; at < 20_000; at += 1) add({ uid: "u", eventName: `event-${at % 2000}` });
  const { problems, otherProblems, unknownNames, coverage } = figures.now();
  expect(problems).toHaveLength(50);
  expect(problems.reduce((sum, { count }) => sum + count, otherProblems)).toBe(20_000);
  expect(unknownNames).toHaveLength(20);
  expect(problems.length + unknownNames.length + coverage.length + 100).toBeLessThan(500);
});

test("the detail of an event has each problem with its fix, the corrected body, and all events of its kind", () => {
  const { add, figures, log } = logged();
  for (let at = 0; at < 2; at += 1) add({ uid: "u", eventName: "Purchase", orderId: "o-1" });
  const detail = eventDetail(log, 2, figures);
  expect(detail?.problems[0]).toEqual({
    message: '"Purchase" is not a supported event',
    fix: 'send "purchase"',
    isDecisive: true,
    section: "7",
  });
  expect(detail?.sameProblem).toMatchObject({ count: 2, name: "Purchase" });
  expect(JSON.parse(detail?.corrected?.text ?? "")).toEqual({ uid: "u", eventName: "purchase", tx_id: "o-1" });
  expect(detail?.corrected?.examples).toEqual([]);
  expect(eventDetail(log, 3, figures)).toBeUndefined();
});

test("a hint does not repeat which field to rename, and says that items are optional", () => {
  const { add, figures, log } = logged();
  add({ uid: "u", eventName: "purchase", orderId: "o-1", other: 1 });
  expect(eventDetail(log, 1, figures)?.problems.map(({ message, fix }) => [message, fix])).toEqual([
    ['"purchase" needs "tx_id"', 'rename "orderId" to "tx_id"'],
    ['"other" is not a parameter here; the service ignores it', "leave it out"],
    [
      '"items" is missing or empty; assumed to be optional: the API document does not clearly require it',
      'to report products, send at least one entry with its "item_id"',
    ],
  ]);
});
