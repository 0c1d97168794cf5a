import { openHttp } from "../api/http.ts";
import { type Proxies, proxyFor } from "../settings/environment.ts";

/** The accepted signature algorithms. All are asymmetric, so the public key that verifies a token cannot create one. */
export const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

const FRESH_MS = 10 * 60_000;
/** For how many milliseconds an old value is used if a new one cannot be read. */
const USABLE_MS = 60 * 60_000;
/** The shortest pause between two attempts to read while an old value can still be used, in milliseconds. */
const PAUSE_MS = 30_000;
/** The shortest pause between two attempts to read if no value can be used, in milliseconds. */
const PAUSE_WITHOUT_MS = 5000;
const TIMEOUT_MS = 5000;
const LARGEST_ANSWER = 1_048_576;

/**
 * Thrown if the authorization server cannot be reached, or its answers cannot be used (the log says which). Tokens can
 * then be neither accepted nor refused.
 */
export class IssuerUnreachable extends Error {
  constructor(cause: unknown) {
    super("the authorization server cannot be used now; try again in a moment", { cause });
  }
}

export interface KeptRead<Value> {
  /** Returns the cached value or reads it. Throws an IssuerUnreachable if none is usable and reading (just) failed. */
  value(): Promise<Value>;
  /** Reads the value again, even if it is not old. Undefined if that fails, or if the last attempt was a moment ago. */
  newer(): Promise<Value | undefined>;
}

export function keptRead<Value>(read: () => Promise<Value>, failed: (reason: string) => void): KeptRead<Value> {
  let last: { readonly value: Value; readonly at: number } | undefined;
  let tried: { readonly at: number; readonly problem?: unknown } | undefined;
  let reading: Promise<Value> | undefined;
  const usable = () => (last !== undefined && ageOf(last) < USABLE_MS ? last : undefined);
  const isPausing = () => tried !== undefined && ageOf(tried) < (usable() ? PAUSE_MS : PAUSE_WITHOUT_MS);
  const readNow = async (): Promise<Value> => {
    tried = { at: Date.now() };
    try {
      const value = await read();
      last = { value, at: Date.now() };
      return value;
    } catch (problem) {
      tried = { at: Date.now(), problem };
      failed(reasonOf(problem));
      throw problem;
    } finally {
      reading = undefined;
    }
  };
  const readOnce = (): Promise<Value> => {
    reading ??= readNow();
    return reading;
  };
  return {
    async value() {
      const old = usable();
      const isRead = reading !== undefined;
      // Only the request that starts to read waits for the new value. All others get the old one in the meantime.
      if (old !== undefined && (ageOf(old) < FRESH_MS || isRead || isPausing())) return old.value;
      if (!isRead && isPausing()) throw new IssuerUnreachable(tried?.problem);
      try {
        return await readOnce();
      } catch (problem) {
        if (old === undefined) throw new IssuerUnreachable(problem);
        return old.value;
      }
    },
    async newer() {
      if (reading === undefined && isPausing()) return undefined;
      return readOnce().catch(() => undefined);
    },
  };
}

/** Returns the age of a value in ms. Infinity if it is from the future, because the clock was set back. */
function ageOf({ at }: { readonly at: number }): number {
  const age = Date.now() - at;
  return age < 0 ? Number.POSITIVE_INFINITY : age;
}

/** Returns the messages of an error and its causes. Nothing else of the error, because that may contain tokens. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return error.cause instanceof Error ? `${error.message}: ${reasonOf(error.cause)}` : error.message;
}

interface IssuerRequest {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Returns a `fetch` that uses the configured proxies, follows no redirects and closes each connection. */
export function issuerFetch(proxies: Proxies) {
  return async (address: string, { method, headers, body }: IssuerRequest): Promise<Response> => {
    const { origin, pathname, search } = new URL(address);
    const http = openHttp({
      url: origin,
      credential: headers,
      requestTimeoutMs: TIMEOUT_MS,
      largestAnswer: LARGEST_ANSWER,
      proxy: proxyFor(address, proxies),
    });
    try {
      const answer = await http.send({
        operation: "issuerKeys",
        method,
        path: pathname + search,
        ...(body instanceof URLSearchParams && { body: body.toString(), type: "application/x-www-form-urlencoded" }),
      });
      const given = Object.entries(answer.headers).flatMap(([name, value]): [string, string][] =>
        value === undefined ? [] : [[name, String(value)]],
      );
      const content = answer.body.length === 0 ? null : answer.body;
      return new Response(content, { status: answer.statusCode, headers: given });
    } finally {
      await http.close();
    }
  };
}
