import type * as z from "zod";
import { quoteShort } from "../answers/fence.ts";
import { nearestName } from "../events/spelling.ts";
import { jsonFault } from "../platform/exact-json.ts";
import { isJsonObject, type JsonObject, parseJson } from "../platform/json.ts";
import { ToolError } from "../tools/define-tool.ts";
import { schemaAlternatives } from "./server-parts.ts";

const REMEDY = "Send the items in several calls, and as JSON arrays rather than as texts.";

export const DEEPEST = 64;

/** Returns whether data is nested more than `levels` deep. Without a limit, recursion could overflow the stack. */
export function isTooDeep(given: unknown, levels = DEEPEST): boolean {
  if (typeof given !== "object" || given === null) return false;
  return levels === 0 || Object.values(given).some((value) => isTooDeep(value, levels - 1));
}

interface Reading {
  readonly root: JsonObject;
  left: number;
}

/**
 * Corrects arguments that do not match the schema: parses texts that contain JSON, fixes the case of enum values, and
 * removes `null` fields of items. Throws a ToolError if a text is too large, or has a field twice or an inexact number.
 */
export function parseStringifiedArguments(given: unknown, schema: JsonObject): unknown {
  return read(given, schema, { root: schema, left: MAX_VALUES });
}

function read(value: unknown, schema: JsonObject, reading: Reading): unknown {
  const forms = schemaAlternatives(schema, reading.root);
  if (typeof value === "string") return fromText(value, forms, reading);
  if (Array.isArray(value)) {
    const items = forms.find((form) => form.type === "array")?.items;
    return isJsonObject(items) ? value.map((item) => read(item, items, reading)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const form = forms.find((one) => isJsonObject(one.properties));
  const properties = form?.properties;
  if (form === undefined || !isJsonObject(properties) || !isJsonObject(value)) return value;
  const readField = ([name, field]: [string, unknown]): [string, unknown] => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return [name, isJsonObject(known) ? read(field, known, reading) : field];
  };
  const fields = schema === reading.root ? value : itemFields(value, form, reading.root);
  return Object.fromEntries(Object.entries(fields).map(readField));
}

function fromText(text: string, forms: readonly JsonObject[], reading: Reading): unknown {
  const words = forms.length === 1 ? forms[0]?.enum : undefined;
  if (Array.isArray(words))
    return words.find((word) => String(word).toLowerCase() === text.trim().toLowerCase()) ?? text;
  if (forms.length === 0 || forms.some((form) => form.type === "string" || form.type === undefined)) return text;
  const parsed = parsedText(text.trim(), reading);
  const form = forms.find(({ type }) => isOfType(parsed, type));
  return form === undefined ? text : read(parsed, form, reading);
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isJsonObject(value);
  if (type === "integer") return typeof value === "number";
  return (type === "boolean" || type === "number") && typeof value === type;
}

function parsedText(text: string, reading: Reading): unknown {
  const json = Buffer.from(text);
  reading.left -= valuesIn(json, reading.left);
  if (membersIn(json, MAX_MEMBERS) > MAX_MEMBERS)
    throw new ToolError(`a JSON text in the arguments has an object with more than ${MAX_MEMBERS} fields`, REMEDY);
  if (reading.left < 0) throw new ToolError(`the texts in the arguments hold more than ${MAX_VALUES} values`, REMEDY);
  const parsed = parseJson(text);
  if (parsed === undefined || isTooDeep(parsed)) return undefined;
  const fault = jsonFault(text, parsed);
  if (fault === undefined) return parsed;
  throw "twice" in fault
    ? new ToolError(
        `a JSON text in the arguments has the field ${quoteShort(fault.twice)} twice`,
        "Give the field once.",
      )
    : new ToolError(
        `a JSON text in the arguments has the number ${quoteShort(fault.number)}, which cannot be kept exactly`,
        "If it is an ID, write it as a text in quotes; otherwise write a number with fewer digits.",
      );
}

/** Lists that filter results or name expected ones. Some hosts send an empty list for none: it counts as absent. */
const FILTERS: ReadonlySet<string> = new Set(["contextIds", "uids", "eventNames", "kinds", "expect"]);

/** Arguments of which a call may have only one. An empty list counts as absent if another one of them is set. */
const ALTERNATIVES: readonly (readonly string[])[] = [
  ["ids", "names"],
  ["items", "events", "removeEverywhere", "file"],
];

/** Removes optional `null`s and empty texts, and empty lists whose removal cannot give the call a larger effect. */
export function withoutAbsent(given: unknown, { properties, required }: JsonObject): unknown {
  if (!isJsonObject(given) || !isJsonObject(properties)) return given;
  const needed = new Set(Array.isArray(required) ? required : []);
  const isAbsent = (name: string): boolean => {
    const value = given[name];
    if (needed.has(name) || !Object.hasOwn(properties, name)) return false;
    return value === null || value === "" || (Array.isArray(value) && value.length === 0 && isNothing(name, given));
  };
  if (!Object.keys(given).some(isAbsent)) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !isAbsent(name)));
}

function isNothing(name: string, given: JsonObject): boolean {
  if (FILTERS.has(name)) return true;
  const others = ALTERNATIVES.find((names) => names.includes(name))?.filter((other) => other !== name) ?? [];
  return others.some((other) => {
    const value = given[other];
    return (Array.isArray(value) || typeof value === "string") && value.length > 0;
  });
}

/**
 * Removes `null` from an item where it means "not set": some hosts send `null` for every field that is not set. They
 * are recognized by a `null` in an optional field that does not allow it; then `null` is removed from all optional
 * fields of the item. Such a host may also send the text `[]` for `null`, so the text becomes `null` in fields that
 * allow `null`.
 */
function itemFields(item: JsonObject, form: JsonObject, root: JsonObject): JsonObject {
  const { properties, required, additionalProperties } = form;
  if (!isJsonObject(properties) || additionalProperties !== false) return item;
  const needed = new Set(Array.isArray(required) ? required : []);
  const takesNull = (name: string): boolean => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return isJsonObject(schema) && schemaAlternatives(schema, root).some(({ type }) => type === "null");
  };
  const isForAll = Object.entries(item).some(
    ([name, value]) => value === null && !needed.has(name) && !takesNull(name),
  );
  const fields = Object.entries(item).flatMap(([name, value]): readonly (readonly [string, unknown])[] => {
    if (value === null && isForAll && !needed.has(name)) return [];
    return [[name, value === "[]" && takesNull(name) ? null : value]];
  });
  return Object.fromEntries(fields);
}

const IDS: ReadonlySet<string> = new Set([
  ...["targetingId", "optionId", "runId", "suiteId", "_id", "_ids", "ids", "parent", "addFrom", "removeFrom"],
  "compareWith",
]);
const ID_WITH_LETTERS = /^(?=.*[a-z])[0-7][0-9a-hjkmnp-tv-z]{25}$/i;

/** Converts IDs in fields for IDs to upper case, as answers write them. Returns `given` itself if nothing changes. */
export function withUpperIds(given: unknown, field = ""): unknown {
  if (typeof given === "string") return IDS.has(field) && ID_WITH_LETTERS.test(given) ? given.toUpperCase() : given;
  if (Array.isArray(given)) {
    const changed = given.map((one: unknown) => withUpperIds(one, field));
    return changed.some((one, index) => one !== given[index]) ? changed : given;
  }
  if (!isJsonObject(given)) return given;
  let changed: Record<string, unknown> | undefined;
  for (const name of Object.keys(given)) {
    const value = given[name];
    const upper = withUpperIds(value, name);
    if (upper === value) continue;
    changed ??= { ...given };
    changed[name] = upper;
  }
  return changed ?? given;
}

const MAX_SHOWN = 3;
const LONGEST_WORDS = 1500;

export function unknownArguments(given: unknown, { properties }: JsonObject): readonly string[] {
  if (!isJsonObject(given)) return [];
  return Object.keys(given).filter((name) => !isJsonObject(properties) || !Object.hasOwn(properties, name));
}

/** Describes the first problems: what was sent, and what is valid. `isCut`: not all arguments were checked. */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  given: unknown,
  schema: JsonObject,
  isCut = false,
): string {
  const words: string[] = [];
  for (const issue of issues.slice(0, MAX_SHOWN)) {
    if (words.join().length < LONGEST_WORDS) words.push(wordsOf(issue, given, schema));
  }
  const more = issues.length - words.length;
  return [
    ...words,
    ...(more > 0 ? [`and ${isCut ? "at least " : ""}${more} more ${more === 1 ? "problem" : "problems"}`] : []),
  ].join("; ");
}

function wordsOf(issue: z.core.$ZodIssue, given: unknown, schema: JsonObject): string {
  const where = pathText(issue.path);
  const value = valueAt(given, issue.path);
  switch (issue.code) {
    case "unrecognized_keys":
      return unknownWords(issue.keys, issue.path, schema);
    case "invalid_type": {
      const expected = EXPECTED[issue.expected] ?? issue.expected;
      return value === undefined
        ? `${where} is missing: ${expected} is needed`
        : `${where} must be ${expected}, not ${kindOf(value)}`;
    }
    case "invalid_value":
      return `${where} must be one of ${issue.values.map((one) => JSON.stringify(one)).join(", ")}, not ${kindOf(value)}`;
    case "too_big":
      return `${where} must ${have(value)}at most ${issue.maximum}, not ${sizeOf(value)}`;
    case "too_small":
      return `${where} must ${have(value)}at least ${issue.minimum}, not ${sizeOf(value)}`;
    case "invalid_union": {
      const [nearest] = [...issue.errors].sort((one, other) => one.length - other.length);
      const first = nearest?.[0];
      if (first === undefined) return `${where} is ${kindOf(value)}, which has none of the allowed forms`;
      return wordsOf({ ...first, path: [...issue.path, ...first.path] }, given, schema);
    }
    default:
      return `${where} does not have the required form`;
  }
}

export function unknownWords(keys: readonly string[], path: readonly PropertyKey[], schema: JsonObject): string {
  const valid = validKeys(path, schema);
  const what = path.length === 0 ? "argument" : "field";
  const words = keys.slice(0, MAX_SHOWN).map((key) => {
    const nearest = nearestName(key, valid);
    const meant = nearest === undefined ? "" : `, did you mean ${nearest}?`;
    return `unknown ${what} ${quoteShort(pathText([...path, key]))}${meant}`;
  });
  const more = keys.length > MAX_SHOWN ? ` and ${keys.length - MAX_SHOWN} more` : "";
  return `${words.join("; ")}${more} (valid ${what}s: ${valid.join(", ") || "none"})`;
}

function validKeys(path: readonly PropertyKey[], schema: JsonObject): readonly string[] {
  let forms = schemaAlternatives(schema, schema);
  for (const step of path) {
    forms = forms.flatMap((form) => {
      const inner =
        typeof step === "number" ? form.items : isJsonObject(form.properties) && form.properties[String(step)];
      return isJsonObject(inner) ? schemaAlternatives(inner, schema) : [];
    });
  }
  return [...new Set(forms.flatMap(({ properties }) => (isJsonObject(properties) ? Object.keys(properties) : [])))];
}

function pathText(path: readonly PropertyKey[]): string {
  const text = path.reduce<string>(
    (before, step) => (typeof step === "number" ? `${before}[${step}]` : `${before}${before && "."}${String(step)}`),
    "",
  );
  return text === "" ? "the arguments" : text;
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, step) => {
    if (typeof step === "number") return Array.isArray(value) ? value[step] : undefined;
    return isJsonObject(value) && Object.hasOwn(value, step) ? value[String(step)] : undefined;
  }, given);
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  null: "null",
};

function kindOf(value: unknown): string {
  if (typeof value === "string") return `the text ${quoteShort(value)}`;
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "missing" : "an object";
}

function have(value: unknown): string {
  return Array.isArray(value) || typeof value === "string" ? "have " : "be ";
}

function sizeOf(value: unknown): string {
  if (Array.isArray(value)) return `${value.length} entries`;
  return typeof value === "string" ? `${value.length} characters` : kindOf(value);
}

/** The most problems to find. Arguments may have a million, and each takes memory. */
const MAX_MISFITS = 100;

interface Look {
  readonly root: JsonObject;
  readonly forms: Map<JsonObject, readonly JsonObject[]>;
  readonly path: (string | number)[];
  left: number;
}

/** Removes all values after the hundredth problem: validation ends there. Earlier values keep their position. */
export function cutAtIssueLimit(given: unknown, schema: JsonObject): unknown {
  const look: Look = { root: schema, forms: new Map(), path: [], left: MAX_MISFITS };
  return isEnough(given, schema, look) ? cutAfter(given, look.path) : given;
}

/** Searches for problems. Returns true as soon as there are enough; `look.path` then leads to the last problem. */
function isEnough(value: unknown, schema: JsonObject, look: Look): boolean {
  const forms = look.forms.get(schema) ?? schemaAlternatives(schema, look.root);
  look.forms.set(schema, forms);
  const form = forms.find((one) => isOf(value, one));
  if (form === undefined) return forms.length > 0 && countsTo(1, look);
  if (Array.isArray(value)) {
    const { items } = form;
    return isJsonObject(items) && value.some((item, index) => isEnoughAt(index, item, items, look));
  }
  if (!isJsonObject(value) || !isJsonObject(form.properties)) return false;
  const { properties, required, additionalProperties } = form;
  const missing = Array.isArray(required) ? required.filter((name) => !Object.hasOwn(value, String(name))).length : 0;
  if (countsTo(missing, look)) return true;
  return Object.keys(value).some((name) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (isJsonObject(known)) return isEnoughAt(name, value[name], known, look);
    return additionalProperties === false && countsTo(1, look);
  });
}

function isEnoughAt(step: string | number, value: unknown, schema: JsonObject, look: Look): boolean {
  look.path.push(step);
  if (isEnough(value, schema, look)) return true;
  look.path.pop();
  return false;
}

function countsTo(misfits: number, look: Look): boolean {
  look.left -= misfits;
  return misfits > 0 && look.left <= 0;
}

function isOf(value: unknown, { type, enum: words }: JsonObject): boolean {
  if (Array.isArray(words) && !words.includes(value)) return false;
  switch (type) {
    case "array":
      return Array.isArray(value);
    case "object":
      return isJsonObject(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case undefined:
      return true;
    default:
      return typeof value === type;
  }
}

function cutAfter(value: unknown, [step, ...rest]: readonly (string | number)[]): unknown {
  if (Array.isArray(value) && typeof step === "number") return [...value.slice(0, step), cutAfter(value[step], rest)];
  if (!isJsonObject(value) || typeof step !== "string") return value;
  const names = Object.keys(value);
  const kept = names.slice(0, names.indexOf(step)).map((name) => [name, value[name]]);
  return Object.fromEntries([...kept, [step, cutAfter(value[step], rest)]]);
}

const [QUOTE = 0, BACKSLASH = 0, COLON = 0, COMMA = 0, SPACE = 0] = Buffer.from('"\\:, ');
const [OPEN_LIST = 0, CLOSE_LIST = 0, OPEN_OBJECT = 0, CLOSE_OBJECT = 0] = Buffer.from("[]{}");

/** The most values in one message. A parsed value needs many times the memory of its text. */
export const MAX_VALUES = 1_000_000;
export const MAX_MEMBERS = 10_000;

/** Counts the values of a JSON text, up to about `most`. After an error in the JSON, the count may be wrong. */
export function valuesIn(json: Uint8Array, most: number): number {
  let values = 0;
  // A text counts as a value until a colon shows that it is a field name. So the count may be too high by one.
  for (let at = 0; at < json.length && values <= most + 1; at += 1) {
    const byte = json[at] ?? SPACE;
    if (byte === COLON) values -= 1;
    else if (byte === QUOTE) {
      values += 1;
      at = endOfString(json, at);
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) values += 1;
    else if (!endsWord(byte)) {
      values += 1;
      at = endOfWord(json, at);
    }
  }
  return values;
}

/** Counts the fields of the largest object, up to `most` + 1. Fields take longer to parse than list entries. */
export function membersIn(json: Uint8Array, most: number): number {
  const open: number[] = [];
  let largest = 0;
  for (let at = 0; at < json.length && largest <= most; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === OPEN_OBJECT) open.push(0);
    else if (byte === CLOSE_OBJECT) open.pop();
    else if (byte === COLON) {
      const members = (open.pop() ?? 0) + 1;
      open.push(members);
      largest = Math.max(largest, members);
    }
  }
  return largest;
}

function endOfString(json: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}

function endOfWord(json: Uint8Array, from: number): number {
  let at = from;
  while (at + 1 < json.length && !endsWord(json[at + 1] ?? SPACE)) at += 1;
  return at;
}

function endsWord(byte: number): boolean {
  const opens = byte === QUOTE || byte === COLON || byte === OPEN_LIST || byte === OPEN_OBJECT;
  return opens || byte <= SPACE || byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT;
}
