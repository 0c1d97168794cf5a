import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearestName, remembering } from "../../src/events/spelling.ts";
import { validateEvent } from "../../src/events/validate.ts";
import { VERDICT_CASES } from "./verdicts.ts";

const HIGHER = 'send the fields of "params" one level higher, without "params"';

describe("the verdict on an event", () => {
  it.each(VERDICT_CASES)("$title: $verdict", ({ event, verdict, finding, basis }) => {
    const validation = validateEvent(event);
    expect(validation.verdict).toBe(verdict);
    if (basis !== undefined) expect(validation.basis).toBe(basis);
    if (finding === undefined) {
      expect(validation.findings).toEqual([]);
      return;
    }
    const [path, rule] = finding;
    expect(validation.findings).toContainEqual(expect.objectContaining({ path, rule }));
    const severity = verdict === "recorded" ? "warning" : "verdict";
    expect(validation.findings[0]).toMatchObject({ severity, message: expect.any(String), fix: expect.any(String) });
  });

  it.each([
    [{ uid: "u", eventName: "Purchase" }, "eventName", 'send "purchase"'],
    [{ uid: "u", eventName: "purchase_complete" }, "eventName", 'send "purchase"'],
    [{ uid: "u", eventName: "addToCart" }, "eventName", 'send "add_to_cart"'],
    [{ uid: "u", eventName: "page_veiw" }, "eventName", 'send "page_view"'],
    [{ uid: "u", eventName: "view_item", itemId: "i" }, "item_id", 'rename "itemId" to "item_id"'],
    [{ uid: "u", eventName: "view_item", productId: "i" }, "item_id", 'rename "productId" to "item_id"'],
    [
      { uid: "u", eventName: "purchase", tx_id: "t", items: [{ sku: "i" }] },
      "items[0].item_id",
      'rename "sku" to "item_id"',
    ],
    [{ uid: "u", eventName: "purchase", order_id: "t" }, "tx_id", 'rename "order_id" to "tx_id"'],
    [{ user_id: "u", eventName: "app_open" }, "uid", 'rename "user_id" to "uid"'],
    [{ uid: "u", event: "app_open" }, "eventName", 'rename "event" to "eventName"'],
    [{ uid: "u", eventName: "view_item", item_id: "i", itemName: "n" }, "itemName", 'did you mean "item_name"?'],
    [{ uid: "u", eventName: "app_open", event_time: 1 }, "event_time", "leave it out"],
    [{ uid: "u", eventName: "view_item", params: { item_id: "i" } }, "item_id", `it is inside "params": ${HIGHER}`],
    [{ uid: "u", eventName: "view_item", params: { item_id: "i" } }, "params", HIGHER],
    [{ uid: "u", eventName: "view_item", item_id: "i", params: { item_id: "i" } }, "params", "leave it out"],
    [{ uid: "u", eventName: "view_item", item_id: "i", params: { shelf: "s" } }, "params", "leave it out"],
    [
      { uid: "u", eventName: "purchase", tx_id: "t", items: [{ item_id: "i", more: { price: 1 } }] },
      "items[0].more",
      'send the fields of "more" one level higher, without "more"',
    ],
  ])("names what %j was meant to be", (event, path, fix) => {
    expect(validateEvent(event).findings).toContainEqual(expect.objectContaining({ path, fix }));
  });

  it("says that the service dates an event when it arrives, whatever time the event gives", () => {
    for (const name of ["timestamp", "eventTime", "created_at"]) {
      const [found] = validateEvent({ uid: "u", eventName: "app_open", [name]: 1 }).findings;
      expect(found?.message).toMatch(/the service ignores it and dates the event when it arrives$/);
    }
  });

  it("says that a personal uid is hashed before it is stored, and sent unhashed", () => {
    const [found] = validateEvent({ uid: "kim@example.com", eventName: "app_open" }).findings;
    expect(found?.message).toMatch(/hashes it with SHA-256 before storing.*sent to the service unhashed/);
  });

  it("takes the keys of prototypes for what they are: unknown parameters", () => {
    const event: unknown = JSON.parse(
      '{"uid":"u","eventName":"view_item","__proto__":{"item_id":"i"},"constructor":{"item_id":"i"},"toString":1}',
    );
    const { verdict, findings } = validateEvent(event);
    expect(verdict).toBe("ignored");
    expect(findings.map(({ path }) => path).sort()).toEqual(["__proto__", "constructor", "item_id", "toString"]);
  });

  it("looks into values nested deeper than the stack", () => {
    const depth = 50_000;
    const event: unknown = JSON.parse(
      `{"uid":"u","eventName":"app_open","deep":${"[".repeat(depth)}${"]".repeat(depth)}}`,
    );
    expect(validateEvent(event).verdict).toBe("recorded");
  });

  it("never throws, and its verdict is that of its strongest finding", () => {
    const name = fc.constantFrom("uid", "eventName", "items", "item_id", "tx_id", "price", "currency", "__proto__");
    const known = fc.constantFrom<unknown>("purchase", "add_to_cart", "view_item", "Purchase", "kim@example.com", "");
    const object = fc.dictionary(fc.oneof(name, fc.string()), fc.oneof(known, fc.jsonValue()));
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), object), (event) => {
        const { verdict, findings } = validateEvent(event);
        expect(findings.some(({ severity }) => severity === "verdict")).toBe(verdict !== "recorded");
        expect(findings.every(({ path, message, fix }) => path.length < 200 && message !== "" && fix !== "")).toBe(
          true,
        );
      }),
      { numRuns: 1000, seed: 20_260_101 },
    );
  });
});

describe("the nearest name", () => {
  it("is the same whether remembered or not", () => {
    const remembered = remembering(nearestName);
    const valid = ["item_id", "item_name"];
    for (const name of ["itemId", "nothing alike", "itemId", "nothing alike", "x".repeat(10_000)]) {
      expect(remembered(name, valid)).toBe(nearestName(name, valid));
    }
  });
});
