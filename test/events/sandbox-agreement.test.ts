import fc from "fast-check";
import { expect, it } from "vitest";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { eventsOf } from "../../src/events/suites/suite.ts";
import { validateEvent } from "../../src/events/validate.ts";
import { eventFindings, verdictOf } from "../../src/sandbox/logs.ts";
import { VERDICT_CASES } from "./verdicts.ts";

/**
 * Checks that the sandbox, which has its own implementation of the rules and stores what the documents leave open,
 * agrees with the validation.
 */
function expectAgreement(event: unknown): void {
  const { verdict } = validateEvent(event);
  expect(verdictOf(eventFindings(event)), JSON.stringify(event).slice(0, 500)).toBe(
    verdict === "uncertain" ? "recorded" : verdict,
  );
}

const LONG = [
  "가".repeat(1024),
  "가".repeat(1025),
  "😀".repeat(600),
  "😀".repeat(1025),
  "x".repeat(64),
  "x".repeat(65),
];
const value = fc.oneof(
  fc.constantFrom<unknown>("", null, 7, "7", true, {}, [], [{}], { deep: [LONG[1]] }, ...LONG),
  fc.jsonValue({ maxDepth: 2 }),
);
const name = fc.constantFrom(
  "item_id",
  "tx_id",
  "price",
  "quantity",
  "currency",
  "method",
  "__proto__",
  "constructor",
  "note",
);
const item = fc.oneof(value, fc.dictionary(name, value));
const items = fc.oneof(
  value,
  fc.array(item, { maxLength: 4 }),
  fc.constantFrom(100, 101).map((length) => Array.from({ length }, () => ({ item_id: "i" }))),
);
const eventNames = ["purchase", "begin_checkout", "add_to_cart", "view_item", "sign_up", "app_open", "Purchase"];
const event = fc
  .tuple(
    fc.record(
      { uid: fc.oneof(fc.constant("u"), value), eventName: fc.oneof(fc.constantFrom(...eventNames), value) },
      { requiredKeys: [] },
    ),
    fc.dictionary(name, value),
    fc.record({ items, platform: value }, { requiredKeys: [] }),
  )
  .map((parts): unknown => Object.assign({}, ...parts));

it.each(VERDICT_CASES.map((one) => [one.title, one] as const))(
  "the sandbox follows the table written by hand: %s",
  (_title, { event: sent, verdict }) => {
    expect(verdictOf(eventFindings(sent))).toBe(verdict === "uncertain" ? "recorded" : verdict);
  },
);

it("the prediction agrees with the sandbox on every generated test", () => {
  for (const one of generateEventTests({ seed: 11 }).cases) for (const sent of eventsOf(one)) expectAgreement(sent);
});

it("the prediction agrees with the sandbox on any event", () => {
  fc.assert(fc.property(fc.oneof(event, fc.jsonValue()), expectAgreement), { numRuns: 5000, seed: 20_260_103 });
});
