import type * as z from "zod";
import { isJsonObject, type JsonObject, parseJson } from "../platform/json.ts";
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

// The API documents do not define most shapes of an answer, so these functions accept several. Each returns undefined
// if it cannot read the body.

export function jsonIn(body: Buffer): unknown {
  return parseJson(body.toString("utf8"));
}

/** Longer texts from the service are cut, in characters. Names have at most 36, and codes and times are shorter. */
const LONGEST_TEXT = 256;
/** The documents show at most 20 entries in an error (management-api 7.3). */
const MAX_ENTRIES = 100;
const DEEPEST_DETAIL = 6;

/** Cuts a text that is longer than anything the service documents, so that it cannot fill an answer or a stored run. */
export function cut(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${[...text.slice(0, 2 * LONGEST_TEXT)].slice(0, LONGEST_TEXT).join("")}…`;
}

function cutDetail(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value);
  if (depth === DEEPEST_DETAIL) return null;
  if (Array.isArray(value)) return value.slice(0, MAX_ENTRIES).map((entry) => cutDetail(entry, depth + 1));
  return isJsonObject(value) ? cutFields(value, depth) : value;
}

function cutFields(fields: JsonObject, depth: number): Record<string, unknown> {
  const some = Object.entries(fields).slice(0, MAX_ENTRIES);
  return Object.fromEntries(some.map(([field, value]) => [cut(field), cutDetail(value, depth + 1)]));
}

/** Finds a bare array, or the array in `items`, `results` or `data`. */
function listIn(body: unknown): readonly unknown[] | undefined {
  if (Array.isArray(body)) return body;
  if (!isJsonObject(body)) return undefined;
  return listIn(body.items) ?? listIn(body.results) ?? listIn(body.data);
}

/** Results in the order of the items (management-api 2.3); undefined if an index is missing, repeated or too large. */
export function bulkResults(body: unknown, count: number): readonly BulkResult[] | undefined {
  const results = listIn(body)?.map(bulkResultOf);
  if (results?.length !== count || !results.every((result) => result !== undefined)) return undefined;
  const isInOrder = (): boolean => results.every(({ index }, at) => index === at);
  if (!isInOrder()) results.sort((one, other) => one.index - other.index);
  return isInOrder() ? results : undefined;
}

function bulkResultOf(entry: unknown): BulkResult | undefined {
  if (!isJsonObject(entry)) return undefined;
  const { index, success, data, error } = entry;
  if (typeof index !== "number" || typeof success !== "boolean") return undefined;
  return {
    index,
    success,
    ...(isJsonObject(data) && { data }),
    ...(isJsonObject(error) && { error: itemErrorOf(error) }),
  };
}

/** The error of one item or of a whole request (management-api 2.2). Omits fields of an unexpected type. */
export function itemErrorOf({ statusCode, errorCode, detail, message }: JsonObject): ItemError {
  return {
    ...(typeof statusCode === "number" && { statusCode }),
    ...(typeof errorCode === "string" && { errorCode: cut(errorCode) }),
    ...(isJsonObject(detail) && { detail: cutFields(detail, 0) }),
    ...(message !== undefined && { message: cutDetail(message) }),
  };
}

/** The service sends one text or a list of texts (management-api 2.2). */
export function messagesOf(body: unknown): readonly string[] {
  if (!isJsonObject(body)) return [];
  const { message } = body;
  if (typeof message === "string") return [cut(message)];
  if (!Array.isArray(message)) return [];
  return message
    .filter((one) => typeof one === "string")
    .slice(0, MAX_ENTRIES)
    .map(cut);
}

export function targetingIn(body: unknown): TargetingRecord | undefined {
  return withTextsCut(recordIn(targetingRecord, body));
}

function optionIn(body: unknown): OptionRecord | undefined {
  return withTextsCut(recordIn(optionRecord, body));
}

function withTextsCut<Texts extends Pick<OptionRecord, "name" | "createdAt" | "updatedAt">>(record: Texts | undefined) {
  if (record === undefined) return undefined;
  const { name, createdAt, updatedAt } = record;
  return {
    ...record,
    name: cut(name),
    ...(createdAt !== undefined && { createdAt: cut(createdAt) }),
    ...(updatedAt !== undefined && { updatedAt: cut(updatedAt) }),
  };
}

export function optionPageIn(body: unknown): OptionPage | undefined {
  const items = listIn(body)?.map(optionIn);
  if (!items?.every((option) => option !== undefined)) return undefined;
  const total = isJsonObject(body) ? body.total : undefined;
  return { items, ...(typeof total === "number" && { total }) };
}

/** The Context IDs may be a plain list or in one of the shapes of `listIn`. */
export function optionWithContextsIn(body: unknown): OptionWithContexts | undefined {
  const record = optionIn(body);
  if (record === undefined) return undefined;
  const { contexts: given, ...option } = record;
  const contexts = given === undefined && (option.contextCount ?? 0) === 0 ? [] : listIn(given);
  return contexts?.every((context) => typeof context === "string") ? { option, contexts } : undefined;
}

/** Reads a record from a body or its `data`. Omits optional fields of an unexpected type. */
function recordIn<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.output<Schema> | undefined {
  if (!isJsonObject(body)) return undefined;
  if (!("_id" in body)) return recordIn(schema, body.data);
  const first = schema.safeParse(body);
  if (first.success) return first.data;
  const atFault = new Set(first.error.issues.map((issue) => issue.path[0]));
  const second = schema.safeParse(Object.fromEntries(Object.entries(body).filter(([field]) => !atFault.has(field))));
  return second.success ? second.data : undefined;
}
