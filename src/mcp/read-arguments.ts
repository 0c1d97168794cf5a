import { isJsonObject } from "../platform/json.ts";
import { ToolError } from "../tools/define-tool.ts";
import { type JsonSchema, MAX_MEMBERS, MAX_VALUES, membersIn, schemaAlternatives, valuesIn } from "./json-schema.ts";

const REMEDY = "Send the items in several calls, and as JSON arrays rather than as texts.";

export const DEEPEST = 64;

/** Recursive functions could overflow the stack on data that is nested too deeply. */
export function isTooDeep(given: unknown, levels = DEEPEST): boolean {
  if (typeof given !== "object" || given === null) return false;
  return levels === 0 || Object.values(given).some((value) => isTooDeep(value, levels - 1));
}

interface Reading {
  readonly root: JsonSchema;
  left: number;
}

/**
 * Corrects arguments that the schema does not accept: reads texts with JSON as its value, ignores the case of words,
 * and removes `null` from fields of items. Throws a ToolError if the texts contain too many values.
 */
export function parseStringifiedArguments(given: unknown, schema: JsonSchema): unknown {
  return read(given, schema, { root: schema, left: MAX_VALUES });
}

function read(value: unknown, schema: JsonSchema, reading: Reading): unknown {
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

function fromText(text: string, forms: readonly JsonSchema[], reading: Reading): unknown {
  const words = forms.length === 1 ? forms[0]?.enum : undefined;
  if (Array.isArray(words))
    return words.find((word) => String(word).toLowerCase() === text.trim().toLowerCase()) ?? text;
  if (forms.length === 0 || forms.some((form) => form.type === "string" || form.type === undefined)) return text;
  const parsed = parseJson(text.trim(), reading);
  const form = forms.find(({ type }) => isOfType(parsed, type));
  return form === undefined ? text : read(parsed, form, reading);
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isJsonObject(value);
  if (type === "integer") return typeof value === "number";
  return (type === "boolean" || type === "number") && typeof value === type;
}

function parseJson(text: string, reading: Reading): unknown {
  const json = Buffer.from(text);
  reading.left -= valuesIn(json, reading.left);
  if (membersIn(json, MAX_MEMBERS) > MAX_MEMBERS)
    throw new ToolError(`a JSON text in the arguments has an object with more than ${MAX_MEMBERS} fields`, REMEDY);
  if (reading.left < 0) throw new ToolError(`the texts in the arguments hold more than ${MAX_VALUES} values`, REMEDY);
  try {
    const parsed: unknown = JSON.parse(text);
    return isTooDeep(parsed) ? undefined : parsed;
  } catch {
    return undefined;
  }
}

/** Lists that filter results or select fields. Empty means the same as absent. */
const FILTERS: ReadonlySet<string> = new Set(["contextIds", "uids", "eventNames", "kinds", "expect"]);

/** Arguments that exclude each other. An empty list counts as absent if another of them is set. */
const ALTERNATIVES: readonly (readonly string[])[] = [
  ["ids", "names"],
  ["items", "events", "removeEverywhere", "file"],
];

/**
 * Removes `null` and empty texts, which some hosts send for absent arguments, and empty lists where that cannot widen
 * the effect.
 */
export function withoutAbsent(given: unknown, { properties, required }: JsonSchema): unknown {
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

function isNothing(name: string, given: JsonSchema): boolean {
  if (FILTERS.has(name)) return true;
  const others = ALTERNATIVES.find((names) => names.includes(name))?.filter((other) => other !== name) ?? [];
  return others.some((other) => {
    const value = given[other];
    return (Array.isArray(value) || typeof value === "string") && value.length > 0;
  });
}

/**
 * Hosts that send `null` for a field that does not accept it send it for every absent field, so every `null` is
 * removed. Where `null` has a meaning, they can send the text `[]`.
 */
function itemFields(item: JsonSchema, form: JsonSchema, root: JsonSchema): JsonSchema {
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
const LOWER_CASE_ID = /^(?=.*[a-z])[0-7][0-9a-hjkmnp-tv-z]{25}$/i;

/** The service writes IDs in upper case. Returns the same object if nothing changes. */
export function withUpperIds(given: unknown, field = ""): unknown {
  if (typeof given === "string") return IDS.has(field) && LOWER_CASE_ID.test(given) ? given.toUpperCase() : given;
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
