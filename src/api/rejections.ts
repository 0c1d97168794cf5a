import { isJsonObject } from "../platform/json.ts";
import { isErrorCode } from "../spec/error-codes.ts";
import { LIMITS } from "../spec/limits.ts";
import type { ItemError } from "../spec/records.ts";
import { cut, itemErrorOf, jsonIn, messagesOf } from "./answers.ts";
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
import type { HttpAnswer } from "./http.ts";

export interface Asked {
  readonly operation: Purpose;
  readonly route: string;
  readonly setBy?: string | undefined;
}

/** Returns the error for an answer that is not 2xx (management-api 4 rule 3, 4.2, 7.1, 7.2). */
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

/** Returns the error for a 2xx answer with an unreadable body, which a proxy or firewall may have sent. */
export function notUnderstood({ operation, setBy }: Asked, answer: HttpAnswer): AmbiguousError {
  const { statusCode } = answer;
  const messages = titleIn(answer);
  const network = messages.length > 0 ? "notTheService" : undefined;
  const reason = "the answer does not have the form of the API";
  return new AmbiguousError({ operation, reason, statusCode, setBy, network, messages });
}

/** A proxy answers this if it requires a user and a password. */
const PROXY_CREDENTIALS = 407;
/** A proxy may answer this to a large body. Smaller requests then pass. */
const TOO_LARGE = 413;

/** The API's errors are JSON objects (management-api 2.2). */
function isForeign({ statusCode, body }: HttpAnswer, json: unknown): boolean {
  return statusCode !== TOO_LARGE && body.length > 0 && !isJsonObject(json);
}

function locationIn({ location }: HttpAnswer["headers"]): readonly string[] {
  return typeof location === "string" ? [cut(location)] : [];
}

const WHERE_TITLES_ARE = 65_536;

/** The title of an HTML page of a proxy or firewall, or the first line of its text. Empty for JSON. */
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

/** How long a 409 asks to wait, in milliseconds, at most 2,000 (management-api 4.2, 7.3). */
export function retryAfterIn(detail: ItemError["detail"]): number {
  return within(Number(detail?.retryAfterMs ?? 0), LIMITS.retryAfterMs.value);
}

function kindOf(statusCode: number, errorCode: string | undefined): RejectionKind {
  if (statusCode === 401) return "unauthorized";
  if (statusCode === 403) return "forbidden";
  if (statusCode === 413) return "tooLarge";
  if (statusCode === 404 || statusCode === 405) {
    return errorCode !== undefined && isErrorCode(errorCode) ? "business" : "wrongRoute";
  }
  if (statusCode === 400) return errorCode === undefined ? "validation" : "business";
  return statusCode === 409 && errorCode !== undefined ? "business" : "other";
}

/** Returns the wait in milliseconds; 0 without the header. A date is compared with the answer's `Date` header. */
export function retryAfter(headers: HttpAnswer["headers"]): number {
  const { "retry-after": given } = headers;
  if (typeof given !== "string") return 0;
  const asDate = Date.parse(given) - (serverTimeOf(headers) ?? Number.NaN);
  return within(/^\s*\d+(\.\d+)?\s*$/.test(given) ? Number(given) * 1000 : asDate, Number.MAX_SAFE_INTEGER);
}

function within(ms: number, most: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), most);
}

/** Returns milliseconds since 1970; undefined without a `Date` header. */
export function serverTimeOf({ date }: HttpAnswer["headers"]): number | undefined {
  const time = typeof date === "string" ? Date.parse(date) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
