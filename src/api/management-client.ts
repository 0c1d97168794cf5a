import type { Operation, RouteTable } from "../spec/routes.ts";
import { bulkResults, optionIn, optionPageIn, optionWithContextsIn, targetingIn } from "./answers.ts";
import { type CallParts, call, valueIn } from "./calls.ts";
import type { Http } from "./http.ts";
import type { ManagementApi } from "./management.ts";
import { serverTimeOf } from "./rejections.ts";

/**
 * The management API over HTTP, by the routes in force (management-api 4; where the documents show no shape, as
 * `spec/records.ts` assumes).
 */
export function managementOver(http: Http, routes: RouteTable): ManagementApi {
  const ask = async <Value>(operation: Operation, read: (body: unknown) => Value | undefined, parts: CallParts) =>
    valueIn(await call(http, routes, operation, parts), read);
  return {
    async bulk(operation, { count, json }, { signal, targetingId, fence } = {}) {
      const list = operation === "deleteTargetings" || operation === "deleteOptions" ? "ids" : "items";
      const body = Buffer.concat([Buffer.from(`{"${list}":`), json, Buffer.from("}")]);
      const called = await call(http, routes, operation, { parameters: { targetingId }, body, signal, fence });
      const results = valueIn(called, (answer) => bulkResults(answer, count));
      const serverTime = serverTimeOf(called.answer.headers);
      return { results, ...(serverTime !== undefined && { serverTime }) };
    },

    connect: (operation) => http.connect(operation),

    createTargeting: (item, { signal } = {}) =>
      ask("createTargeting", targetingIn, { body: JSON.stringify(item), signal }),
    renameTargeting: (targetingId, name, { signal } = {}) =>
      ask("renameTargeting", targetingIn, { parameters: { targetingId }, body: JSON.stringify({ name }), signal }),
    deleteTargeting: (targetingId, { signal } = {}) =>
      ask("deleteTargeting", () => ({ _id: targetingId }), { parameters: { targetingId }, signal }),
    addOption: (item, { signal } = {}) =>
      ask("addOption", optionIn, { parameters: { targetingId: item.targeting }, body: JSON.stringify(item), signal }),
    updateOption: (optionId, changes, { signal } = {}) =>
      ask("updateOption", optionIn, { parameters: { optionId }, body: JSON.stringify(changes), signal }),
    deleteOption: (optionId, { signal } = {}) =>
      ask("deleteOption", () => ({ _id: optionId }), { parameters: { optionId }, signal }),

    getTargeting: (targetingId, { signal, timeoutMs } = {}) =>
      ask("getTargeting", targetingIn, { parameters: { targetingId }, signal, timeoutMs }),
    async listOptions(targetingId, { limit, offset, parent } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { targetingId }, query: { limit, offset, parent }, signal, timeoutMs };
      const called = await call(http, routes, "listOptions", parts);
      const serverTime = serverTimeOf(called.answer.headers);
      return { ...valueIn(called, optionPageIn), ...(serverTime !== undefined && { serverTime }) };
    },
    async getOption(optionId, { limit, offset } = {}, { signal, timeoutMs } = {}) {
      const parts = { parameters: { optionId }, query: { limit, offset }, signal, timeoutMs };
      const called = await call(http, routes, "getOption", parts);
      const serverTime = serverTimeOf(called.answer.headers);
      return { ...valueIn(called, optionWithContextsIn), ...(serverTime !== undefined && { serverTime }) };
    },
  };
}
