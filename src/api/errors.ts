import type { Operation } from "../spec/routes.ts";
import type { NetworkCause, NetworkFailure } from "./network-causes.ts";

/** An operation of the APIs, reading a sandbox, an OAuth issuer's keys, or the approval webhook. */
export type Purpose = Operation | "sandboxEvents" | "issuerKeys" | "webhook";

/** For people and the stored run. Agents read a rewritten text instead. */
interface Cause extends NetworkFailure {
  readonly operation: Purpose;
  readonly statusCode?: number;
  readonly setBy?: string | undefined;
  /** The title of the page of a proxy or firewall. Foreign text. */
  readonly messages?: readonly string[];
}

/** The request did not reach the service. Nothing was applied. */
export class NotSentError extends Error {
  readonly effect = "notSent" as const;
  readonly statusCode: undefined;
  readonly reason: string;
  readonly network: NetworkCause | undefined;
  readonly operation: Purpose;
  readonly setBy: string | undefined;
  constructor(cause: Cause, options?: ErrorOptions) {
    super(`${cause.operation} was not sent: ${cause.reason}`, options);
    this.reason = cause.reason;
    this.network = cause.network;
    this.operation = cause.operation;
    this.setBy = cause.setBy;
  }
}

/**
 * `business`: an error of management-api 7.2; `validation`: a 400 without a code; `wrongRoute`: a 404 or 405 without a
 * documented code; `foreign`: a 4xx of a proxy or firewall, whose body does not have the API's form; `other`: the
 * remaining 4xx.
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
  /** Foreign text: validation messages, the target of a redirect, or the title of a proxy's or firewall's page. */
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
  /** How long the service asks to wait before sending again. */
  readonly retryAfterMs: number;
  constructor(busy: Pick<BusyError, "operation" | "statusCode" | "retryAfterMs">) {
    const why = busy.statusCode === RATE_LIMITED ? "the service limits requests" : "another write is in progress";
    super(`${busy.operation} was not applied: ${why}`);
    this.operation = busy.operation;
    this.statusCode = busy.statusCode;
    this.retryAfterMs = busy.retryAfterMs;
  }
}

export const RATE_LIMITED = 429;

/** It is unknown whether the request was applied: a 5xx, a time-out, a reset connection or an unreadable answer. */
export class AmbiguousError extends Error {
  readonly effect = "ambiguous" as const;
  readonly reason: string;
  readonly network: NetworkCause | undefined;
  readonly statusCode: number | undefined;
  readonly operation: Purpose;
  readonly setBy: string | undefined;
  readonly messages: readonly string[];
  constructor(cause: Cause, options?: ErrorOptions) {
    super(`${cause.operation} may or may not have been applied: ${cause.reason}`, options);
    this.reason = cause.reason;
    this.network = cause.network;
    this.statusCode = cause.statusCode;
    this.operation = cause.operation;
    this.setBy = cause.setBy;
    this.messages = cause.messages ?? [];
  }
}

/** The service repeats a page, or the list changed during every attempt. */
export type ListProblem = "repeats" | "shifts";

const LIST_PROBLEMS: Readonly<Record<ListProblem, string>> = {
  repeats: "the service gives the same page of a list again",
  shifts: "the list changed each time that it was read",
};

/** The service answered every page of a list, but the pages do not form one list. */
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

/** Returns the fields that are stored with a run. `answers/` turns them into sentences. */
export function problemOf(error: ApiError): Readonly<Record<string, unknown>> {
  const { effect, operation, statusCode } = error;
  const about = { effect, operation, ...(statusCode !== undefined && { statusCode }) };
  if (error instanceof BusyError) return { ...about, retryAfterMs: error.retryAfterMs };
  const { messages: all = [], setBy } = "messages" in error ? error : { setBy: error.setBy };
  const more = { ...(setBy !== undefined && { setBy }), ...(all.length > 0 && { messages: all.slice(0, 3) }) };
  if (error instanceof RejectedError) {
    const { kind, route, errorCode } = error;
    return { ...about, ...more, kind, route, ...(errorCode !== undefined && { errorCode }) };
  }
  const { reason, network } = error;
  return { ...about, ...more, reason, ...(network !== undefined && { network }) };
}
