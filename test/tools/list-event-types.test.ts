import { expect, test } from "vitest";
import { tokensOf } from "../../src/answers/budget.ts";
import { listEventTypesTool } from "../../src/tools/list-event-types.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const NAMES = [
  ...["app_open", "sign_up", "push_clicks", "page_view", "click", "view_item", "add_to_wishlist", "add_to_cart"],
  ...["begin_checkout", "purchase", "view_content", "begin_lead_form", "generate_lead"],
];

test("the catalogue in few tokens", async () => {
  const { context } = await eventTools();
  const { structured, text } = await answerOf(listEventTypesTool, {}, context);
  for (const name of NAMES) expect(text).toContain(`\n${name} (`);
  expect(structured.events).toHaveLength(NAMES.length);
  expect(structured.events).toContainEqual({
    eventName: "generate_lead",
    meaning: "Lead generated",
    required: ["form_id"],
    optional: ["form_name", "form_type", "form_destination", "value", "currency"],
  });
  expect(tokensOf(JSON.stringify(structured)) + tokensOf(text)).toBeLessThan(2000);
});

test("one event in full", async () => {
  const { context } = await eventTools();
  const { structured, text } = await answerOf(listEventTypesTool, { eventName: "purchase" }, context);
  expect(structured).toMatchObject({
    environment: "sandbox",
    events: [{ eventName: "purchase", required: ["tx_id"], itemFields: expect.any(Array) }],
  });
  expect(text).toMatchInlineSnapshot(`
    "* marks required parameters: without one, the service drops or refuses the event. Types are text of at most 1024 characters, or as in brackets.
    purchase (Purchase completed): uid*, eventName* (at most 64 characters), platform, tx_id*, currency, items (array of at most 100 objects); each entry of items: item_id*, item_name, item_category, brand, price (number), quantity (number)"
  `);
});

test.each([
  ["purchase_complete", 'did you mean "purchase"?'],
  ["Add-To-Cart", 'did you mean "add_to_cart"?'],
  ["weather", "the events are app_open, sign_up"],
])("%s is not an event, and the error says which is", async (eventName, words) => {
  const { context } = await eventTools();
  await expect(answerOf(listEventTypesTool, { eventName }, context)).rejects.toThrow(words);
});
