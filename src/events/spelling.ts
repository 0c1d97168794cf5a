import { jsonFault } from "../platform/exact-json.ts";
import { isJsonObject, type JsonObject, parseJson } from "../platform/json.ts";
import { editDistance, mistyped, withoutSeparators } from "../platform/near-words.ts";
import type { EVENT_FIELDS, EVENTS, EventName, ITEM_FIELDS } from "../spec/events.ts";
import { COMMON_SHAPE, EVENT_NAMES, EVENT_SHAPES, ITEM_SHAPE, type Shape } from "./catalogue.ts";

/** Returns the valid name that was probably meant by `name`. Undefined if there is none. */
export type NearestName = (name: string, valid: readonly string[]) => string | undefined;

type ParametersOf<Event> = Event extends { readonly parameters: infer Parameters } ? keyof Parameters : never;

type KnownName =
  | EventName
  | keyof typeof EVENT_FIELDS
  | keyof typeof ITEM_FIELDS
  | ParametersOf<(typeof EVENTS)[EventName]>;

/** The names of events and parameters (event-tracking-api 2.2) in other systems: in lower case, without separators. */
const SYNONYM_TABLE = {
  app_open: "applaunch launch openapp appstart sessionstart firstopen",
  sign_up: "register registration completeregistration userregistered signupcomplete join",
  push_clicks: "notificationclick clickpush pushopen notificationopen pushclicked",
  page_view: "viewpage screenview pageviewed visit viewscreen",
  click: "tap buttonclick elementclick linkclick clickbutton",
  view_item: "productview viewproduct itemview productviewed viewproductdetail itemviewed",
  add_to_wishlist: "wishlist addtofavorites favorite like wishlistadd",
  add_to_cart: "cartadd addtobasket productadded cart addcart addedtocart",
  begin_checkout: "checkout startcheckout initiatecheckout checkoutstarted checkoutstart",
  purchase:
    "purchasecomplete purchasecompleted completepurchase order ordercomplete ordercompleted checkoutcomplete checkoutcompleted transaction buy payment",
  view_content: "contentview contentviewed articleview",
  begin_lead_form: "leadformstart formstart startleadform startform leadformbegin",
  generate_lead: "lead submitleadform leadformsubmit formsubmit submitform submitlead leadgenerated",
  uid: "userid user customerid memberid clientid",
  eventName: "event name eventtype type",
  platform: "os device",
  items: "products lineitems itemlist contents goods",
  item_id: "productid sku id goodsid itemno productcode variantid",
  item_name: "productname name title goodsname",
  item_category: "category productcategory productcategories",
  brand: "itembrand productbrand manufacturer",
  price: "unitprice itemprice productprice amount",
  quantity: "qty count amount itemquantity",
  value: "total revenue amount totalprice totalvalue",
  currency: "currencycode cur",
  tx_id: "transactionid orderid paymentid ordernumber purchaseid",
  method: "signupmethod provider registrationmethod",
  campaign_id: "campaign pushid campaignname",
  page_id: "page screenid pagename",
  page_category: "category",
  page_url: "url pagelocation location",
  element_id: "element buttonid targetid id",
  element_type: "type",
  target_url: "url href linkurl link",
  content_id: "articleid postid id",
  content_name: "title name articlename",
  content_type: "type",
  form_id: "leadformid form id",
  form_name: "name leadformname",
  form_type: "type",
  form_destination: "destination desturl",
} as const satisfies Record<KnownName, string>;

const KNOWN_NAMES = Object.entries(SYNONYM_TABLE).map(([name, words]) => [name, words.split(" ")] as const);

const MEANINGS: ReadonlyMap<string, readonly string[]> = new Map(
  KNOWN_NAMES.flatMap(([, synonyms]) => synonyms).map((synonym) => [
    synonym,
    KNOWN_NAMES.filter(([, synonyms]) => synonyms.includes(synonym)).map(([name]) => name),
  ]),
);

const BARE_NAMES: ReadonlyMap<string, string> = new Map(KNOWN_NAMES.map(([name]) => [name, withoutSeparators(name)]));

const LONGEST_NAME = 40;
const REMEMBERED_NAMES = 1000;

/**
 * Returns the valid name that was probably meant. Tries in this order: the same name in another case or with other
 * separators, names of other systems, names with few wrong letters (at most two, and at most a third). Undefined if
 * there is none, or if `name` has over 40 characters.
 */
export function nearestName(name: string, valid: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const plain = bare(name);
  const meanings = MEANINGS.get(plain) ?? [];
  return (
    valid.find((candidate) => bare(candidate) === plain) ??
    valid.find((candidate) => meanings.includes(candidate)) ??
    mistyped(plain, valid, bare)
  );
}

/** Returns a function that finds a name and remembers the result, because many events have the same mistake. */
export function remembering(find: NearestName): NearestName {
  const answers = new Map<readonly string[], Map<string, string | undefined>>();
  return (name, valid) => {
    const known = answers.get(valid) ?? new Map<string, string | undefined>();
    if (known.size === 0) answers.set(valid, known);
    if (known.has(name)) return known.get(name);
    const nearest = find(name, valid);
    if (known.size < REMEMBERED_NAMES) known.set(name, nearest);
    return nearest;
  };
}

/**
 * Returns the only name in `valid` of which `name` is clearly a misspelling. Both must have the same digits. Undefined
 * if there is none, if there are several, or if `name` is valid itself.
 */
export function closestSpelling(name: string, valid: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME || valid.includes(name)) return undefined;
  const plain = withoutSeparators(name);
  const same = valid.filter((candidate) => withoutSeparators(candidate) === plain);
  if (same.length > 0) return same.length === 1 ? same[0] : undefined;
  const most = Math.min(2, Math.floor(plain.length / 4));
  const digits = digitsOf(plain);
  for (let distance = 1; distance <= most; distance += 1) {
    const near = valid.filter((candidate) => editDistance(plain, withoutSeparators(candidate), distance) <= distance);
    const [only, ...others] = near;
    if (only !== undefined)
      return others.length === 0 && digitsOf(withoutSeparators(only)) === digits ? only : undefined;
  }
  return undefined;
}

/** Returns the only entry of `valid` that other systems call `name`. Undefined if none, several, or `name` is valid. */
export function synonymOf(name: string, valid: readonly string[]): string | undefined {
  if (valid.includes(name)) return undefined;
  const [only, ...others] = (MEANINGS.get(bare(name)) ?? []).filter((meaning) => valid.includes(meaning));
  return others.length === 0 ? only : undefined;
}

function digitsOf(name: string): string {
  return name.replace(/\D/g, "");
}

function bare(name: string): string {
  return BARE_NAMES.get(name) ?? withoutSeparators(name);
}

/** Parses `items` and its entries if they were sent as JSON inside strings. Other strings stay as they are. */
export function parseNestedJson(event: JsonObject): JsonObject {
  if (!Object.hasOwn(event, "items")) return event;
  const { items } = event;
  const list = typeof items === "string" ? parseExact(items) : items;
  if (!Array.isArray(list)) return event;
  const entries = list.map(parseItemEntry);
  const isAsGiven = list === items && entries.every((entry, place) => entry === list[place]);
  return isAsGiven ? event : { ...event, items: entries };
}

/** Parses JSON. Undefined if the text is not JSON, or if parsing would change a number or lose a repeated field. */
function parseExact(text: string): unknown {
  const value = parseJson(text);
  return jsonFault(text, value) === undefined ? value : undefined;
}

function parseItemEntry(entry: unknown): unknown {
  const held = typeof entry === "string" ? parseExact(entry) : undefined;
  return isJsonObject(held) ? held : entry;
}

/** An event with corrected names. `mended` describes each correction, such as `eventName addToCart → add_to_cart`. */
interface EventCorrection {
  readonly event: unknown;
  readonly mended: readonly string[];
}

/** Corrects misspelt names, and names that other systems use for required parameters (event-tracking-api 2.2, 2.3). */
export function fixSpelling(event: unknown, spelt: NearestName = closestSpelling): EventCorrection {
  if (!isJsonObject(event)) return { event, mended: [] };
  const mended: string[] = [];
  const named = correctEventName(correctEventField(event, spelt, mended), spelt, mended);
  const { eventName } = named;
  const shape = typeof eventName === "string" ? EVENT_SHAPES.get(eventName) : undefined;
  if (shape === undefined) return { event: named, mended };
  const whole = correctParameterNames(named, shape, "", { spelt, mended });
  if (!shape.parameters.has("items") || !Array.isArray(whole.items)) return { event: whole, mended };
  const items = whole.items.map((item, position) =>
    isJsonObject(item) ? correctParameterNames(item, ITEM_SHAPE, `items[${position}].`, { spelt, mended }) : item,
  );
  return { event: { ...whole, items }, mended };
}

/** Why autocorrect did not correct an event. `answers/` turns it into a sentence. */
export type Uncorrected = "otherWord" | "unclearName" | "noName" | "unclearField" | "noField" | "value";

/** Returns why `fixSpelling` did not correct an event that breaks a rule. */
export function whyUncorrected(
  event: unknown,
  { rule, path }: { readonly rule: string; readonly path: string },
): Uncorrected {
  if (rule === "eventNameUnsupported") return whyNameUncorrected(isJsonObject(event) ? event.eventName : undefined);
  const [, position, inItem] = /^items\[(\d+)\]\.(.+)$/.exec(path) ?? [];
  if (!MISSING.has(rule) || !isJsonObject(event)) return "value";
  const items = Array.isArray(event.items) ? event.items : [];
  const holder: unknown = inItem === undefined ? event : items[Number(position)];
  const shape = typeof event.eventName === "string" ? EVENT_SHAPES.get(event.eventName) : undefined;
  const { names } = inItem === undefined ? (shape ?? COMMON_SHAPE) : ITEM_SHAPE;
  const wanted = inItem ?? path;
  const fields = isJsonObject(holder) ? Object.keys(holder).filter((name) => !names.includes(name)) : [];
  return fields.some((name) => nearestName(name, names) === wanted) ? "unclearField" : "noField";
}

const MISSING: ReadonlySet<string> = new Set(["requiredMissing", "uidMissing", "eventNameMissing"]);

function whyNameUncorrected(name: unknown): Uncorrected {
  const near = typeof name === "string" ? nearestName(name, EVENT_NAMES) : undefined;
  if (typeof name !== "string" || near === undefined) return "noName";
  return MEANINGS.get(bare(name))?.includes(near) ? "otherWord" : "unclearName";
}

/** If `eventName` is missing, renames the field that was meant by it, and misspelt names of `uid` and `platform`. */
function correctEventField(event: JsonObject, spelt: NearestName, mended: string[]): JsonObject {
  if (Object.hasOwn(event, "eventName")) return event;
  const found: string[] = [];
  const named = correctParameterNames(event, COMMON_SHAPE, "", { spelt, mended: found });
  if (typeof named.eventName !== "string") return event;
  mended.push(...found);
  return named;
}

function correctEventName(event: JsonObject, spelt: NearestName, mended: string[]): JsonObject {
  const { eventName } = event;
  if (typeof eventName !== "string" || EVENT_SHAPES.has(eventName)) return event;
  const right = spelt(eventName, EVENT_NAMES);
  if (right === undefined) return event;
  mended.push(`eventName ${eventName} → ${right}`);
  return { ...event, eventName: right };
}

function correctParameterNames(
  holder: JsonObject,
  { parameters, names, required }: Shape,
  prefix: string,
  { spelt, mended }: { readonly spelt: NearestName; readonly mended: string[] },
): JsonObject {
  const rights = new Map<string, string>();
  for (const name of Object.keys(holder)) {
    const right = parameters.has(name) ? undefined : (spelt(name, names) ?? synonymOf(name, required));
    if (right === undefined || Object.hasOwn(holder, right)) continue;
    // If two fields would get the same name, only the first is renamed, because an event cannot have both.
    rights.set(name, [...rights.values()].includes(right) ? name : right);
  }
  if (rights.size === 0) return holder;
  const entries = Object.entries(holder).map(([name, value]) => {
    const right = rights.get(name) ?? name;
    if (right !== name) mended.push(`${prefix}${name} → ${right}`);
    return [right, value] as const;
  });
  return Object.fromEntries(entries);
}
