import type * as z from "zod";
import {
  type BulkResult,
  type ItemError,
  type OptionPage,
  type OptionRecord,
  type OptionWithContexts,
  optionRecord,
  type TargetingRecord,
  targetingRecord,
} from "../spec/records.ts";

// How answers are read: everything that can be understood is accepted (the documents leave most shapes open).
// Each function gives undefined for what cannot be.

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object that is no array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON text as a value; undefined where it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value in a body; undefined where it is not JSON. */
export function jsonIn(body: Buffer): unknown {
  return parseJson(body.toString("utf8"));
}

/** A list as `{items}`, `{results}`, `{data}` or a bare array. */
function listIn(body: unknown): readonly unknown[] | undefined {
  if (Array.isArray(body)) return body;
  if (!isObject(body)) return undefined;
  return listIn(body.items) ?? listIn(body.results) ?? listIn(body.data);
}

/**
 * The results of a bulk request of `count` items, in its order (management-api 2.3). Undefined when an index is
 * missing, repeated or unknown, since it is then unclear what became of which item.
 */
export function bulkResults(body: unknown, count: number): readonly BulkResult[] | undefined {
  const list = listIn(body);
  if (list?.length !== count) return undefined;
  const results: BulkResult[] = [];
  for (const entry of list) {
    const result = bulkResultOf(entry);
    if (result === undefined) return undefined;
    results.push(result);
  }
  const isInOrder = (): boolean => results.every(({ index }, at) => index === at);
  if (!isInOrder()) results.sort((one, other) => one.index - other.index);
  return isInOrder() ? results : undefined;
}

function bulkResultOf(entry: unknown): BulkResult | undefined {
  if (!isObject(entry)) return undefined;
  const { index, success, data, error } = entry;
  if (typeof index !== "number" || typeof success !== "boolean") return undefined;
  return {
    index,
    success,
    ...(isObject(data) && { data }),
    ...(isObject(error) && { error: itemErrorOf(error) }),
  };
}

/** The error of an item or of a whole request (management-api 2.2): the fields that can be understood. */
export function itemErrorOf({ statusCode, errorCode, detail, message }: JsonObject): ItemError {
  return {
    ...(typeof statusCode === "number" && { statusCode }),
    ...(typeof errorCode === "string" && { errorCode }),
    ...(isObject(detail) && { detail: { ...detail } }),
    ...(message !== undefined && { message }),
  };
}

/** The sentences of a validation error: one text, or a list of them (management-api 2.2). */
export function messagesOf(body: unknown): readonly string[] {
  if (!isObject(body)) return [];
  const { message } = body;
  if (typeof message === "string") return [message];
  return Array.isArray(message) ? message.filter((one) => typeof one === "string") : [];
}

/** A targeting, perhaps inside `data`. */
export function targetingIn(body: unknown): TargetingRecord | undefined {
  return recordIn(targetingRecord, body);
}

/** An option, perhaps inside `data`. */
export function optionIn(body: unknown): OptionRecord | undefined {
  return recordIn(optionRecord, body);
}

/** A page of List Options. */
export function optionPageIn(body: unknown): OptionPage | undefined {
  const items = listIn(body)?.map(optionIn);
  if (!items?.every((option) => option !== undefined)) return undefined;
  const total = isObject(body) ? body.total : undefined;
  return { items, ...(typeof total === "number" && { total }) };
}

/** An option with a page of its Context IDs, as a list or inside one of the shapes of a list. */
export function optionWithContextsIn(body: unknown): OptionWithContexts | undefined {
  const record = optionIn(body);
  if (record === undefined) return undefined;
  const { contexts: given, ...option } = record;
  const contexts = given === undefined && (option.contextCount ?? 0) === 0 ? [] : listIn(given);
  return contexts?.every((context) => typeof context === "string") ? { option, contexts } : undefined;
}

/** A record in a body or in its `data`. A field of another type than expected counts as absent. */
function recordIn<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.output<Schema> | undefined {
  if (!isObject(body)) return undefined;
  if (!("_id" in body)) return recordIn(schema, body.data);
  const first = schema.safeParse(body);
  if (first.success) return first.data;
  const atFault = new Set(first.error.issues.map((issue) => issue.path[0]));
  const second = schema.safeParse(Object.fromEntries(Object.entries(body).filter(([field]) => !atFault.has(field))));
  return second.success ? second.data : undefined;
}
