import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { generateEventTests } from "../../src/events/suites/generate.ts";
import { eventSuite, eventSuiteJsonSchema, eventsOf } from "../../src/events/suites/suite.ts";
import { validateEvent } from "../../src/events/validate.ts";
import { keptAs } from "./reference-service.ts";

const suite = generateEventTests({ seed: 7 });

function caseOf(id: string) {
  const found = suite.cases.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no case ${id}`);
  return found;
}

describe("a generated suite", () => {
  it("is the same for the same seed, and another for another", () => {
    expect(generateEventTests({ seed: 7 })).toEqual(suite);
    expect(generateEventTests({ seed: 8 })).not.toEqual(suite);
  });

  it("has the shape that is published", () => {
    expect(eventSuite.parse(JSON.parse(JSON.stringify(suite)))).toEqual(suite);
    expect(new Set(suite.cases.map(({ id }) => id)).size).toBe(suite.cases.length);
  });

  it.each(suite.cases.map((one) => [one.id, one] as const))("%s has the right verdict", (_id, one) => {
    for (const event of eventsOf(one)) {
      const { verdict, basis, findings } = validateEvent(event);
      expect({ verdict, basis }).toEqual({ verdict: one.expected, basis: one.basis });
      if (one.rule !== undefined) expect(findings.map(({ rule }) => rule)).toContain(one.rule);
      expect(keptAs(event)).toBe(one.expected === "uncertain" ? "recorded" : one.expected);
    }
  });

  it("tries every event in every kind", () => {
    const names = [
      ...["app_open", "sign_up", "push_clicks", "page_view", "click", "view_item", "add_to_wishlist", "add_to_cart"],
      ...["begin_checkout", "purchase", "view_content", "begin_lead_form", "generate_lead"],
    ];
    const kinds = ["minimal", "full", "missing", "limit", "type", "unknown", "misspelt", "item"];
    const tried = new Set(suite.cases.map(({ id }) => id.split("/").slice(0, 2).join("/")));
    expect(names.flatMap((name) => kinds.map((kind) => `${name}/${kind}`)).filter((one) => !tried.has(one))).toEqual(
      [],
    );
  });

  it.each([
    ["add_to_cart/missing/price", "ignored", "documented"],
    ["purchase/item/first", "ignored", "documented"],
    ["purchase/item/middle", "ignored", "documented"],
    ["purchase/item/last", "ignored", "documented"],
    ["sign_up/limit/method-1024", "recorded", "documented"],
    ["sign_up/limit/method-1025", "rejected", "assumed"],
    ["purchase/limit/items-100", "recorded", "documented"],
    ["purchase/limit/items-101", "rejected", "assumed"],
    ["click/limit/eventName-64", "ignored", "documented"],
    ["click/limit/eventName-65", "rejected", "assumed"],
    ["add_to_cart/type/price", "uncertain", "notShown"],
    ["purchase/misspelt/eventName-capital", "ignored", "documented"],
    ["view_item/misspelt/item_id-itemId", "ignored", "documented"],
    ["sequence/sale", "recorded", "documented"],
    ["sequence/lead", "recorded", "documented"],
  ])("expects %s to be %s", (id, expected, basis) => {
    expect(caseOf(id)).toMatchObject({ expected, basis });
  });

  it("walks a sale as one user with one item", () => {
    const events = eventsOf(caseOf("sequence/sale"));
    expect(events.map(({ eventName }) => eventName)).toEqual([
      "view_item",
      "add_to_cart",
      "begin_checkout",
      "purchase",
    ]);
    expect(new Set(events.map(({ uid }) => uid)).size).toBe(1);
    expect(events[3]).toMatchObject({ items: [{ item_id: events[0]?.item_id }, {}] });
  });

  it("holds only what was asked for", () => {
    const { cases, uid } = generateEventTests({ eventNames: ["click"], kinds: ["minimal", "sequence"], uid: "me" });
    expect(cases.map(({ id }) => id)).toEqual(["click/minimal/required"]);
    expect(uid).toBe("me");
    expect(() => generateEventTests({ eventNames: ["Purchase"] })).toThrow('did you mean "purchase"?');
  });
});

describe("the published JSON Schema", () => {
  it("is docs/event-suite.schema.json, which `npx tsx scripts/event-suite-schema.ts` writes", async () => {
    const written = await readFile(new URL("../../docs/event-suite.schema.json", import.meta.url), "utf8");
    expect(JSON.parse(written)).toEqual(eventSuiteJsonSchema());
  });
});
