/**
 * Events and what happens to them, written by hand from event-tracking-api and from our assumptions where that is
 * silent. Imports nothing from src/, so that a wrong fact there fails a test.
 */

export interface VerdictCase {
  readonly title: string;
  readonly event: unknown;
  readonly verdict: "recorded" | "ignored" | "rejected" | "uncertain";
  /** The path and the rule that decide. If the event is recorded, they only cause a warning. */
  readonly finding?: readonly [path: string, rule: string];
  readonly basis?: "documented" | "assumed" | "notShown";
}

type Fields = Readonly<Record<string, unknown>>;

const e = (eventName: string, parameters: Fields = {}) => ({ uid: "u-1", eventName, ...parameters });
const cart = { item_id: "i-1", price: 10, quantity: 3 };
const itemsOf = (count: number) => Array.from({ length: count }, (_, index) => ({ item_id: `i-${index}` }));
const KOREAN_1024 = "가".repeat(1024);
const KOREAN_1025 = "가".repeat(1025);
/** 1,000 characters, but 2,000 UTF-16 units. */
const EMOJI_1000 = "😀".repeat(1000);

function plain(
  how: string,
  rows: readonly (readonly [eventName: string, parameters: Fields])[],
): readonly VerdictCase[] {
  return rows.map(([eventName, parameters]) => ({
    title: `${eventName}, ${how}`,
    event: e(eventName, parameters),
    verdict: "recorded",
    basis: "documented",
  }));
}

function missing(
  rows: readonly (readonly [eventName: string, parameters: Fields, path: string])[],
): readonly VerdictCase[] {
  return rows.map(([eventName, parameters, path]) => ({
    title: `${eventName} without ${path}`,
    event: e(eventName, parameters),
    verdict: "ignored",
    finding: [path, "requiredMissing"],
    basis: "documented",
  }));
}

function found(
  verdict: Pick<VerdictCase, "verdict" | "basis">,
  rows: readonly (readonly [path: string, eventName: string, parameters: Fields, rule: string])[],
): readonly VerdictCase[] {
  return rows.map(([path, eventName, parameters, rule]) => ({
    title: `${eventName}: ${path} ${rule}`,
    event: e(eventName, parameters),
    finding: [path, rule],
    ...verdict,
  }));
}

type Judged = readonly [title: string, event: unknown, path: string, rule: string, basis?: VerdictCase["basis"]];

function judged(verdict: VerdictCase["verdict"], rows: readonly Judged[]): readonly VerdictCase[] {
  return rows.map(([title, event, path, rule, basis]) => ({
    ...{ title, event, verdict, finding: [path, rule] },
    ...(basis && { basis }),
  }));
}

const MINIMAL = plain("minimal", [
  ["app_open", {}],
  ["sign_up", { method: "email" }],
  ["push_clicks", { campaign_id: "c-1" }],
  ["page_view", { page_id: "p-1" }],
  ["click", { element_id: "b-1" }],
  ["view_item", { item_id: "i-1" }],
  ["add_to_wishlist", { item_id: "i-1" }],
  ["add_to_cart", cart],
  ["begin_checkout", { items: [{ item_id: "i-1" }] }],
  ["purchase", { tx_id: "t-1", items: [{ item_id: "i-1" }] }],
  ["view_content", { content_id: "a-1" }],
  ["begin_lead_form", { form_id: "f-1" }],
  ["generate_lead", { form_id: "f-1" }],
]);

const FULL = plain("full", [
  ["page_view", { page_id: "p-1", page_category: "news", page_url: "https://example.com/" }],
  ["click", { element_id: "b-1", element_type: "button", target_url: "/next", platform: "web" }],
  ["view_item", { item_id: "i-1", item_name: "Mug", item_category: "kitchen", brand: "Acme", price: 9.5 }],
  ["add_to_wishlist", { item_id: "i-1", item_name: "Mug", item_category: "kitchen", brand: "Acme", price: 9.5 }],
  ["add_to_cart", { ...cart, item_name: "Mug", item_category: "k", brand: "A", value: 30, currency: "KRW" }],
  ["begin_checkout", { currency: "USD", items: [{ ...cart, item_name: "Mug", item_category: "k", brand: "A" }] }],
  ["purchase", { tx_id: "t-1", currency: "USD", items: [{ ...cart, item_name: "Mug" }] }],
  ["view_content", { content_id: "a-1", content_name: "News", content_type: "article" }],
  ["begin_lead_form", { form_id: "f-1", form_name: "n", form_type: "t", form_destination: "d" }],
  [
    "generate_lead",
    { form_id: "f-1", form_name: "n", form_type: "t", form_destination: "d", value: 5, currency: "EUR" },
  ],
]);

const MISSING = missing([
  ["sign_up", {}, "method"],
  ["push_clicks", {}, "campaign_id"],
  ["page_view", { page_url: "/" }, "page_id"],
  ["click", {}, "element_id"],
  ["view_item", { price: 1 }, "item_id"],
  ["add_to_wishlist", {}, "item_id"],
  ["add_to_cart", { price: 1, quantity: 1 }, "item_id"],
  ["add_to_cart", { item_id: "i-1", quantity: 1 }, "price"],
  ["add_to_cart", { item_id: "i-1", price: 1 }, "quantity"],
  ["purchase", { items: [{ item_id: "i-1" }] }, "tx_id"],
  ["view_content", {}, "content_id"],
  ["begin_lead_form", {}, "form_id"],
  ["generate_lead", { value: 1 }, "form_id"],
  ["begin_checkout", { items: [{ item_name: "Mug" }, { item_id: "i-1" }] }, "items[0].item_id"],
  ["begin_checkout", { items: [...itemsOf(3), {}, { item_id: "i-9" }] }, "items[3].item_id"],
  ["purchase", { tx_id: "t-1", items: [...itemsOf(99), { item_name: "Mug" }] }, "items[99].item_id"],
]);

const IGNORED = judged("ignored", [
  ...[
    "Purchase",
    "purchase_complete",
    "PAGE_VIEW",
    " purchase",
    "x",
    "x".repeat(64),
    "가".repeat(64),
    "constructor",
  ].map(
    (name): Judged => [`eventName ${name.slice(0, 20)}`, e(name), "eventName", "eventNameUnsupported", "documented"],
  ),
  ["__proto__ as eventName", e("__proto__"), "eventName", "eventNameUnsupported"],
  ["a required parameter that is null", e("sign_up", { method: null }), "method", "requiredNull", "assumed"],
  [
    "item_id null in the middle",
    e("purchase", { tx_id: "t-1", items: [{ item_id: "a" }, { item_id: null }, { item_id: "b" }] }),
    "items[1].item_id",
    "requiredNull",
    "assumed",
  ],
  [
    "an entry of items that is not an object",
    e("begin_checkout", { items: ["i-1"] }),
    "items[0]",
    "entryNotObject",
    "assumed",
  ],
  ["missing beats uncertain", e("add_to_cart", { item_id: "", price: "1" }), "quantity", "requiredMissing"],
]);

const REJECTED = judged("rejected", [
  ...[null, [], "purchase", 7, true, [e("app_open")]].map(
    (event): Judged => [`a body that is ${JSON.stringify(event)}`, event, "", "bodyNotObject", "assumed"],
  ),
  ["uid missing", { eventName: "app_open" }, "uid", "uidMissing"],
  ["uid a number", { uid: 7, eventName: "app_open" }, "uid", "uidNotString"],
  ["uid null", { uid: null, eventName: "app_open" }, "uid", "uidNotString"],
  ["eventName missing", { uid: "u" }, "eventName", "eventNameMissing"],
  ["eventName a number", { uid: "u", eventName: 1 }, "eventName", "eventNameNotString"],
  ["eventName empty", e(""), "eventName", "eventNameEmpty"],
  ["eventName of 65", e("x".repeat(65)), "eventName", "eventNameTooLong"],
  ["1,025 Korean letters", e("sign_up", { method: KOREAN_1025 }), "method", "stringTooLong", "assumed"],
  ["a uid of 1,025", { uid: "u".repeat(1025), eventName: "app_open" }, "uid", "stringTooLong"],
  [
    "a string too long in an item",
    e("begin_checkout", { items: [{ item_id: "a" }, { item_id: "b", brand: KOREAN_1025 }] }),
    "items[1].brand",
    "stringTooLong",
  ],
  ["an unknown parameter that is too long", e("app_open", { note: KOREAN_1025 }), "note", "stringTooLong"],
  ["101 items", e("purchase", { tx_id: "t", items: itemsOf(101) }), "items", "tooManyItems"],
  ["too long beats an unsupported name", e("Purchase", { tx_id: KOREAN_1025 }), "tx_id", "stringTooLong"],
]);

const UNCERTAIN = found({ verdict: "uncertain", basis: "notShown" }, [
  ["method", "sign_up", { method: "" }, "requiredEmpty"],
  ["items[0].item_id", "purchase", { tx_id: "t", items: [{ item_id: "" }] }, "requiredEmpty"],
  ["price", "add_to_cart", { ...cart, price: "10" }, "wrongType"],
  ["quantity", "add_to_cart", { ...cart, quantity: "3" }, "wrongType"],
  ["item_id", "view_item", { item_id: 7 }, "wrongType"],
  ["brand", "view_item", { item_id: "i", brand: 7 }, "wrongType"],
  ["brand", "view_item", { item_id: "i", brand: ["Acme"] }, "wrongType"],
  ["platform", "app_open", { platform: 1 }, "wrongType"],
  ["value", "generate_lead", { form_id: "f", value: "5" }, "wrongType"],
  ["items", "purchase", { tx_id: "t", items: { item_id: "i" } }, "wrongType"],
  ["items[0].quantity", "purchase", { tx_id: "t", items: [{ item_id: "i", quantity: "1" }] }, "wrongType"],
  ["method", "sign_up", { method: EMOJI_1000 }, "lengthUnclear"],
  ["note", "app_open", { note: { deep: [KOREAN_1025] } }, "lengthUnclear"],
]);

const WARNED = found({ verdict: "recorded" }, [
  ["items", "begin_checkout", {}, "itemsMissing"],
  ["items", "purchase", { tx_id: "t", items: [] }, "itemsMissing"],
  ["items", "view_item", { item_id: "i", items: [{}] }, "itemsUnused"],
  ["itemId", "view_item", { item_id: "i", itemId: "i" }, "unknownParameter"],
  ["brand", "view_item", { item_id: "i", brand: null }, "nullParameter"],
  ["currency", "purchase", { tx_id: "t", items: itemsOf(1), currency: "wons" }, "currencyFormat"],
  ["value", "add_to_cart", { ...cart, value: 25 }, "valueMismatch"],
  ["uid", "app_open", { uid: "kim@example.com" }, "personalData"],
  ["uid", "app_open", { uid: "010-1234-5678" }, "personalData"],
  ["uid", "app_open", { uid: "+821012345678" }, "personalData"],
  ["uid", "app_open", { uid: "(555) 123-4567" }, "personalData"],
  ["uid", "app_open", { uid: " u91 " }, "uidSpaces"],
  ["uid", "app_open", { uid: "u91\u200b" }, "uidSpaces"],
  ["platform", "app_open", { platform: "WEB" }, "platformUnusual"],
]);

const AT_THE_EDGE: readonly (readonly [title: string, event: unknown])[] = [
  ["1,024 Korean letters", e("sign_up", { method: KOREAN_1024 })],
  ["512 emoji, which are 1,024 UTF-16 units", e("sign_up", { method: "😀".repeat(512) })],
  ["100 items", e("purchase", { tx_id: "t", items: itemsOf(100) })],
  ["an optional empty string", e("view_item", { item_id: "i", brand: "" })],
  ["negative and zero numbers", e("add_to_cart", { item_id: "i", price: -1, quantity: 0 })],
  ["a value rounded to hundredths", e("add_to_cart", { item_id: "i", price: 0.333, quantity: 3, value: 1 })],
  ["a numeric uid that is no phone number", { uid: "1234567890", eventName: "app_open" }],
  ["a date as uid", { uid: "2024-01-15", eventName: "app_open" }],
];

export const VERDICT_CASES: readonly VerdictCase[] = [
  ...MINIMAL,
  ...FULL,
  ...MISSING,
  ...IGNORED,
  ...REJECTED,
  ...UNCERTAIN,
  ...WARNED,
  ...AT_THE_EDGE.map(([title, event]): VerdictCase => ({ title, event, verdict: "recorded", basis: "documented" })),
];
