import { formsOf, isSchema, type JsonSchema } from "./json-schema.ts";

/** The most mistakes that are collected: each costs memory, and arguments may hold a million. */
const MOST_MISFITS = 100;

/** One pass over arguments. */
interface Look {
  readonly root: JsonSchema;
  readonly forms: Map<JsonSchema, readonly JsonSchema[]>;
  /** Where it is. */
  readonly path: (string | number)[];
  /** How many misfits may still come. */
  left: number;
}

/**
 * Arguments as they are where most of them fit the schema; else only up to their hundredth misfit, with positions as
 * they were. A misfit is a value of another type or not among the allowed words, or a missing or unknown member.
 */
export function upToMisfits(given: unknown, schema: JsonSchema): unknown {
  const look: Look = { root: schema, forms: new Map(), path: [], left: MOST_MISFITS };
  return isEnough(given, schema, look) ? cutAfter(given, look.path) : given;
}

/** Looks until there are enough misfits: then the path leads to the last of them. */
function isEnough(value: unknown, schema: JsonSchema, look: Look): boolean {
  const forms = look.forms.get(schema) ?? formsOf(schema, look.root);
  look.forms.set(schema, forms);
  const form = forms.find((one) => isOf(value, one));
  if (form === undefined) return forms.length > 0 && countsTo(1, look);
  if (Array.isArray(value)) {
    const { items } = form;
    return isSchema(items) && value.some((item, index) => isEnoughAt(index, item, items, look));
  }
  if (!isSchema(value) || !isSchema(form.properties)) return false;
  const { properties, required, additionalProperties } = form;
  const missing = Array.isArray(required) ? required.filter((name) => !Object.hasOwn(value, String(name))).length : 0;
  if (countsTo(missing, look)) return true;
  return Object.keys(value).some((name) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (isSchema(known)) return isEnoughAt(name, value[name], known, look);
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
      return isSchema(value);
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

/** What stands before the end of a path, and what is there. */
function cutAfter(value: unknown, [step, ...rest]: readonly (string | number)[]): unknown {
  if (Array.isArray(value) && typeof step === "number") return [...value.slice(0, step), cutAfter(value[step], rest)];
  if (!isSchema(value) || typeof step !== "string") return value;
  const names = Object.keys(value);
  const kept = names.slice(0, names.indexOf(step)).map((name) => [name, value[name]]);
  return Object.fromEntries([...kept, [step, cutAfter(value[step], rest)]]);
}
