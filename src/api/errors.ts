import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";
import { defined } from "../platform/by-key.ts";
import { HeldBackError } from "../runs/turn.ts";
import type { Operation } from "../spec/routes.ts";

/**
 * The purpose of a request: an operation of the APIs, reading the events of a sandbox, reading the keys of an OAuth
 * issuer, or calling the approval webhook.
 */
export type Purpose = Operation | "sandboxEvents" | "issuerKeys" | "webhook";

/** Why a request failed. Shown to people and stored with the run. Agents get a text that is made from it. */
interface Cause extends NetworkFailure {
  readonly operation: Purpose;
  readonly statusCode?: number;
  readonly setBy?: string | undefined;
  readonly messages?: readonly string[];
}

/** A request without an answer that this server could read. */
class UnansweredError extends Error {
  readonly operation: Purpose;
  readonly reason: string;
  readonly network: NetworkCause | undefined;
  readonly setBy: string | undefined;
  constructor(what: string, { operation, reason, network, setBy }: Cause, options?: ErrorOptions) {
    super(`${operation} ${what}: ${reason}`, options);
    this.operation = operation;
    this.reason = reason;
    this.network = network;
    this.setBy = setBy;
  }
}

/** The request was not sent completely. Nothing was applied. */
export class NotSentError extends UnansweredError {
  readonly effect = "notSent" as const;
  readonly statusCode: undefined;
  constructor(cause: Cause, options?: ErrorOptions) {
    super("was not sent", cause, options);
  }
}

/**
 * Why a request was rejected. `business`: a 400 or 409 with a code, or a 404 or 405 with a documented one
 * (management-api 7.2). `validation`: a 400 without a code. `wrongRoute`: a 404 or 405 without a documented code.
 * `foreign`: a 4xx of a proxy or firewall, whose body is not in the form of the API. `other`: any other 4xx.
 */
export type RejectionKind =
  | "business"
  | "validation"
  | "tooLarge"
  | "unauthorized"
  | "forbidden"
  | "wrongRoute"
  | "redirect"
  | "foreign"
  | "other";

/** The service, a proxy or a firewall rejected the request. Nothing was applied (management-api 4 rule 3, 7.1, 7.2). */
export class RejectedError extends Error {
  readonly effect = "rejected" as const;
  readonly kind: RejectionKind;
  readonly statusCode: number;
  readonly operation: Purpose;
  readonly route: string;
  readonly errorCode: string | undefined;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  /** Foreign text: messages of the validation, the target of a redirect, or the title of a proxy's page. */
  readonly messages: readonly string[];
  readonly setBy: string | undefined;
  constructor(
    rejection: Pick<RejectedError, "kind" | "statusCode" | "operation" | "route"> &
      Partial<Pick<RejectedError, "errorCode" | "detail" | "messages" | "setBy">>,
  ) {
    super(`${rejection.operation} was rejected: ${rejection.statusCode} ${rejection.errorCode ?? rejection.kind}`);
    this.kind = rejection.kind;
    this.statusCode = rejection.statusCode;
    this.operation = rejection.operation;
    this.route = rejection.route;
    this.errorCode = rejection.errorCode;
    this.detail = rejection.detail;
    this.messages = rejection.messages ?? [];
    this.setBy = rejection.setBy;
  }
}

/** The service is busy with another write of the project (409) or limits requests (429). Nothing was applied. */
export class BusyError extends Error {
  readonly effect = "busy" as const;
  readonly statusCode: number;
  readonly operation: Purpose;
  /** How long the service asks to wait before the next attempt, in milliseconds. */
  readonly retryAfterMs: number;
  /** Whether this server sent nothing, because an earlier answer asked it to wait. */
  readonly isHeldBack: boolean;
  constructor(busy: Pick<BusyError, "operation" | "statusCode" | "retryAfterMs"> & { readonly isHeldBack?: boolean }) {
    const why = busy.statusCode === RATE_LIMITED ? "the service limits requests" : "another write is in progress";
    super(`${busy.operation} was not applied: ${why}`);
    this.operation = busy.operation;
    this.statusCode = busy.statusCode;
    this.retryAfterMs = busy.retryAfterMs;
    this.isHeldBack = busy.isHeldBack ?? false;
  }
}

export const RATE_LIMITED = 429;

/** It is unknown whether the request was applied: a 5xx, a time-out, a reset connection or an unreadable answer. */
export class AmbiguousError extends UnansweredError {
  readonly effect = "ambiguous" as const;
  readonly statusCode: number | undefined;
  readonly messages: readonly string[];
  constructor(cause: Cause, options?: ErrorOptions) {
    super("may or may not have been applied", cause, options);
    this.statusCode = cause.statusCode;
    this.messages = cause.messages ?? [];
  }
}

/** Why the pages of a list do not fit together: the service repeats one, or the list kept changing. */
export type ListProblem = "repeats" | "shifts";

const LIST_PROBLEMS: Readonly<Record<ListProblem, string>> = {
  repeats: "the service gives the same page of a list again",
  shifts: "the list changed each time that it was read",
};

/** The service answered every page of a list, but the pages do not fit together. */
export class ListError extends AmbiguousError {
  readonly problem: ListProblem;
  constructor(operation: Purpose, problem: ListProblem) {
    super({ operation, reason: LIST_PROBLEMS[problem] });
    this.problem = problem;
  }
}

export type ApiError = NotSentError | RejectedError | BusyError | AmbiguousError;

export function isApiError(thrown: unknown): thrown is ApiError {
  return (
    thrown instanceof NotSentError ||
    thrown instanceof RejectedError ||
    thrown instanceof BusyError ||
    thrown instanceof AmbiguousError
  );
}

/** Returns what `work` returns, or its error if that is an expected one. */
export async function orError<Value, Expected>(
  isExpected: (thrown: unknown) => thrown is Expected,
  work: Promise<Value>,
): Promise<Value | Expected> {
  try {
    return await work;
  } catch (thrown) {
    if (isExpected(thrown)) return thrown;
    throw thrown;
  }
}

/** Returns the fields of an error that are stored with a run. `answers/` turns them into sentences. */
export function problemOf(error: ApiError): Readonly<Record<string, unknown>> {
  const { effect, operation, statusCode } = error;
  const about = { effect, operation, ...defined({ statusCode }) };
  if (error instanceof BusyError) return { ...about, retryAfterMs: error.retryAfterMs };
  const all = "messages" in error ? error.messages : [];
  const more = { ...defined({ setBy: error.setBy }), ...(all.length > 0 && { messages: all.slice(0, 3) }) };
  if (error instanceof RejectedError) {
    const { kind, route, errorCode } = error;
    return { ...about, ...more, kind, route, ...defined({ errorCode }) };
  }
  const { reason, network } = error;
  return { ...about, ...more, reason, ...defined({ network }) };
}

/**
 * Why a connection failed. For each cause, `answers/request-messages.ts` suggests a different next step. `name`: the
 * host name was not found. `tls`: a secure connection failed for a reason that has no cause of its own here.
 * `notTheService`: a proxy or firewall answered.
 */
export type NetworkCause =
  | "name"
  | "refused"
  | "unreachable"
  | "untrusted"
  | "wrongHost"
  | "expired"
  | "noTls"
  | "tls"
  | "lost"
  | "notHttp"
  | "tooLarge"
  | "encoding"
  | "request"
  | "notTheService"
  | "sandboxPort"
  | "proxyUnreachable"
  | "proxyCredentials"
  | "proxyRefused";

/** Why a connection failed. `reason` is a text of this program. It quotes no message of another program. */
interface NetworkFailure {
  readonly reason: string;
  readonly network?: NetworkCause | undefined;
}

/** The cause and a description for the error codes of Node, OpenSSL and undici. */
const BY_CODE: Readonly<Record<string, readonly [NetworkCause, string]>> = {
  ENOTFOUND: ["name", "the host name is unknown"],
  EAI_AGAIN: ["name", "the host name could not be looked up"],
  EAI_FAIL: ["name", "the host name could not be looked up"],
  ECONNREFUSED: ["refused", "the connection was refused"],
  EADDRINUSE: ["sandboxPort", "the port of the embedded sandbox is in use"],
  ETIMEDOUT: ["unreachable", "the connection timed out"],
  EHOSTUNREACH: ["unreachable", "the host cannot be reached"],
  ENETUNREACH: ["unreachable", "the network cannot be reached"],
  UND_ERR_CONNECT_TIMEOUT: ["unreachable", "the connection was not made in time"],
  UNABLE_TO_GET_ISSUER_CERT: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  SELF_SIGNED_CERT_IN_CHAIN: ["untrusted", "the certificate is signed by an authority that Node does not know"],
  DEPTH_ZERO_SELF_SIGNED_CERT: ["untrusted", "the certificate is signed by itself, which Node does not trust"],
  CERT_UNTRUSTED: ["untrusted", "the certificate is signed by an authority that Node does not trust"],
  ERR_TLS_CERT_ALTNAME_INVALID: ["wrongHost", "the certificate is for another host name"],
  HOSTNAME_MISMATCH: ["wrongHost", "the certificate is for another host name"],
  CERT_HAS_EXPIRED: ["expired", "the certificate has expired"],
  CERT_NOT_YET_VALID: ["expired", "the certificate is not valid yet"],
  EPROTO: ["noTls", "the other end does not speak TLS as expected"],
  ERR_SSL_WRONG_VERSION_NUMBER: ["noTls", "the other end does not speak TLS"],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ["noTls", "the other end does not speak TLS"],
  ECONNRESET: ["lost", "the connection was reset"],
  EPIPE: ["lost", "the connection was closed while sending"],
  UND_ERR_SOCKET: ["lost", "the connection was closed before the answer was complete"],
  UND_ERR_RES_EXCEEDED_MAX_SIZE: ["tooLarge", "the answer is too large to read"],
  ERR_BUFFER_TOO_LARGE: ["tooLarge", "the answer is too large to read"],
  UND_ERR_HEADERS_OVERFLOW: ["tooLarge", "the answer's headers are too large to read"],
  UND_ERR_INVALID_ARG: ["request", "the request holds a header or a path that HTTP does not allow"],
};

const OTHER_TLS = /^(CERT_|ERR_TLS|ERR_SSL|INVALID_|UNABLE_TO_)/;

export class StoppedError extends Error {}

const PROXY_PROBLEMS = {
  unreachable: ["proxyUnreachable", "the proxy could not be reached"],
  credentials: ["proxyCredentials", "the proxy asks for a user and a password (407)"],
  refused: ["proxyRefused", "the proxy refused to connect to the service"],
} as const satisfies Record<string, readonly [NetworkCause, string]>;

/** The proxy was not reached, or refused the connection or the request. The service did not get the request. */
export class ProxyError extends Error {
  readonly failure: NetworkFailure;
  constructor(
    problem: keyof typeof PROXY_PROBLEMS,
    { statusCode, cause }: { readonly statusCode?: number; readonly cause?: unknown } = {},
  ) {
    const [network, words] = PROXY_PROBLEMS[problem];
    const why = cause === undefined ? undefined : networkFailure(cause).reason;
    const because = problem === "refused" ? `status ${statusCode}` : why;
    super(words, { cause });
    this.failure = { network, reason: because === undefined ? words : `${words}: ${because}` };
  }
}

export function networkFailure(cause: unknown): NetworkFailure {
  if (cause instanceof StoppedError || cause instanceof HeldBackError) return { reason: cause.message };
  if (cause instanceof ProxyError) return cause.failure;
  if (cause instanceof EncodingError) {
    return { network: "encoding", reason: "the answer is compressed in a way that cannot be read" };
  }
  const code = codeOf(cause);
  if (code === undefined) return { reason: "the connection failed" };
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  if (known !== undefined) {
    const [network, words] = known;
    return { network, reason: WITH_CODE.has(network) ? `${words} (${code})` : words };
  }
  if (OTHER_TLS.test(code)) return { network: "tls", reason: `a secure connection could not be made (${code})` };
  if (code.startsWith("HPE_")) return { network: "notHttp", reason: `the answer is not HTTP (${code})` };
  return { reason: `the connection failed (${code})` };
}

/** Of the causes in `BY_CODE`, those whose reason contains the error code, so that people can search the web for it. */
const WITH_CODE: ReadonlySet<NetworkCause> = new Set(["untrusted", "wrongHost", "expired", "noTls"]);

function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  // A host name may have several addresses, each of which failed. The first error is reported.
  if (cause instanceof AggregateError) return codeOf(cause.errors[0]);
  return "cause" in cause ? codeOf(cause.cause) : undefined;
}

type Decoder = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const wrapped: Decoder = promisify(inflate);
const bare: Decoder = promisify(inflateRaw);

/** The decoder for each content encoding. With `deflate`, some servers omit the zlib header of two bytes. */
const DECODERS: Readonly<Record<string, Decoder>> = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: (body, options) => (((body[0] ?? 0) & 0x0f) === 8 ? wrapped : bare)(body, options),
  br: promisify(brotliDecompress),
  identity: async (body) => body,
};

class EncodingError extends Error {
  readonly code = "ENCODING";
}

/**
 * Decompresses a body. Requests do not ask for compression, but some gateways compress answers anyway. `encodings` is
 * the header Content-Encoding. Throws if the body is broken, has an unknown encoding, or is larger than `largest` bytes
 * when decompressed.
 */
export async function decoded(body: Buffer, encodings: string, largest: number): Promise<Buffer> {
  let left = body;
  if (body.length === 0) return body;
  for (const encoding of encodings.toLowerCase().split(",").reverse()) {
    const name = encoding.trim();
    const decode = Object.hasOwn(DECODERS, name) ? DECODERS[name] : undefined;
    if (decode === undefined) throw new EncodingError();
    try {
      left = await decode(left, { maxOutputLength: largest });
    } catch (cause) {
      const isTooLarge = cause instanceof RangeError;
      throw isTooLarge ? cause : new EncodingError("the body is broken", { cause });
    }
  }
  return left;
}
