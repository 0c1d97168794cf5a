import type { Fence } from "../platform/fence.ts";
import type { BulkResult, OptionPage, OptionWithContexts, TargetingRecord } from "../spec/records.ts";
import type { BulkOperation, RouteTable } from "../spec/routes.ts";
import {
  bulkResults,
  type Called,
  call,
  optionPageIn,
  optionWithContextsIn,
  serverTimeOf,
  targetingIn,
  valueIn,
} from "./answers.ts";
import type { Http } from "./http.ts";

export interface BulkAnswer {
  readonly results: readonly BulkResult[];
  /** The time of the service in milliseconds since 1970 (header `Date`). Absent if the service sent none. */
  readonly serverTime?: number;
}

/** The items, or IDs, of a bulk request. They were serialized earlier to measure their size. */
export interface BulkItems {
  readonly count: number;
  /** A JSON array in UTF-8. */
  readonly json: Uint8Array;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /** How often a read is attempted at most. Set for reads that the caller can do without. */
  readonly mostTries?: number;
}

interface GetOptionQuery {
  readonly limit?: number;
  readonly offset?: number;
}

/** Bounds: management-api 8.1. With `parent`: sub-options of that group. */
interface ListOptionsQuery extends GetOptionQuery {
  readonly parent?: string;
}

/**
 * Each method sends one HTTP request, and every change is a bulk request. Throws an ApiError if the request fails, and
 * the signal's reason if it was aborted before it was sent.
 */
export interface ManagementApi {
  /**
   * Sends one bulk request (management-api 2.3). `targetingId` is for routes that need it. `fence` may stop the request
   * right before it is sent. Throws an AmbiguousError if the results miss or repeat an index.
   */
  bulk(
    operation: BulkOperation,
    items: BulkItems,
    options?: RequestOptions & { readonly targetingId?: string; readonly fence?: Fence },
  ): Promise<BulkAnswer>;
  /** Opens a connection if none is idle, so that the next request need not wait for one. Throws a NotSentError. */
  connect?(operation: BulkOperation): Promise<void>;
  /** Returns this API for one tool call, with its own limit of concurrent reads. Absent: no such limit. */
  forCall?(): ManagementApi;
  /** How many reads may currently run at a time. Absent: no such limit. */
  readonly pace?: { readonly width: number };

  getTargeting(targetingId: string, options?: RequestOptions): Promise<TargetingRecord>;
  listOptions(targetingId: string, query?: ListOptionsQuery, options?: RequestOptions): Promise<OptionPage>;
  getOption(optionId: string, query?: GetOptionQuery, options?: RequestOptions): Promise<OptionWithContexts>;
}

type Read<Value> = (options?: RequestOptions) => Promise<Value>;

/** Executes reads through `around`, for example with retries. */
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

/** Sends the requests of management-api 4. `spec/records.ts` has the shapes of the answers; some are assumed. */
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
