import { openHttp } from "../api/http.ts";
import { type Proxies, proxyFor } from "../settings/environment.ts";

/** Only asymmetric signatures: the key that verifies a token cannot create one. */
export const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];

/** How long a read value is used before it is read again, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** How long a read value is used while it cannot be read again, in milliseconds. */
const USABLE_MS = 60 * 60_000;
/** The minimum time between two reads, successful or not: while there is a usable value, and while there is none. */
const PAUSE_MS = 30_000;
const PAUSE_WITHOUT_MS = 5000;
const TIMEOUT_MS = 5000;
/** Answers with more bytes are not read. */
const LARGEST_ANSWER = 1_048_576;

/** The authorization server cannot be read, so nothing can be verified with what it publishes. */
export class IssuerUnreachable extends Error {
  constructor(cause: unknown) {
    super("the authorization server cannot be read now; try again", { cause });
  }
}

/** A value that is read from the authorization server. */
export interface KeptRead<Value> {
  /** The current value, read if needed. Throws an IssuerUnreachable without a usable value, and during a pause. */
  value(): Promise<Value>;
  /** Reads the value again; undefined during a pause, and if it cannot be read. */
  newer(): Promise<Value | undefined>;
}

/** Caches the result of `read`, and reads no more often than the pauses allow. `failed` receives each failure. */
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
      // One request waits for the new value; the others continue with the old one.
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
      // `failed` has received the reason.
      return readOnce().catch(() => undefined);
    },
  };
}

/** Returns the age of something. A time in the future, after the clock was set back, counts as the maximum age. */
function ageOf({ at }: { readonly at: number }): number {
  const age = Date.now() - at;
  return age < 0 ? Number.POSITIVE_INFINITY : age;
}

/** The message of an error, with the errors that caused it. Its other fields may contain tokens and are omitted. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return error.cause instanceof Error ? `${error.message}: ${reasonOf(error.cause)}` : error.message;
}

/** A request to the authorization server. */
interface IssuerRequest {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Sends requests to the authorization server through the configured proxies. Keeps no connection, because they are
 * rare, and follows no redirects.
 */
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
