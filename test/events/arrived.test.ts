import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countArrived, coverageOf } from "../../src/events/coverage.ts";
import { describeEventType, listEventTypes } from "../../src/events/event-types.ts";
import {
  type ArrivedEvent,
  checkDuration,
  checkExpectations,
  type Expectation,
} from "../../src/events/expectations.ts";

function at(arrivedAt: number, eventName: string, parameters: Record<string, unknown> = {}): ArrivedEvent {
  return { body: { uid: "u", eventName, ...parameters }, verdict: "recorded", arrivedAt };
}

const view = at(0, "view_item", { item_id: "i-1" });
const cart = at(100, "add_to_cart", { item_id: "i-1", price: 2, quantity: 1 });
const purchase = at(5000, "purchase", { tx_id: "t-1", items: [{ item_id: "i-1", quantity: 2 }, { item_id: "i-2" }] });
const lost: ArrivedEvent = { ...at(6000, "purchase", { items: [] }), verdict: "ignored" };
const misnamed: ArrivedEvent = { ...at(7000, "Purchase"), verdict: "ignored" };
const sale = [view, cart, purchase];

describe("expectations", () => {
  const one: readonly (readonly [string, readonly ArrivedEvent[], Expectation, object])[] = [
    ["one that came", sale, { eventName: "purchase" }, { met: true, found: 1 }],
    ["one that did not", sale, { eventName: "sign_up" }, { met: false, found: 0, reason: "none arrived" }],
    ["the right count", [view, view], { eventName: "view_item", count: 2 }, { met: true, found: 2 }],
    [
      "another count",
      [view, view],
      { eventName: "view_item", count: 1 },
      { met: false, found: 2, reason: "expected 1, found 2" },
    ],
    ["none, as wanted", sale, { eventName: "click", count: 0 }, { met: true, found: 0 }],
    ["one that should not be", sale, { eventName: "purchase", count: 0 }, { met: false, found: 1 }],
    ["a parameter", sale, { eventName: "purchase", where: { tx_id: "t-1" } }, { met: true, found: 1 }],
    ["an item", sale, { eventName: "purchase", where: { items: [{ item_id: "i-2" }] } }, { met: true, found: 1 }],
    [
      "another parameter",
      sale,
      { eventName: "purchase", where: { tx_id: "t-2" } },
      { met: false, found: 0, reason: '1 arrived, but none with the parameters of "where"' },
    ],
    [
      "an inherited property",
      sale,
      { eventName: "purchase", where: { constructor: Object } },
      { met: false, found: 0 },
    ],
    [
      "one that was ignored",
      [lost],
      { eventName: "purchase" },
      { met: false, found: 0, reason: 'an event "purchase" arrived and was ignored' },
    ],
    [
      "two recorded and two lost of four",
      [purchase, lost, purchase, lost],
      { eventName: "purchase", count: 4 },
      {
        met: false,
        found: 2,
        reason: '2 other events "purchase" arrived and were ignored; 2 recorded, 4 expected',
      },
    ],
    ["one of two ignored", [purchase, lost], { eventName: "purchase" }, { met: false, found: 1 }],
    ["an ignored one, as wanted", [lost], { eventName: "purchase", verdict: "ignored" }, { met: true, found: 1 }],
    [
      "a recorded one where it should be ignored",
      [purchase],
      { eventName: "purchase", verdict: "ignored" },
      { met: false, found: 0, reason: "it arrived, but was recorded, not ignored" },
    ],
    [
      "a misspelt one",
      [misnamed],
      { eventName: "purchase" },
      { met: false, found: 0, reason: 'none arrived, but "Purchase" did' },
    ],
    [
      "one whose expected name is misspelt",
      [purchase],
      { eventName: "view_itm" },
      { met: false, found: 0, reason: 'none arrived; did you mean "view_item"?' },
    ],
  ];

  it.each(one)("%s", (_title, arrived, expectation, result) => {
    expect(checkExpectations(arrived, [expectation])[0]).toMatchObject(result);
  });

  const names = (...eventNames: string[]): readonly Expectation[] => eventNames.map((eventName) => ({ eventName }));
  const met = (results: readonly { readonly met: boolean }[]) => results.map((result) => result.met);

  it("hold in order", () => {
    const order = { inOrder: true };
    expect(met(checkExpectations(sale, names("view_item", "add_to_cart", "purchase"), order))).toEqual([
      true,
      true,
      true,
    ]);
    const wrong = checkExpectations(sale, names("purchase", "view_item"), order);
    expect(wrong[1]).toEqual({
      met: false,
      found: 1,
      reason: "not after the events expected before it",
      check: "order",
    });
    expect(met(checkExpectations([cart, view, purchase], names("view_item", "purchase"), order))).toEqual([true, true]);
  });

  it("hold within a time, in whichever stretch meets them", () => {
    const expected = names("view_item", "add_to_cart");
    expect(met(checkExpectations(sale, expected, { withinMs: 100 }))).toEqual([true, true]);
    const late = [view, at(5000, "view_item", { item_id: "i" }), { ...cart, arrivedAt: 5050 }];
    expect(met(checkExpectations(late, expected, { withinMs: 100, inOrder: true }))).toEqual([true, true]);
    const [, tooLate] = checkExpectations(sale, names("view_item", "purchase"), { withinMs: 1000 });
    expect(tooLate).toEqual({
      met: false,
      found: 1,
      reason: "not within 1,000 ms of the first expected event, but 5,000 ms after it",
      check: "within",
    });
    const twice = [
      { ...purchase, arrivedAt: 1000 },
      { ...view, arrivedAt: 2000 },
      { ...purchase, arrivedAt: 20_000 },
    ];
    const order = { withinMs: 10_000, inOrder: true };
    expect(checkExpectations(twice, names("view_item", "purchase"), order)[1]).toMatchObject({
      met: false,
      reason: expect.stringContaining("first expected event, but 18,000 ms after it"),
    });
    const early = [view, { ...cart, arrivedAt: 11_000 }, { ...purchase, arrivedAt: 11_040 }];
    const three = names("view_item", "add_to_cart", "purchase");
    const [tooEarly, ...others] = checkExpectations(early, three, { withinMs: 10_000, inOrder: true });
    expect(met(others)).toEqual([true, true]);
    const before = 11_040 - view.arrivedAt;
    expect(tooEarly?.reason).toBe(
      `not within 10,000 ms of the last expected event, but ${before.toLocaleString("en")} ms before it`,
    );
  });
});

describe("expectations that are repeated", () => {
  const opened = [at(0, "app_open"), at(86, "page_view"), at(2191, "page_view"), at(4360, "app_open")];
  const events = [...opened, at(4522, "page_view")];
  const open = { eventName: "app_open" };
  const page = { eventName: "page_view" };
  const reasons = (expected: readonly Expectation[], options: Parameters<typeof checkExpectations>[2] = {}) =>
    checkExpectations(events, expected, options).map(({ met, reason }) => reason ?? met);

  it("need an event each", () => {
    expect(reasons([page, page, page, page])).toEqual([true, true, true, "expected 4 times, found 3"]);
    expect(reasons([{ ...page, where: {} }, page])).toEqual([true, true]);
    const where = { uid: "u", eventName: "app_open" };
    const turned = { eventName: "app_open", uid: "u" };
    expect(
      reasons([
        { ...open, where },
        { ...open, where: turned },
        { ...open, where },
      ]),
    ).toEqual([true, true, "expected 3 times, found 2"]);
    const allowed = { withinMs: 4000 };
    expect(checkDuration(events, [page, page], allowed)).toEqual({ met: true, tookMs: 2105, missing: [] });
    expect(checkDuration(events, [page, page, page], allowed)).toEqual({ met: false, tookMs: 4436, missing: [] });
    expect(checkDuration(events, [page, page, page, page], allowed)).toEqual({ met: false, missing: [3] });
  });

  it("say the same about the time as the check of the time", () => {
    const late = (by: string) => `not within 1,000 ms of the first expected event, but ${by} ms after it`;
    const order = { inOrder: true, withinMs: 1000 };
    expect(reasons([{ ...page, count: 3 }], order)).toEqual(["not within 1,000 ms: its 3 events took 4,436 ms"]);
    expect(reasons([page, page, page], { withinMs: 1000 })).toEqual([true, late("2,105"), late("4,436")]);
    expect(reasons([open, page, page, page], order)).toEqual([true, true, late("2,191"), late("4,522")]);
    expect(reasons([page, open], order)).toEqual([true, late("2,169")]);
    expect(checkDuration(events, [page, open], order)).toEqual({ met: false, tookMs: 2169, missing: [] });
    const five = [open, page, page, page, page];
    expect(reasons(five, order)).toEqual([true, true, late("2,191"), late("4,522"), "expected 4 times, found 3"]);
    expect(checkDuration(events, five, order)).toEqual({ met: false, missing: [4] });
  });
});

describe("expectations within a time", () => {
  const event = fc.record({
    arrivedAt: fc.nat({ max: 12 }),
    verdict: fc.constantFrom("recorded" as const, "ignored" as const),
    eventName: fc.constantFrom("click", "app_open", "sign_up"),
  });
  const expectation = fc.record(
    {
      eventName: fc.constantFrom("click", "app_open", "sign_up"),
      count: fc.nat({ max: 2 }),
      verdict: fc.constantFrom("recorded" as const, "ignored" as const),
    },
    { requiredKeys: ["eventName"] },
  );

  it("are met as without the time, and all of them if a stretch meets all, as the check of the time says", () => {
    const inputs = fc.tuple(
      fc.array(event, { maxLength: 12 }),
      fc.array(expectation, { minLength: 1, maxLength: 4 }),
      fc.nat({ max: 6 }),
      fc.boolean(),
    );
    fc.assert(
      fc.property(inputs, ([events, expected, withinMs, inOrder]) => {
        const arrived = events.map(({ eventName, ...rest }) => ({ ...rest, body: { uid: "u", eventName } }));
        const count = (results: readonly { readonly met: boolean }[]) => results.filter(({ met }) => met).length;
        const meant = arrived
          .filter(({ body }) => expected.some(({ eventName }) => eventName === body.eventName))
          .toSorted((one, other) => one.arrivedAt - other.arrivedAt);
        const stretches = meant.map(({ arrivedAt: from }, start) =>
          meant.slice(start).filter(({ arrivedAt }) => arrivedAt <= from + withinMs),
        );
        const best = [[], ...stretches].slice(stretches.length > 0 ? 1 : 0);
        const overall = checkExpectations(arrived, expected, { inOrder });
        const results = checkExpectations(arrived, expected, { inOrder, withinMs });
        for (const [index, { met }] of overall.entries()) if (!met) expect(results[index]).toEqual(overall[index]);
        if (overall.some(({ met }) => !met)) return;
        const most = Math.max(...best.map((stretch) => count(checkExpectations(stretch, expected, { inOrder }))));
        expect(count(results) === expected.length).toBe(most === expected.length);
        expect(checkDuration(arrived, expected, { inOrder, withinMs }).met).toBe(most === expected.length);
      }),
      { numRuns: 2000, seed: 20_260_104 },
    );
  });

  it("do not overlook a second or an ignored event outside of the time", () => {
    const body = { uid: "u", eventName: "purchase", tx_id: "t" };
    const once = { body, verdict: "recorded", arrivedAt: 0 } as const;
    const only = [{ eventName: "purchase", count: 1 }];
    expect(checkExpectations([once, { ...once, arrivedAt: 5000 }], only, { withinMs: 1000 })).toEqual([
      { met: false, found: 2, reason: "expected 1, found 2" },
    ]);
    const ignored = { ...once, verdict: "ignored", arrivedAt: 5000 } as const;
    expect(checkExpectations([once, ignored], only, { withinMs: 1000 })).toEqual([
      { met: false, found: 1, reason: 'another event "purchase" arrived and was ignored; 1 recorded' },
    ]);
  });

  it("look at 100,000 events as they look at few", () => {
    const arrived = Array.from({ length: 100_000 }, (_, index) => at(index, "click", { element_id: `e-${index}` }));
    const never = { eventName: "click", where: { element_id: "none" } };
    const [, last] = checkExpectations(arrived, [{ eventName: "click" }, never], { withinMs: 60_000, inOrder: true });
    expect(last).toMatchObject({ met: false, found: 0 });
  });
});

describe("coverage", () => {
  const covered = (events: readonly ArrivedEvent[]) =>
    coverageOf(countArrived(events.map((event) => ({ ...event, findings: [] }))));

  it("tells what was never seen, and what was recorded always, sometimes and never", () => {
    const click: ArrivedEvent = { ...at(1, "click", { elementId: "b" }), verdict: "ignored" };
    const coverage = covered([...sale, lost, misnamed, misnamed, click, { ...click, body: 7 }]);
    expect(coverage.summary).toBe(
      "4 of 13 events seen: 2 always recorded, 1 sometimes not recorded, 1 never recorded; 6 of 44 parameters; unsupported event names: 1",
    );
    expect(coverage.alwaysRight).toEqual({ view_item: 1, add_to_cart: 1 });
    expect(coverage.sometimesWrong).toEqual({ purchase: { wrong: 1, of: 2, rules: { "requiredMissing tx_id": 1 } } });
    expect(coverage.alwaysWrong).toEqual({ click: { wrong: 1, of: 1, rules: { "requiredMissing element_id": 1 } } });
    expect(coverage.unsupported).toEqual({ Purchase: { count: 2, nearest: "purchase" } });
    expect(coverage.neverSeen).toHaveLength(9);
    expect(coverage.parametersNeverSeen.view_item).toEqual([
      "item_name",
      "item_category",
      "brand",
      "price",
      "platform",
    ]);
    expect(coverage.rules).toMatchObject({ eventNameUnsupported: 2, requiredMissing: 2, bodyNotObject: 1 });
  });

  it("counts an event once for each reason, however many of its items have it", () => {
    const { alwaysWrong } = covered([{ ...at(1, "purchase", { tx_id: "t", items: [{}, {}] }), verdict: "ignored" }]);
    expect(alwaysWrong).toEqual({ purchase: { wrong: 1, of: 1, rules: { "requiredMissing items[].item_id": 1 } } });
  });

  it("costs few tokens, whatever came", () => {
    const many = Array.from({ length: 5000 }, (_, index): ArrivedEvent => {
      const items = Array.from({ length: 100 }, () => ({}));
      return {
        ...at(index, index % 2 === 0 ? `event_${index}` : "purchase", { tx_id: "t", items }),
        verdict: "ignored",
      };
    });
    expect(JSON.stringify(covered(many)).length).toBeLessThan(2000);
  });
});

describe("the list of event types", () => {
  it("is the catalogue in short", () => {
    const events = listEventTypes();
    expect(events).toHaveLength(13);
    expect(events).toContainEqual({
      eventName: "add_to_cart",
      meaning: "Item added to cart",
      required: ["item_id", "price", "quantity"],
      optional: ["item_name", "item_category", "brand", "value", "currency"],
    });
  });

  it("gives one event in full", () => {
    const purchase = describeEventType("purchase");
    expect(purchase.fields).toContainEqual({ name: "eventName", type: "string", required: true, maximum: 64 });
    expect(purchase.parameters).toEqual([
      { name: "tx_id", type: "string", required: true, maximum: 1024 },
      { name: "currency", type: "string", required: false, maximum: 1024 },
      { name: "items", type: "items", required: false, maximum: 100 },
    ]);
    expect(purchase.itemFields).toContainEqual({ name: "price", type: "number", required: false });
    expect(() => describeEventType("purchase_complete")).toThrow('did you mean "purchase"?');
  });
});
