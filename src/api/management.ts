import type { Fence } from "../platform/fence.ts";
import type { BulkResult, OptionPage, OptionWithContexts, TargetingRecord } from "../spec/records.ts";
import type { BulkOperation, RouteTable } from "../spec/routes.ts";
import { bulkResults, optionPageIn, optionWithContextsIn, targetingIn } from "./answers.ts";
import { type Called, call, valueIn } from "./calls.ts";
import type { Http } from "./http.ts";
import { serverTimeOf } from "./rejections.ts";

export interface BulkAnswer {
  readonly results: readonly BulkResult[];
  /** The service's clock when it answered (header `Date`), in milliseconds since 1970; absent if not sent. */
  readonly serverTime?: number;
}

/** The items of a bulk request, or the IDs of a deletion: exactly the bytes whose size was counted. */
export interface BulkItems {
  readonly count: number;
  /** A JSON array in UTF-8. */
  readonly json: Uint8Array;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** The time limit of this request in milliseconds, if it is lower than the general one. */
  readonly timeoutMs?: number;
  /** The maximum number of attempts, for a read that the caller can do without. */
  readonly mostTries?: number;
}

/** A page of the Context IDs of Get an Option (bounds: management-api 8.1). */
interface GetOptionQuery {
  readonly limit?: number;
  readonly offset?: number;
}

/** A page of List Options (bounds: management-api 8.1). */
interface ListOptionsQuery extends GetOptionQuery {
  readonly parent?: string;
}

/**
 * The management API: each call is one HTTP request, and every change is a bulk request. Throws an ApiError if there is
 * no value, and the signal's reason if it was aborted before the request left.
 */
export interface ManagementApi {
  /**
   * Sends one bulk request (management-api 2.3). `targetingId` fills a route that was overridden to contain the
   * targeting in its path; `fence` decides at the last moment whether the request may leave. Throws an AmbiguousError
   * if the results miss or repeat an index.
   */
  bulk(
    operation: BulkOperation,
    items: BulkItems,
    options?: RequestOptions & { readonly targetingId?: string; readonly fence?: Fence },
  ): Promise<BulkAnswer>;
  /** Opens a connection if none is idle, so that the next request leaves at once. Throws a NotSentError. */
  connect?(operation: BulkOperation): Promise<void>;
  /** The same API for one call, with its own limit of concurrent reads. Absent if reads share no limit. */
  forCall?(): ManagementApi;
  /** The current limit of concurrent reads. */
  readonly pace?: { readonly width: number };

  getTargeting(targetingId: string, options?: RequestOptions): Promise<TargetingRecord>;
  listOptions(targetingId: string, query?: ListOptionsQuery, options?: RequestOptions): Promise<OptionPage>;
  getOption(optionId: string, query?: GetOptionQuery, options?: RequestOptions): Promise<OptionWithContexts>;
}

/** One read of the API, without its options. */
type Read<Value> = (options?: RequestOptions) => Promise<Value>;

/** Returns the same API with each read wrapped by `around`. */
export function aroundReads(
  api: ManagementApi,
  around: <Value>(read: Read<Value>, options: RequestOptions | undefined) => Promise<Value>,
): ManagementApi {
  return {
    ...api,
    getTargeting: (id, options) => around((within) => api.getTargeting(id, within), options),
    listOptions: (id, query, options) => around((within) => api.listOptions(id, query, within), options),
    getOption: (id, query, options) => around((within) => api.getOption(id, query, within), options),
  };
}

/**
 * Returns the management API over HTTP (management-api 4). `spec/records.ts` assumes shapes that the documents do not
 * show.
 */
export function managementOver(http: Http, routes: RouteTable): ManagementApi {
  return {
    async bulk(operation, { count, json }, { signal, targetingId, fence } = {}) {
      const list = operation === "deleteTargetings" || operation === "deleteOptions" ? "ids" : "items";
      const body = Buffer.concat([Buffer.from(`{"${list}":`), json, Buffer.from("}")]);
      const called = await call(http, routes, operation, { parameters: { targetingId }, body, signal, fence });
      return { results: valueIn(called, (answer) => bulkResults(answer, count)), ...clockOf(called) };
    },
    connect: (operation) => http.connect(operation),
    async getTargeting(targetingId, { signal, timeoutMs } = {}) {
      const parts = { parameters: { targetingId }, signal, timeoutMs };
      return valueIn(await call(http, routes, "getTargeting", parts), targetingIn);
    },
    async listOptions(targetingId, { limit, offset, parent } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { targetingId }, query: { limit, offset, parent }, signal, timeoutMs };
      const called = await call(http, routes, "listOptions", parts);
      return { ...valueIn(called, optionPageIn), ...clockOf(called) };
    },
    async getOption(optionId, { limit, offset } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { optionId }, query: { limit, offset }, signal, timeoutMs };
      const called = await call(http, routes, "getOption", parts);
      return { ...valueIn(called, optionWithContextsIn), ...clockOf(called) };
    },
  };
}

function clockOf({ answer }: Called): { readonly serverTime?: number } {
  const serverTime = serverTimeOf(answer.headers);
  return serverTime === undefined ? {} : { serverTime };
}
