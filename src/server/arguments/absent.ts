import { formsOf, isSchema, type JsonSchema } from "./json-schema.ts";

/** Lists that say what is looked at: an empty one means the same as none, and changes nothing anywhere. */
const FILTERS: ReadonlySet<string> = new Set(["contextIds", "uids", "eventNames", "kinds", "expect"]);

/** Arguments that say the same in several ways: where one says something, an empty list in another says nothing. */
const ALTERNATIVES: readonly (readonly string[])[] = [
  ["ids", "names"],
  ["items", "events", "removeEverywhere", "file"],
];

/**
 * Arguments without those that were not given: hosts send `null`, and empty texts, for each optional argument that their
 * model left out. An empty list counts as absent only where that cannot widen an effect.
 */
export function withoutAbsent(given: unknown, { properties, required }: JsonSchema): unknown {
  if (!isSchema(given) || !isSchema(properties)) return given;
  const needed = new Set(Array.isArray(required) ? required : []);
  const isAbsent = (name: string): boolean => {
    const value = given[name];
    if (needed.has(name) || !Object.hasOwn(properties, name)) return false;
    return value === null || value === "" || (isEmptyList(value) && isNothing(name, given));
  };
  if (!Object.keys(given).some(isAbsent)) return given;
  return Object.fromEntries(Object.entries(given).filter(([name]) => !isAbsent(name)));
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isNothing(name: string, given: JsonSchema): boolean {
  if (FILTERS.has(name)) return true;
  const others = ALTERNATIVES.find((names) => names.includes(name))?.filter((other) => other !== name) ?? [];
  return others.some((other) => saysSomething(given[other]));
}

function saysSomething(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value === "string" && value !== "";
}

/**
 * The fields of an item without those that hold `null` and cannot: a host that sends one such field sends `null` for
 * everything, so that no `null` of the item says anything then. For such hosts the text `[]` says what `null` does.
 */
export function itemFields(item: JsonSchema, form: JsonSchema, root: JsonSchema): JsonSchema {
  const { properties, required, additionalProperties } = form;
  if (!isSchema(properties) || additionalProperties !== false) return item;
  const needed = new Set(Array.isArray(required) ? required : []);
  const takesNull = (name: string): boolean => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return isSchema(schema) && formsOf(schema, root).some(({ type }) => type === "null");
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

/** The fields that hold IDs. */
const IDS: ReadonlySet<string> = new Set([
  ...["targetingId", "optionId", "runId", "suiteId", "_id", "_ids", "ids", "parent", "addFrom", "removeFrom"],
  "compareWith",
]);
const LOWER_CASE_ID = /^(?=.*[a-z])[0-7][0-9a-hjkmnp-tv-z]{25}$/i;

/** Arguments whose IDs have the capital letters that all IDs have; the same object where none lacks them. */
export function withUpperIds(given: unknown, field = ""): unknown {
  if (typeof given === "string") return IDS.has(field) && LOWER_CASE_ID.test(given) ? given.toUpperCase() : given;
  if (Array.isArray(given)) {
    const changed = given.map((one: unknown) => withUpperIds(one, field));
    return changed.some((one, index) => one !== given[index]) ? changed : given;
  }
  if (!isSchema(given)) return given;
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
