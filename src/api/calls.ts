import type { Fence } from "../platform/fence.ts";
import type { Operation, RouteTable } from "../spec/routes.ts";
import { type Asked, errorOf, jsonIn, notUnderstood } from "./answers.ts";
import { NotSentError } from "./errors.ts";
import type { Http, HttpAnswer } from "./http.ts";

export interface CallParts {
  readonly parameters?: Readonly<Record<string, string | undefined>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  /** JSON, as a string or as UTF-8 bytes. */
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
 * Returns the answer whatever its status. Throws the errors of Http.send, and a NotSentError if a parameter is missing.
 */
export async function call(http: Http, routes: RouteTable, operation: Operation, parts: CallParts): Promise<Called> {
  const { method, path: template } = routes[operation];
  const path = !template.includes("{")
    ? template
    : template.replace(/\{(\w+)\}/g, (_whole, name: string) => {
        const value = parts.parameters?.[name];
        if (value === undefined) {
          throw new NotSentError({ operation, reason: `the route ${method} ${template} needs a value for ${name}` });
        }
        return encodeURIComponent(value);
      });
  const answer = await http.send({
    operation,
    method,
    path: path + queryText(path, parts.query),
    body: parts.body,
    signal: parts.signal,
    fence: parts.fence,
    timeoutMs: parts.timeoutMs,
  });
  return { asked: { operation, route: `${method} ${path}`, setBy: http.setBy }, answer };
}

/** Reads a value from a 2xx answer. Throws an ApiError for any other status or an unreadable body. */
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
