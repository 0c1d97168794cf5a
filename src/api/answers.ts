import type * as z from "zod";
import { parseJson } from "../platform/json.ts";
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

// Reads answers tolerantly, since the documents leave most shapes open. Each function gives undefined for a body that
// it cannot read.

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value is an object that is no array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value in a body; undefined where it is not JSON. */
export function jsonIn(body: Buffer): unknown {
  return parseJson(body.toString("utf8"));
}

/** The longest text of the service that is kept, in characters: names have 36, codes and times no more. */
const LONGEST_TEXT = 256;
/** The most entries of a list or an object of an error that are kept: 7.3 shows at most 20 conflicts. */
const MOST_ENTRIES = 100;
const DEEPEST_DETAIL = 6;

/**
 * Cuts a text of the service that is longer than any text of the documents, so that none fills an answer or a journal.
 */
export function cut(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${[...text.slice(0, 2 * LONGEST_TEXT)].slice(0, LONGEST_TEXT).join("")}…`;
}

/** A part of an error's detail, with its texts and lists cut. */
function cutDetail(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return cut(value);
  if (depth === DEEPEST_DETAIL) return null;
  if (Array.isArray(value)) return value.slice(0, MOST_ENTRIES).map((entry) => cutDetail(entry, depth + 1));
  return isObject(value) ? cutFields(value, depth) : value;
}

function cutFields(fields: JsonObject, depth: number): Record<string, unknown> {
  const some = Object.entries(fields).slice(0, MOST_ENTRIES);
  return Object.fromEntries(some.map(([field, value]) => [cut(field), cutDetail(value, depth + 1)]));
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
  const results = listIn(body)?.map(bulkResultOf);
  if (results?.length !== count || !results.every((result) => result !== undefined)) return undefined;
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
    ...(typeof errorCode === "string" && { errorCode: cut(errorCode) }),
    ...(isObject(detail) && { detail: cutFields(detail, 0) }),
    ...(message !== undefined && { message: cutDetail(message) }),
  };
}

/** The sentences of a validation error: one text, or a list of them (management-api 2.2). */
export function messagesOf(body: unknown): readonly string[] {
  if (!isObject(body)) return [];
  const { message } = body;
  if (typeof message === "string") return [cut(message)];
  if (!Array.isArray(message)) return [];
  return message
    .filter((one) => typeof one === "string")
    .slice(0, MOST_ENTRIES)
    .map(cut);
}

/** A targeting, perhaps inside `data`; its texts are cut. */
export function targetingIn(body: unknown): TargetingRecord | undefined {
  return withTextsCut(recordIn(targetingRecord, body));
}

/** An option, perhaps inside `data`; its texts are cut. */
function optionIn(body: unknown): OptionRecord | undefined {
  return withTextsCut(recordIn(optionRecord, body));
}

/** A record in which the texts that answers show are cut. */
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
