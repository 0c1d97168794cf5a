import { isTooDeep } from "./depth.ts";
import { isSchema, type JsonSchema } from "./json-schema.ts";

/**
 * Reads arguments as they were meant: where the schema takes no text, a text that holds a JSON array or object, a
 * number, or true or false, becomes what it holds, at any depth. What cannot be read stays as it is.
 */
export function understood(value: unknown, schema: JsonSchema, root: JsonSchema = schema): unknown {
  const forms = formsOf(schema, root);
  if (typeof value === "string") return fromText(value, forms, root);
  if (Array.isArray(value)) {
    const items = forms.find((form) => form.type === "array")?.items;
    return isSchema(items) ? value.map((item) => understood(item, items, root)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  const properties = forms.find((form) => isSchema(form.properties))?.properties;
  if (!isSchema(properties)) return value;
  const readField = ([name, field]: [string, unknown]): [string, unknown] => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return [name, isSchema(known) ? understood(field, known, root) : field];
  };
  return Object.fromEntries(Object.entries(value).map(readField));
}

/** The schemas that a value may follow: references followed, alternatives side by side. */
export function formsOf(schema: JsonSchema, root: JsonSchema): readonly JsonSchema[] {
  if (typeof schema.$ref === "string") {
    const target = schema.$ref.split("/").slice(1).reduce(stepInto, root);
    return isSchema(target) ? formsOf(target, root) : [];
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(alternatives)) return [schema];
  return alternatives.filter(isSchema).flatMap((alternative) => formsOf(alternative, root));
}

function stepInto(node: unknown, name: string): unknown {
  return isSchema(node) && Object.hasOwn(node, name) ? node[name] : undefined;
}

function fromText(text: string, forms: readonly JsonSchema[], root: JsonSchema): unknown {
  if (forms.some((form) => form.type === "string" || form.type === undefined)) return text;
  for (const form of forms) {
    const value = parsedAs(form.type, text.trim());
    if (value !== undefined) return understood(value, form, root);
  }
  return text;
}

function parsedAs(type: unknown, text: string): unknown {
  const parsed = parseJson(text);
  if (type === "array") return Array.isArray(parsed) ? parsed : undefined;
  if (type === "object") return isSchema(parsed) ? parsed : undefined;
  if (type === "boolean") return typeof parsed === "boolean" ? parsed : undefined;
  if (type === "number" || type === "integer") return typeof parsed === "number" ? parsed : undefined;
  return undefined;
}

function parseJson(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return isTooDeep(parsed) ? undefined : parsed;
  } catch {
    return undefined;
  }
}
