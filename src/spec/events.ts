export type ParameterType = "string" | "number" | "items";

/** A field of an event or an item. If a required one is missing, the service ignores the event; see `EVENT_FIELDS`. */
export interface Parameter {
  readonly type: ParameterType;
  readonly required: boolean;
}

/** A supported event (event-tracking-api 2.2). */
export interface EventSpec {
  readonly meaning: string;
  readonly family: "common" | "sales" | "lead";
  readonly parameters: Readonly<Record<string, Parameter>>;
}

const text: Parameter = { type: "string", required: false };
const requiredText: Parameter = { type: "string", required: true };
const number: Parameter = { type: "number", required: false };
const requiredNumber: Parameter = { type: "number", required: true };
const items: Parameter = { type: "items", required: false };

const described = { item_name: text, item_category: text, brand: text };
const form = { form_id: requiredText, form_name: text, form_type: text, form_destination: text };

/** The fields that every event can have. If a required one is missing, the service rejects the event (assumed). */
export const EVENT_FIELDS = {
  uid: requiredText,
  eventName: requiredText,
  platform: text,
} as const satisfies Record<string, Parameter>;

export const EVENTS = {
  app_open: { meaning: "App opened", family: "common", parameters: {} },
  sign_up: { meaning: "User signed up", family: "common", parameters: { method: requiredText } },
  push_clicks: { meaning: "Push notification clicked", family: "common", parameters: { campaign_id: requiredText } },
  page_view: {
    meaning: "Page viewed",
    family: "common",
    parameters: { page_id: requiredText, page_category: text, page_url: text },
  },
  click: {
    meaning: "Element clicked",
    family: "common",
    parameters: { element_id: requiredText, element_type: text, target_url: text },
  },
  view_item: {
    meaning: "Item viewed",
    family: "sales",
    parameters: { item_id: requiredText, ...described, price: number },
  },
  add_to_wishlist: {
    meaning: "Item added to wishlist",
    family: "sales",
    parameters: { item_id: requiredText, ...described, price: number },
  },
  add_to_cart: {
    meaning: "Item added to cart",
    family: "sales",
    parameters: {
      item_id: requiredText,
      ...described,
      price: requiredNumber,
      quantity: requiredNumber,
      value: number,
      currency: text,
    },
  },
  begin_checkout: { meaning: "Checkout started", family: "sales", parameters: { currency: text, items } },
  purchase: {
    meaning: "Purchase completed",
    family: "sales",
    parameters: { tx_id: requiredText, currency: text, items },
  },
  view_content: {
    meaning: "Content viewed",
    family: "lead",
    parameters: { content_id: requiredText, content_name: text, content_type: text },
  },
  begin_lead_form: { meaning: "Lead form started", family: "lead", parameters: form },
  generate_lead: { meaning: "Lead generated", family: "lead", parameters: { ...form, value: number, currency: text } },
} as const satisfies Record<string, EventSpec>;

export const ITEM_FIELDS = {
  item_id: requiredText,
  ...described,
  price: number,
  quantity: number,
} as const satisfies Record<string, Parameter>;

export type EventName = keyof typeof EVENTS;

/** Returns whether an event is supported. Names are case-sensitive. */
export function isEventName(name: string): name is EventName {
  return Object.hasOwn(EVENTS, name);
}

export const EVENT_MESSAGES = { ok: "ok", invalid: "!invalid" } as const;
