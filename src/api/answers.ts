import type * as z from "zod";
import { isJsonObject, type JsonObject, parseJson } from "../platform/json.ts";
import type { Fence } from "../runs/turn.ts";
import { isErrorCode } from "../spec/error-codes.ts";
import { LIMITS } from "../spec/limits.ts";
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
import type { Operation, RouteTable } from "../spec/routes.ts";
import {
  AmbiguousError,
  type ApiError,
  BusyError,
  NotSentError,
  ProxyError,
  type Purpose,
  RATE_LIMITED,
  RejectedError,
  type RejectionKind,
} from "./errors.ts";
import type { Http, HttpAnswer } from "./http.ts";

// The API documents do not define the form of most answers, so the functions that read records and results from a body
// accept several forms. They return undefined if they cannot read the body.

export function jsonIn(body: Buffer): unknown {
  return parseJson(body.toString("utf8"));
}

/** Longer names, times and error texts of the service are cut after this many characters. A name has at most 36. */
const LONGEST_TEXT = 256;
/** How many entries of a list or object in an error are kept. The documents show at most 20 (management-api 7.3). */
const MAX_ENTRIES = 100;
const DEEPEST_DETAIL = 6;

/** Cuts a text of the service that is longer than any documented one, so that it cannot fill an answer or a run. */
function cut(text: string): string {
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

/** Returns the list in a body: the body itself, or the list in its field `items`, `results` or `data`. */
function listIn(body: unknown): readonly unknown[] | undefined {
  if (Array.isArray(body)) return body;
  if (!isJsonObject(body)) return undefined;
  return listIn(body.items) ?? listIn(body.results) ?? listIn(body.data);
}

/**
 * Returns the results of a bulk request in the order of its items (management-api 2.3). Undefined unless each of
 * the `count` items has exactly one readable result.
 */
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

/** Returns the error of an item or of a whole request (management-api 2.2), without fields of an unexpected type. */
function itemErrorOf({ statusCode, errorCode, detail, message }: JsonObject): ItemError {
  return {
    ...(typeof statusCode === "number" && { statusCode }),
    ...(typeof errorCode === "string" && { errorCode: cut(errorCode) }),
    ...(isJsonObject(detail) && { detail: cutFields(detail, 0) }),
    ...(message !== undefined && { message: cutDetail(message) }),
  };
}

/** Returns the messages of an error. The service sends one text or several (management-api 2.2). */
function messagesOf(body: unknown): readonly string[] {
  const texts = isJsonObject(body) ? [body.message].flat().filter((one) => typeof one === "string") : [];
  return texts.slice(0, MAX_ENTRIES).map(cut);
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

/** Reads an option with its Context IDs: a list that `listIn` reads, or none if `contextCount` is 0 or absent. */
export function optionWithContextsIn(body: unknown): OptionWithContexts | undefined {
  const record = optionIn(body);
  if (record === undefined) return undefined;
  const { contexts: given, ...option } = record;
  const contexts = given === undefined && (option.contextCount ?? 0) === 0 ? [] : listIn(given);
  return contexts?.every((context) => typeof context === "string") ? { option, contexts } : undefined;
}

/**
 * Reads a record, such as a targeting or an option. The record is the body or its field `data`. Drops optional fields
 * with an unexpected type.
 */
function recordIn<Schema extends z.ZodObject>(schema: Schema, body: unknown): z.output<Schema> | undefined {
  if (!isJsonObject(body)) return undefined;
  if (!("_id" in body)) return recordIn(schema, body.data);
  const first = schema.safeParse(body);
  if (first.success) return first.data;
  const atFault = new Set(first.error.issues.map((issue) => issue.path[0]));
  const second = schema.safeParse(Object.fromEntries(Object.entries(body).filter(([field]) => !atFault.has(field))));
  return second.success ? second.data : undefined;
}

interface Asked {
  readonly operation: Purpose;
  readonly route: string;
  readonly setBy?: string | undefined;
}

/** Returns the error for an answer whose status is not 2xx (management-api 4 rule 3, 4.2, 7.1, 7.2). */
export function errorOf({ operation, route, setBy }: Asked, answer: HttpAnswer): ApiError {
  const { statusCode, headers } = answer;
  const body = jsonIn(answer.body);
  const { errorCode, detail } = isJsonObject(body) ? itemErrorOf(body) : {};
  if (statusCode === 409 && errorCode === "CONTEXT_TARGETING_WRITE_IN_PROGRESS") {
    return new BusyError({ operation, statusCode, retryAfterMs: retryAfterIn(detail) });
  }
  if (statusCode === RATE_LIMITED) {
    return new BusyError({ operation, statusCode, retryAfterMs: retryAfter(headers) });
  }
  if (statusCode === PROXY_CREDENTIALS) {
    return new NotSentError({ operation, setBy, ...new ProxyError("credentials").failure });
  }
  if (statusCode < 300 || statusCode >= 500 || statusCode === 408) {
    const reason = `the service answered with status ${statusCode}`;
    return new AmbiguousError({ operation, reason, statusCode, setBy, messages: titleIn(answer) });
  }
  const about = { statusCode, operation, route, setBy };
  if (statusCode < 400) return new RejectedError({ ...about, kind: "redirect", messages: locationIn(headers) });
  if (isForeign(answer, body)) return new RejectedError({ ...about, kind: "foreign", messages: titleIn(answer) });
  const kind = kindOf(statusCode, errorCode);
  return new RejectedError({ ...about, kind, errorCode, detail, messages: messagesOf(body) });
}

/** Returns the error for a 2xx answer whose body cannot be read. A proxy or firewall may have sent it. */
function notUnderstood({ operation, setBy }: Asked, answer: HttpAnswer): AmbiguousError {
  const { statusCode } = answer;
  const messages = titleIn(answer);
  const network = messages.length > 0 ? "notTheService" : undefined;
  const reason = "the answer does not have the form of the API";
  return new AmbiguousError({ operation, reason, statusCode, setBy, network, messages });
}

const PROXY_CREDENTIALS = 407;
/**
 * The status that refuses a request as too large. An answer with it never counts as foreign, even if a proxy sends it:
 * the request is then split, and its parts may be accepted.
 */
const TOO_LARGE = 413;

/** Returns whether an error has a body that is not of the API, whose errors are JSON objects (management-api 2.2). */
function isForeign({ statusCode, body }: HttpAnswer, json: unknown): boolean {
  return statusCode !== TOO_LARGE && body.length > 0 && !isJsonObject(json);
}

function locationIn({ location }: HttpAnswer["headers"]): readonly string[] {
  return typeof location === "string" ? [cut(location)] : [];
}

const WHERE_TITLES_ARE = 65_536;

/** Returns the title of a page, or the first line of a text, that a proxy or firewall has sent. Empty for JSON. */
function titleIn({ body }: HttpAnswer): readonly string[] {
  const text = body.toString("utf8", 0, WHERE_TITLES_ARE);
  if (/^\s*[{["]/.test(text)) return [];
  const isPage = /^\s*<(?:!doctype|html|\?xml|head|body|title|!--)/i.test(text);
  const [, title = ""] = /<(?:title|h1)[^>]*>([^<]*)</i.exec(text) ?? [];
  const [firstLine = ""] = text.trim().split(/\r?\n/, 1);
  const words = (isPage ? title : firstLine).replaceAll(
    /&(amp|lt|gt|quot|#39|nbsp|mdash|ndash);/g,
    (_, name) => ENTITIES[name] ?? "",
  );
  const shown = words.replaceAll(/\s+/g, " ").trim();
  return shown === "" ? [] : [cut(shown)];
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  nbsp: " ",
  mdash: "—",
  ndash: "–",
};

/** Returns how long a 409 asks to wait: at most 2,000 milliseconds (management-api 4.2, 7.3). */
export function retryAfterIn(detail: ItemError["detail"]): number {
  return within(Number(detail?.retryAfterMs ?? 0), LIMITS.retryAfterMs.value);
}

function kindOf(statusCode: number, errorCode: string | undefined): RejectionKind {
  if (statusCode === 401) return "unauthorized";
  if (statusCode === 403) return "forbidden";
  if (statusCode === TOO_LARGE) return "tooLarge";
  if (statusCode === 404 || statusCode === 405) {
    return errorCode !== undefined && isErrorCode(errorCode) ? "business" : "wrongRoute";
  }
  if (statusCode === 400) return errorCode === undefined ? "validation" : "business";
  return statusCode === 409 && errorCode !== undefined ? "business" : "other";
}

/**
 * Returns how long the header `Retry-After` asks to wait, in milliseconds; 0 without the header. If the header is a
 * date, it is compared with the answer's own `Date`, because the clock of this machine may differ.
 */
export function retryAfter(headers: HttpAnswer["headers"]): number {
  const { "retry-after": given } = headers;
  if (typeof given !== "string") return 0;
  const asDate = Date.parse(given) - (serverTimeOf(headers) ?? Number.NaN);
  return within(/^\s*\d+(\.\d+)?\s*$/.test(given) ? Number(given) * 1000 : asDate, Number.MAX_SAFE_INTEGER);
}

function within(ms: number, most: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), most);
}

/** Returns the time of the service from the header `Date`, in milliseconds since 1970. Undefined without the header. */
export function serverTimeOf({ date }: HttpAnswer["headers"]): number | undefined {
  const time = typeof date === "string" ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

export interface CallParts {
  readonly parameters?: Readonly<Record<string, string | undefined>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal | undefined;
  readonly fence?: Fence | undefined;
  readonly timeoutMs?: number | undefined;
}

export interface Called {
  readonly asked: Asked;
  readonly answer: HttpAnswer;
}

/**
 * Sends a request. Returns the answer with any status. Throws the errors of Http.send, or a NotSentError if a parameter
 * of the path is missing.
 */
export async function call(http: Http, routes: RouteTable, operation: Operation, parts: CallParts): Promise<Called> {
  const { method, path: template } = routes[operation];
  const { parameters, query, ...given } = parts;
  const path = template.replace(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = parameters?.[name];
    if (value !== undefined) return encodeURIComponent(value);
    throw new NotSentError({ operation, reason: `the route ${method} ${template} needs a value for ${name}` });
  });
  const answer = await http.send({ operation, method, path: path + queryText(path, query), ...given });
  return { asked: { operation, route: `${method} ${path}`, setBy: http.setBy }, answer };
}

/** Reads a value from a 2xx answer. Throws an ApiError for any other status, or if the body cannot be read. */
export function valueIn<Value>({ asked, answer }: Called, read: (body: unknown) => Value | undefined): Value {
  if (!isSuccess(answer)) throw errorOf(asked, answer);
  const value = read(jsonIn(answer.body));
  if (value !== undefined) return value;
  throw notUnderstood(asked, answer);
}

export function isSuccess({ statusCode }: HttpAnswer): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function queryText(path: string, query: CallParts["query"] = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  if (pairs.length === 0) return "";
  return (path.includes("?") ? "&" : "?") + pairs.join("&");
}
