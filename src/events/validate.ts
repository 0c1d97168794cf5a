import { invisibleIn } from "../files/damage.ts";
import { isJsonObject, type JsonObject } from "../platform/json.ts";
import { EVENT_FIELDS, type Parameter } from "../spec/events.ts";
import { EVENT_LIMITS } from "../spec/limits.ts";
import { codePoints } from "../spec/names-and-contexts.ts";
import {
  COMMON_SHAPE,
  deriveVerdict,
  EVENT_NAMES,
  EVENT_SHAPES,
  type Finding,
  finding,
  ITEM_SHAPE,
  type RuleName,
  type Shape,
  type Validation,
} from "./catalogue.ts";
import { type NearestName, nearestName } from "./spelling.ts";

interface Check {
  readonly findings: Finding[];
  readonly nearest: NearestName;
}

const FIELD_NAMES = Object.keys(EVENT_FIELDS);
const ITEM_LIMIT = EVENT_LIMITS.items.value;
const STRING_LIMIT = EVENT_LIMITS.stringLength.value;
const NAME_LIMIT = EVENT_LIMITS.eventNameLength.value;

/** Predicts what the service does with any JSON value as event (event-tracking-api 2, 7, 8; some rules are assumed). */
export function validateEvent(event: unknown, nearest: NearestName = nearestName): Validation {
  const check: Check = { findings: [], nearest };
  if (isJsonObject(event)) checkEvent(check, event);
  else note(check, "bodyNotObject", "", "an event must be a JSON object", 'send an object with "uid" and "eventName"');
  return deriveVerdict(check.findings);
}

function checkEvent(check: Check, event: JsonObject): void {
  checkUid(check, event);
  checkEventName(check, event);
  const { eventName } = event;
  const shape = typeof eventName === "string" ? EVENT_SHAPES.get(eventName) : undefined;
  for (const name of Object.keys(event)) {
    if (name !== "uid" && name !== "eventName") checkParameter(check, event, name, shape);
  }
  if (shape === undefined) return;
  const { platform } = event;
  if (typeof platform === "string" && platform !== "" && !TYPICAL_PLATFORMS.includes(platform)) {
    const message = `"platform" is ${quoted(platform)}; typical values are ${TYPICAL_PLATFORMS.join(", ")}`;
    note(check, "platformUnusual", "platform", message, "send a typical value");
  }
  checkRequired(check, event, shape, "", `"${String(eventName)}"`);
  checkItemsPresent(check, event, shape);
  if (shape.parameters.has("currency")) add(check, currencyWarning(event.currency));
  if (shape.parameters.has("value")) add(check, valueWarning(event.value, event.price, event.quantity));
}

/** The values of `platform` that the API document names. Others are allowed (event-tracking-api 2.1). */
const TYPICAL_PLATFORMS = ["web", "android", "ios"];

const TIME = /^(event_?|created_?|occurred_?)?(time(stamp)?|date(_?time)?|at)(_?ms)?$/i;

function checkUid(check: Check, event: JsonObject): void {
  const { uid } = event;
  if (uid === undefined) {
    note(check, "uidMissing", "uid", '"uid" is missing', fixOfMissing(check, event, "uid", FIELD_NAMES));
  } else if (typeof uid !== "string") {
    note(check, "uidNotString", "uid", `"uid" is ${kindOf(uid)}, not a string`, "send the identifier as a string");
  } else {
    checkString(check, uid, "uid");
    if (uid === "") noteEmpty(check, "uid", "uid");
    else add(check, personalDataWarning(uid));
    if (uid !== uid.trim()) {
      const message = '"uid" begins or ends with spaces, which may make it another user';
      note(check, "uidSpaces", "uid", message, "send it without them");
    }
    const unseen = invisibleIn(uid.trim());
    if (unseen.length > 0) {
      const message = `"uid" contains invisible characters (${unseen.join(", ")}), which may make it another user`;
      note(check, "uidSpaces", "uid", message, "send it without them");
    }
  }
}

function checkEventName(check: Check, event: JsonObject): void {
  const { eventName } = event;
  const path = "eventName";
  const choose = "send one of the supported event names";
  if (eventName === undefined) {
    note(check, "eventNameMissing", path, '"eventName" is missing', fixOfMissing(check, event, path, FIELD_NAMES));
  } else if (typeof eventName !== "string") {
    note(check, "eventNameNotString", path, `"eventName" is ${kindOf(eventName)}, not a string`, choose);
  } else if (eventName === "") {
    note(check, "eventNameEmpty", path, '"eventName" is empty', choose);
  } else if (!EVENT_SHAPES.has(eventName)) {
    if (exceeds(check, eventName, path, NAME_LIMIT, "eventNameTooLong")) return;
    const near = check.nearest(eventName, EVENT_NAMES);
    const fix = near === undefined ? choose : `send "${near}"`;
    note(check, "eventNameUnsupported", path, `${quoted(eventName)} is not a supported event`, fix);
  }
}

function checkParameter(check: Check, event: JsonObject, name: string, shape: Shape | undefined): void {
  const value = event[name];
  const parameter = (shape ?? COMMON_SHAPE).parameters.get(name);
  if (parameter !== undefined) {
    checkValue(check, value, name, name, parameter);
    return;
  }
  if (name === "items" && Array.isArray(value)) checkUnusedItems(check, value);
  else checkFreeValue(check, value, pathOf(name));
  if (shape === undefined || value === undefined) return;
  if (name === "items") {
    const message = '"items" belongs to "begin_checkout" and "purchase"; this event does not use it';
    note(check, "itemsUnused", "items", message, 'leave "items" out, or send its fields at the top level');
  } else {
    noteUnknown(check, event, name, shape);
  }
}

function checkValue(check: Check, value: unknown, path: string, name: string, parameter: Parameter): void {
  if (value === undefined) return;
  if (isNull(value)) {
    noteNull(check, path, name, parameter);
  } else if (parameter.type === "items" && Array.isArray(value)) {
    checkItems(check, value);
  } else if (typeof value === "string" && parameter.type === "string") {
    checkString(check, value, path);
    if (value === "" && parameter.required) noteEmpty(check, path, name);
  } else if (typeof value !== parameter.type) {
    checkFreeValue(check, value, path);
    const wanted = parameter.type === "items" ? "an array of objects" : `a ${parameter.type}`;
    const message = `"${name}" is ${kindOf(value)}, not ${wanted}; it is not documented what the service does then`;
    note(check, "wrongType", path, message, `send ${wanted}`);
  }
}

function checkItems(check: Check, items: readonly unknown[]): void {
  if (checkItemCount(check, items)) return;
  for (const [position, item] of items.entries()) {
    const path = `items[${position}]`;
    if (isJsonObject(item)) {
      checkItem(check, item, `${path}.`);
    } else {
      checkWithin(check, item, path);
      const message = `${path} is ${kindOf(item)} and has no "item_id"`;
      note(check, "entryNotObject", path, message, 'send an object with "item_id"');
    }
  }
}

function checkItem(check: Check, item: JsonObject, prefix: string): void {
  for (const name of Object.keys(item)) {
    const parameter = ITEM_SHAPE.parameters.get(name);
    if (parameter !== undefined) {
      checkValue(check, item[name], prefix + name, name, parameter);
    } else {
      checkFreeValue(check, item[name], prefix + pathOf(name));
      noteUnknown(check, item, name, ITEM_SHAPE, prefix);
    }
  }
  checkRequired(check, item, ITEM_SHAPE, prefix, "an entry of items");
}

/** Checks unused `items`, or those of an unsupported event. Only the number of entries and length of strings matter. */
function checkUnusedItems(check: Check, items: readonly unknown[]): void {
  if (checkItemCount(check, items)) return;
  for (const [position, item] of items.entries()) {
    if (!isJsonObject(item)) checkWithin(check, item, `items[${position}]`);
    else for (const name of Object.keys(item)) checkFreeValue(check, item[name], `items[${position}].${pathOf(name)}`);
  }
}

function checkItemCount(check: Check, items: readonly unknown[]): boolean {
  if (items.length <= ITEM_LIMIT) return false;
  const message = `"items" has ${items.length} entries, at most ${ITEM_LIMIT} are allowed`;
  note(check, "tooManyItems", "items", message, `send at most ${ITEM_LIMIT} items`);
  return true;
}

function checkRequired(check: Check, holder: JsonObject, shape: Shape, prefix: string, owner: string): void {
  for (const name of shape.required) {
    if (holder[name] !== undefined || (prefix === "" && FIELD_NAMES.includes(name))) continue;
    const message = `${owner} needs "${name}"`;
    note(check, "requiredMissing", prefix + name, message, fixOfMissing(check, holder, name, shape.names));
  }
}

/** Checks that `items` is not empty. Section 2.2 does not mark it as required, so it is assumed to be optional. */
function checkItemsPresent(check: Check, event: JsonObject, shape: Shape): void {
  if (!shape.parameters.has("items")) return;
  const { items } = event;
  if (items !== undefined && !(Array.isArray(items) && items.length === 0)) return;
  const message = '"items" is missing or empty; assumed to be optional: the API document does not clearly require it';
  note(check, "itemsMissing", "items", message, 'to report products, send at least one entry with its "item_id"');
}

function checkString(check: Check, text: string, path: string): void {
  exceeds(check, text, path, STRING_LIMIT, "stringTooLong");
}

/** Returns whether a text has too many code points. If so, or if it has too many UTF-16 units, adds a finding. */
function exceeds(check: Check, text: string, path: string, limit: number, rule: RuleName): boolean {
  if (text.length <= limit) return false;
  const length = codePoints(text);
  if (length <= limit) {
    const message = `"${path}" has ${length} characters but ${text.length} UTF-16 units; it is not documented which count`;
    note(check, "lengthUnclear", path, message, `shorten it to ${limit} UTF-16 units`);
    return false;
  }
  const message = `"${path}" has ${length} characters, at most ${limit} are allowed`;
  note(check, rule, path, message, `shorten it to ${limit} characters`);
  return true;
}

/** Checks a value without a defined type. Only the limit for the length of strings applies. */
function checkFreeValue(check: Check, value: unknown, path: string): void {
  if (typeof value === "string") checkString(check, value, path);
  else checkWithin(check, value, path);
}

/** Checks the strings inside a parameter's value. The API document does not say whether the limit applies to them. */
function checkWithin(check: Check, value: unknown, path: string): void {
  if (!holdsLongString(value)) return;
  const message = `"${path}" contains a text of over ${STRING_LIMIT} characters; it is not documented whether the limit applies`;
  note(check, "lengthUnclear", path, message, `shorten the text to ${STRING_LIMIT} characters`);
}

function holdsLongString(value: unknown): boolean {
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string" && next.length > STRING_LIMIT) return true;
    if (typeof next !== "object" || next === null) continue;
    for (const inner of Object.values(next)) waiting.push(inner);
  }
  return false;
}

function fixOfMissing(check: Check, holder: JsonObject, wanted: string, valid: readonly string[]): string {
  const around = Object.keys(holder).find((name) => {
    const inner = holder[name];
    return !valid.includes(name) && isJsonObject(inner) && inner[wanted] !== undefined;
  });
  if (around !== undefined) return `it is inside ${quoted(around)}: ${oneLevelHigher(around)}`;
  const meant = Object.keys(holder).find((name) => !valid.includes(name) && check.nearest(name, valid) === wanted);
  return meant === undefined ? `add "${wanted}"` : `rename ${quoted(meant)} to "${wanted}"`;
}

function oneLevelHigher(around: string): string {
  return `send the fields of ${quoted(around)} one level higher, without ${quoted(around)}`;
}

function noteUnknown(check: Check, holder: JsonObject, name: string, shape: Shape, prefix = ""): void {
  const isTime = TIME.test(name);
  const inner = holder[name];
  const isAround =
    isJsonObject(inner) && shape.names.some((field) => Object.hasOwn(inner, field) && holder[field] === undefined);
  const near = isTime ? undefined : check.nearest(name, shape.names);
  const other = near === undefined ? "leave it out" : `did you mean "${near}"?`;
  const fix = isAround ? oneLevelHigher(name) : other;
  const time = isTime ? " and dates the event when it arrives" : "";
  note(
    check,
    "unknownParameter",
    prefix + pathOf(name),
    `${quoted(name)} is not a parameter here; the service ignores it${time}`,
    fix,
  );
}

function noteNull(check: Check, path: string, name: string, { required }: Parameter): void {
  const message = `"${name}" is null, which counts as missing`;
  if (required) note(check, "requiredNull", path, `${message}: the service ignores the event`, "send a value");
  else note(check, "nullParameter", path, message, "leave it out or send a value");
}

function noteEmpty(check: Check, path: string, name: string): void {
  const message = `"${name}" is required and empty; it is not documented whether that counts as missing`;
  note(check, "requiredEmpty", path, message, "send a value");
}

function note(check: Check, rule: RuleName, path: string, message: string, fix: string): void {
  check.findings.push(finding(rule, path, message, fix));
}

function add(check: Check, warning: Finding | undefined): void {
  if (warning !== undefined) check.findings.push(warning);
}

/** Returns whether JSON writes a value as null, as it does for NaN and Infinity. */
function isNull(value: unknown): boolean {
  return value === null || (typeof value === "number" && !Number.isFinite(value));
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Returns a name as a part of a path. If it is long or has unusual characters, it is quoted. */
function pathOf(name: string): string {
  return /^[\w$]{1,64}$/.test(name) ? name : `[${quoted(name)}]`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length <= 64 ? text : `${text.slice(0, 64)}…`);
}

const THREE_LETTERS = /^[A-Za-z]{3}$/;
const EMAIL = /[^\s@]+@[^\s@]+\.[^\s@]+/;
const INTERNATIONAL_PHONE = /^(?:\+|00)[\d\s().-]+$/;
const NATIONAL_PHONE = /^\(?0[1-9][\d\s().-]+$/;
const GROUPED_PHONE = /^(?:1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}$/;
const PHONE_DIGITS = { fewest: 9, most: 15 };
/** The longest text that is checked for being an e-mail address or a phone number. Longer ones are neither. */
const LONGEST_ADDRESS = 320;

/** Warns if a `uid` looks like an e-mail address or a phone number (event-tracking-api 1). */
function personalDataWarning(uid: string): Finding | undefined {
  const kind = personalDataIn(uid.trim());
  if (kind === undefined) return undefined;
  return finding(
    "personalData",
    "uid",
    `"uid" looks like ${kind}: the service hashes it with SHA-256 before storing it, but it is sent to the service unhashed`,
    "send an identifier of your own that reveals nothing about the person",
  );
}

function personalDataIn(uid: string): string | undefined {
  if (uid.length > LONGEST_ADDRESS) return undefined;
  if (uid.includes("@") && EMAIL.test(uid)) return "an e-mail address";
  const digits = uid.replace(/\D/g, "").length;
  if (digits < PHONE_DIGITS.fewest || digits > PHONE_DIGITS.most) return undefined;
  const isPhone = INTERNATIONAL_PHONE.test(uid) || NATIONAL_PHONE.test(uid) || GROUPED_PHONE.test(uid);
  return isPhone ? "a phone number" : undefined;
}

/** Warns if `currency` is not a code of three letters (event-tracking-api 2.3). */
function currencyWarning(currency: unknown): Finding | undefined {
  if (typeof currency !== "string" || THREE_LETTERS.test(currency)) return undefined;
  const fix = "send an ISO 4217 code such as KRW or USD";
  return finding("currencyFormat", "currency", '"currency" is not a three-letter code', fix);
}

function valueWarning(value: unknown, price: unknown, quantity: unknown): Finding | undefined {
  if (typeof value !== "number" || typeof price !== "number" || typeof quantity !== "number") return undefined;
  const product = price * quantity;
  // Rounding to hundredths changes `value` by up to 0.005, and `price` × `quantity` by up to 0.005 × `quantity`.
  const tolerance = 0.005 * (Math.abs(quantity) + 1) + Math.abs(product) * 1e-9;
  if (Math.abs(value - product) <= tolerance) return undefined;
  const message = `"value" is ${value}, but "price" × "quantity" is ${product}`;
  return finding("valueMismatch", "value", message, `send ${product}, or leave "value" out`);
}
