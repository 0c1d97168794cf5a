import type * as z from "zod";
import { quoteShort } from "../answers/fence.ts";
import { nearestName } from "../events/spelling.ts";
import { isJsonObject } from "../platform/json.ts";
import { type JsonSchema, schemaAlternatives } from "./json-schema.ts";

const MAX_SHOWN = 3;
const LONGEST_WORDS = 1500;

export function unknownArguments(given: unknown, { properties }: JsonSchema): readonly string[] {
  if (!isJsonObject(given)) return [];
  return Object.keys(given).filter((name) => !isJsonObject(properties) || !Object.hasOwn(properties, name));
}

/** Describes the actual value and what would be valid. `isCut`: only a part of the arguments was checked. */
export function describeIssues(
  issues: readonly z.core.$ZodIssue[],
  given: unknown,
  schema: JsonSchema,
  isCut = false,
): string {
  const words: string[] = [];
  for (const issue of issues.slice(0, MAX_SHOWN)) {
    if (words.join().length < LONGEST_WORDS) words.push(wordsOf(issue, given, schema));
  }
  const more = issues.length - words.length;
  return [...words, ...(more > 0 ? [`and ${isCut ? "at least " : ""}${more} more problems of this kind`] : [])].join(
    "; ",
  );
}

function wordsOf(issue: z.core.$ZodIssue, given: unknown, schema: JsonSchema): string {
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

export function unknownWords(keys: readonly string[], path: readonly PropertyKey[], schema: JsonSchema): string {
  const valid = validKeys(path, schema);
  const what = path.length === 0 ? "argument" : "field";
  const words = keys.slice(0, MAX_SHOWN).map((key) => {
    const nearest = nearestName(key, valid);
    const meant = nearest === undefined ? "" : `, did you mean ${nearest}?`;
    return `unknown ${what} ${quoteShort(pathText([...path, key]))}${meant}`;
  });
  const more = keys.length > MAX_SHOWN ? ` and ${keys.length - MAX_SHOWN} more` : "";
  const list = valid.length === 0 ? "there are none" : `valid ${what}s: ${valid.join(", ")}`;
  return `${words.join("; ")}${more} (${list})`;
}

function validKeys(path: readonly PropertyKey[], schema: JsonSchema): readonly string[] {
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
  string: "a text",
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

/** Each problem needs memory, and arguments may contain a million. */
const MAX_MISFITS = 100;

interface Look {
  readonly root: JsonSchema;
  readonly forms: Map<JsonSchema, readonly JsonSchema[]>;
  readonly path: (string | number)[];
  left: number;
}

/** Removes everything after the hundredth wrong type, missing field or unknown field. Positions stay the same. */
export function cutAtIssueLimit(given: unknown, schema: JsonSchema): unknown {
  const look: Look = { root: schema, forms: new Map(), path: [], left: MAX_MISFITS };
  return isEnough(given, schema, look) ? cutAfter(given, look.path) : given;
}

/** Searches for problems until there are enough. `look.path` is then the path of the last one. */
function isEnough(value: unknown, schema: JsonSchema, look: Look): boolean {
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

function isEnoughAt(step: string | number, value: unknown, schema: JsonSchema, look: Look): boolean {
  look.path.push(step);
  if (isEnough(value, schema, look)) return true;
  look.path.pop();
  return false;
}

function countsTo(misfits: number, look: Look): boolean {
  look.left -= misfits;
  return misfits > 0 && look.left <= 0;
}

function isOf(value: unknown, { type, enum: words }: JsonSchema): boolean {
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
