import { expect, test } from "vitest";
import { validateEvent } from "../../../src/events/validate.ts";
import { correctedEvent, diffLines } from "../../../src/web/corrected-event.ts";
import type { BodyLine } from "../../../src/web/sandbox-wire.ts";

const MARKS = { same: "", removed: "-", added: "+" } as const;

/** Returns a line as text, with its marked parts in braces. */
function text(line: BodyLine): string {
  return line.map((piece) => (piece.is === "same" ? piece.text : `{${MARKS[piece.is]}${piece.text}}`)).join("");
}

test("names are put right, and what is missing gets an example value that is named as one", () => {
  const corrected = correctedEvent({ uid: "shopper-106", eventName: "Purchase", platform: "web" });
  expect(corrected?.lines.map(text)).toEqual([
    "{",
    '  "uid": "shopper-106",',
    '  "eventName": "{-Purchase}{+purchase}",',
    '  "platform": "web",',
    expect.stringMatching(/^\{\+ {2}"tx_id": "tx_id-\w+"\}$/),
    "}",
  ]);
  expect(corrected?.examples).toEqual(["tx_id"]);
});

test("fields that are renamed beside the event are named: without them it would still be dropped", () => {
  const body = { uid: "u", eventName: "Purchase", orderId: "order-1042", currency: "KRW" };
  expect(correctedEvent(body)?.renamed).toEqual(["orderId → tx_id"]);
});

test.each([
  ["an event without uid", { eventName: "app_open" }],
  ["a number as uid", { uid: 7, eventName: "app_open" }],
  ["a synonym and a parameter of another system", { uid: "u", eventName: "product_view", productId: "p" }],
  ["items as a text", { uid: "u", eventName: "purchase", items: '[{"sku":"s"},{}]' }],
  ["entries that are no objects", { uid: "u", eventName: "purchase", tx_id: "t", items: [null, 3] }],
  ["a text that is too long", { uid: "u", eventName: "sign_up", method: "가".repeat(1025) }],
  [
    "too many items",
    { uid: "u", eventName: "purchase", tx_id: "t", items: Array.from({ length: 200 }, () => ({ item_id: "i" })) },
  ],
  ["required fields that are null", { uid: "u", eventName: "add_to_cart", item_id: null, price: null, quantity: 1 }],
])("%s becomes an event that is recorded", (_, body) => {
  expect(["ignored", "rejected"]).toContain(validateEvent(body).verdict);
  const corrected = correctedEvent(body);
  expect(["recorded", "uncertain"]).toContain(validateEvent(JSON.parse(corrected?.text ?? "null")).verdict);
});

test.each([
  ["an event that is recorded", { uid: "u", eventName: "app_open" }],
  ["a name that is like no other", { uid: "u", eventName: "zzzzzz" }],
  ["no object", ["app_open"]],
  ["no name", { uid: "u" }],
])("%s has no corrected form", (_, body) => {
  expect(correctedEvent(body)).toBeUndefined();
});

test("lines that were removed and added are told apart, and a comma is no change", () => {
  const lines = diffLines(["{", '  "a": 1,', '  "b": 2', "}"], ["{", '  "b": 2,', '  "c": 3', "}"]);
  expect(lines.map(text).join("\n")).toContain('"b": 2');
  expect(diffLines(['  "a": 1'], ['  "a": 1,']).map(text)).toEqual(['  "a": 1,']);
  expect(diffLines(["same"], ["same"]).map(text)).toEqual(["same"]);
});
