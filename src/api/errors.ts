import { HeldBackError } from "../platform/fence.ts";
import type { Operation } from "../spec/routes.ts";

/**
 * The purpose of a request: an operation of the two APIs, a look into a sandbox, or the keys of an authorization
 * server.
 */
export type Purpose = Operation | "sandboxEvents" | "issuerKeys" | "webhook";

/** Why a request failed, for people and for the journal. Never shown raw to an agent. */
interface Cause {
  readonly operation: Purpose;
  /** Our own words about what happened, e.g. "connection refused". */
  readonly reason: string;
  readonly statusCode?: number;
}

/** The request never left this machine, or never reached the service: nothing was applied. */
export class NotSentError extends Error {
  readonly effect = "notSent" as const;
  readonly statusCode: undefined;
  readonly reason: string;
  readonly operation: Purpose;
  constructor(cause: Cause, options?: ErrorOptions) {
    super(`${cause.operation} was not sent: ${cause.reason}`, options);
    this.reason = cause.reason;
    this.operation = cause.operation;
  }
}

/**
 * Why the service said no:
 * `business` an error of management-api 7.2; `validation` a 400 without a code; `tooLarge` 413; `unauthorized` 401;
 * `forbidden` 403; `wrongRoute` a 404 or 405 without a documented code; `redirect` a 3xx; `other` any other 4xx.
 */
export type RejectionKind =
  | "business"
  | "validation"
  | "tooLarge"
  | "unauthorized"
  | "forbidden"
  | "wrongRoute"
  | "redirect"
  | "other";

/** The service answered that it did nothing (management-api 4 rule 3, 7.1, 7.2). */
export class RejectedError extends Error {
  readonly effect = "rejected" as const;
  readonly kind: RejectionKind;
  readonly statusCode: number;
  readonly operation: Purpose;
  /** `METHOD /path` of the request, for messages about a wrong route. */
  readonly route: string;
  readonly errorCode: string | undefined;
  readonly detail: Readonly<Record<string, unknown>> | undefined;
  /** The service's own sentences about a validation error: foreign text. */
  readonly messages: readonly string[];
  constructor(
    rejection: Pick<RejectedError, "kind" | "statusCode" | "operation" | "route"> &
      Partial<Pick<RejectedError, "errorCode" | "detail" | "messages">>,
  ) {
    super(`${rejection.operation} was rejected: ${rejection.statusCode} ${rejection.errorCode ?? rejection.kind}`);
    this.kind = rejection.kind;
    this.statusCode = rejection.statusCode;
    this.operation = rejection.operation;
    this.route = rejection.route;
    this.errorCode = rejection.errorCode;
    this.detail = rejection.detail;
    this.messages = rejection.messages ?? [];
  }
}

/** Another write of the project is running (409), or the service asks for patience (429): nothing was applied. */
export class BusyError extends Error {
  readonly effect = "busy" as const;
  readonly statusCode: number;
  readonly operation: Purpose;
  /** How long to wait before sending again, in milliseconds, as the service says. */
  readonly retryAfterMs: number;
  constructor(busy: Pick<BusyError, "operation" | "statusCode" | "retryAfterMs">) {
    super(`${busy.operation} was not applied: another write is in progress`);
    this.operation = busy.operation;
    this.statusCode = busy.statusCode;
    this.retryAfterMs = busy.retryAfterMs;
  }
}

/** The request may or may not have been applied: a 5xx, a time-out, a reset, an answer that cannot be understood. */
export class AmbiguousError extends Error {
  readonly effect = "ambiguous" as const;
  readonly reason: string;
  readonly statusCode: number | undefined;
  readonly operation: Purpose;
  constructor(cause: Cause, options?: ErrorOptions) {
    super(`${cause.operation} may or may not have been applied: ${cause.reason}`, options);
    this.reason = cause.reason;
    this.statusCode = cause.statusCode;
    this.operation = cause.operation;
  }
}

/** Why a list cannot be read: its pages repeat, or it changed each time that it was read. */
export type ListProblem = "repeats" | "shifts";

const LIST_PROBLEMS: Readonly<Record<ListProblem, string>> = {
  repeats: "the service gives the same page of a list again",
  shifts: "the list changed each time that it was read",
};

/** Every page was answered, but the pages do not add up to one list. */
export class ListError extends AmbiguousError {
  readonly problem: ListProblem;
  constructor(operation: Purpose, problem: ListProblem) {
    super({ operation, reason: LIST_PROBLEMS[problem] });
    this.problem = problem;
  }
}

/** Everything that a request can end in besides a value: what is known about its effect. */
export type ApiError = NotSentError | RejectedError | BusyError | AmbiguousError;

/** Whether something thrown is an ApiError. */
export function isApiError(thrown: unknown): thrown is ApiError {
  return (
    thrown instanceof NotSentError ||
    thrown instanceof RejectedError ||
    thrown instanceof BusyError ||
    thrown instanceof AmbiguousError
  );
}

/** Our words for the codes of Node and undici; other codes are shown as they are. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EADDRINUSE: "the port of the embedded sandbox is in use",
  EPIPE: "the connection was closed while sending",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ENOTFOUND: "the host name is unknown",
  EAI_AGAIN: "the host name could not be looked up",
  UND_ERR_CONNECT_TIMEOUT: "no connection in time",
  UND_ERR_SOCKET: "the connection was closed before the answer was complete",
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "the answer is too large to read",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too large to read",
  UND_ERR_INVALID_ARG: "the request holds a header or a path that HTTP does not allow",
};

const TLS = /^(CERT_|ERR_TLS|ERR_SSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH)/;

/** We ended a request ourselves; the message is ours. */
export class StoppedError extends Error {}

/** Why a request ended without an answer, in our own words; never the text of a foreign error. */
export function connectionReason(cause: unknown): string {
  if (cause instanceof StoppedError || cause instanceof HeldBackError) return cause.message;
  const code = codeOf(cause);
  if (code === undefined) return "the connection failed";
  if (TLS.test(code)) return `a secure connection could not be made (${code})`;
  if (code.startsWith("HPE_")) return `the answer is not HTTP (${code})`;
  return REASONS[code] ?? `the connection failed (${code})`;
}

function codeOf(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null) return undefined;
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  return "cause" in cause ? codeOf(cause.cause) : undefined;
}
