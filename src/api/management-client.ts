import type { RouteTable } from "../spec/routes.ts";
import { bulkResults, optionPageIn, optionWithContextsIn, targetingIn } from "./answers.ts";
import { type Called, call, valueIn } from "./calls.ts";
import type { Http } from "./http.ts";
import type { ManagementApi } from "./management.ts";
import { serverTimeOf } from "./rejections.ts";

/**
 * The management API over HTTP, by the routes in force (management-api 4; where the documents show no shape, as
 * `spec/records.ts` assumes).
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
