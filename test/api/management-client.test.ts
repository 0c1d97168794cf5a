import { describe, expect, onTestFinished, test } from "vitest";
import { type ApiError, isApiError } from "../../src/api/errors.ts";
import { openHttp } from "../../src/api/http.ts";
import { type BulkItems, type ManagementApi, managementOver } from "../../src/api/management.ts";
import { routesWith } from "../../src/spec/routes.ts";
import { closedPort, type Reply, startRaw, startStub } from "../support/stub-server.ts";

const TARGETING = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const OPTION = "01JABCDEFGHJKMNPQRSTVWXYZ1";
const KEY = "very-secret-key";

function open(url: string, routes: Record<string, string> = {}, requestTimeoutMs = 5000): ManagementApi {
  const http = openHttp({ url, credential: { "x-api-key": KEY }, requestTimeoutMs });
  onTestFinished(() => http.close());
  return managementOver(http, routesWith(routes));
}

async function stub(reply: Reply) {
  const { url, received } = await startStub(() => reply);
  return { api: open(url), received, url };
}

async function errorFrom(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise;
  } catch (thrown) {
    if (isApiError(thrown)) return thrown;
    throw thrown;
  }
  throw new Error("it did not fail");
}

const result = (index: number) => ({ index, success: true, data: { _id: OPTION } });

function items(texts: readonly string[]): BulkItems {
  return { count: texts.length, json: Buffer.from(`[${texts.join(",")}]`) };
}

describe("what travels", () => {
  test("a bulk request: method, path, key, and the entries byte for byte", async () => {
    const { api, received } = await stub({ status: 200, json: { results: [result(0), result(1)] } });
    await api.bulk("addOptions", items(['{ "name":"한글" }', '{"name":"b"}']));
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({
      method: "POST",
      url: "/context-targeting/category/bulk/create",
      body: '{"items":[{ "name":"한글" },{"name":"b"}]}',
    });
    expect(received[0]?.headers).toMatchObject({ "x-api-key": KEY, "content-type": "application/json" });
  });

  test.each([
    ["deleteTargetings", "/context-targeting/bulk/delete"],
    ["deleteOptions", "/context-targeting/category/bulk/delete"],
  ] as const)("%s sends ids", async (operation, url) => {
    const { api, received } = await stub({ status: 200, json: { results: [result(0)] } });
    await api.bulk(operation, items([`"${OPTION}"`]));
    expect(received[0]).toMatchObject({ url, body: `{"ids":["${OPTION}"]}` });
  });

  test("the base address may have a path and a trailing slash", async () => {
    const { url, received } = await startStub(() => ({ status: 200, json: { _id: TARGETING, name: "a" } }));
    await open(`${url}/v1/ads/`).getTargeting(TARGETING);
    expect(received[0]?.url).toBe(`/v1/ads/context-targeting/${TARGETING}`);
  });

  test("reads: query, no body, no content type", async () => {
    const { api, received } = await stub({ status: 200, json: [] });
    await api.listOptions(TARGETING, { limit: 10, offset: 20, parent: OPTION });
    expect(received[0]).toMatchObject({
      method: "GET",
      url: `/context-targeting/${TARGETING}/category?limit=10&offset=20&parent=${OPTION}`,
      body: "",
    });
    expect(received[0]?.headers).not.toHaveProperty("content-type");
  });

  test("an overridden route names the targeting in its path", async () => {
    const { url, received } = await startStub(() => ({ status: 200, json: { results: [result(0)] } }));
    const api = open(url, { addOptions: "POST /targetings/{targetingId}/options?v=2" });
    await api.bulk("addOptions", items(['{"name":"a"}']), { targetingId: TARGETING });
    expect(received[0]?.url).toBe(`/targetings/${TARGETING}/options?v=2`);
    expect(await errorFrom(api.bulk("addOptions", items(['{"name":"a"}'])))).toMatchObject({
      effect: "notSent",
      reason: expect.stringContaining("needs a value for targetingId"),
    });
    expect(received).toHaveLength(1);
  });

  test("connections are used again", async () => {
    const ports = new Set<number | undefined>();
    const { url } = await startStub(() => (response) => {
      ports.add(response.socket?.remotePort);
      response.end(JSON.stringify({ _id: TARGETING, name: "a" }));
    });
    const api = open(url);
    for (let count = 0; count < 5; count += 1) await api.getTargeting(TARGETING);
    expect(ports.size).toBeLessThan(5);
  });
});

describe("what is understood", () => {
  test("results in any order and any wrapping, with the service's clock", async () => {
    const headers = { date: "Sat, 01 Nov 2025 10:00:00 GMT" };
    const failed = {
      index: 1,
      success: false,
      error: { statusCode: 409, errorCode: "X", detail: { name: "관심사 é" } },
      more: 1,
    };
    for (const json of [
      { results: [failed, result(0)] },
      { data: { results: [failed, result(0)] } },
      [failed, result(0)],
    ]) {
      const { api } = await stub({ status: 207, json, headers });
      const answer = await api.bulk("addOptions", items(["{}", "{}"]));
      expect(answer.serverTime).toBe(Date.UTC(2025, 10, 1, 10));
      expect(answer.results).toEqual([
        result(0),
        { index: 1, success: false, error: { statusCode: 409, errorCode: "X", detail: { name: "관심사 é" } } },
      ]);
    }
  });

  test("5,000 results", async () => {
    const count = 5000;
    const { api } = await stub({ status: 200, json: { results: Array.from({ length: count }, (_, i) => result(i)) } });
    const answer = await api.bulk("addOptions", items(Array.from({ length: count }, () => "{}")));
    expect(answer.results.map((one) => one.index)).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  test.each([
    ["items", { items: [{ _id: OPTION, name: "a" }], total: 7 }, 7],
    ["results", { results: [{ _id: OPTION, name: "a" }] }, undefined],
    ["data", { data: [{ _id: OPTION, name: "a", createdAt: null, extra: true }] }, undefined],
    ["a bare array", [{ _id: OPTION, name: "a" }], undefined],
  ])("a list as %s", async (_shape, json, total) => {
    const { api } = await stub({ status: 200, json });
    const page = await api.listOptions(TARGETING);
    expect(page.items).toEqual([expect.objectContaining({ _id: OPTION, name: "a" })]);
    expect(page.total).toBe(total);
  });

  test("a targeting, also inside data", async () => {
    for (const json of [{ _id: TARGETING, name: "a" }, { data: { _id: TARGETING, name: "a" } }]) {
      const { api } = await stub({ status: 201, json });
      expect(await api.getTargeting(TARGETING)).toEqual({ _id: TARGETING, name: "a" });
    }
  });

  test("an option with its Context IDs", async () => {
    const { api } = await stub({
      status: 200,
      json: { _id: OPTION, name: "a", contextCount: 2, contexts: ["x", "y"] },
    });
    expect(await api.getOption(OPTION)).toMatchObject({
      option: { _id: OPTION, name: "a", contextCount: 2 },
      contexts: ["x", "y"],
    });
  });
});

describe("answers that say no", () => {
  test.each([
    [400, { statusCode: 400, message: ["a", "b"], error: "Bad Request" }, "validation"],
    [400, { statusCode: 400, errorCode: "TARGETING_LOCKED" }, "business"],
    [400, { statusCode: 400, errorCode: "SOMETHING_NEW" }, "business"],
    [404, { statusCode: 404, errorCode: "TARGETING_NOT_FOUND" }, "business"],
    [404, { statusCode: 404, errorCode: "PROJECT_NOT_FOUND" }, "business"],
    [404, { statusCode: 404, message: "Cannot POST /x" }, "wrongRoute"],
    [404, { statusCode: 404, errorCode: "NO_SUCH_ROUTE" }, "wrongRoute"],
    [405, {}, "wrongRoute"],
    [409, { statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE", detail: { existingId: "1" } }, "business"],
    [409, {}, "other"],
    [401, { message: "no" }, "unauthorized"],
    [403, { message: "no" }, "forbidden"],
    [413, { message: "large" }, "tooLarge"],
    [301, {}, "redirect"],
    [418, {}, "other"],
  ])("%i %j is rejected as %s", async (status, json, kind) => {
    const { api, received } = await stub({ status, json, headers: { location: "/elsewhere" } });
    const error = await errorFrom(api.bulk("createTargetings", items(["{}"])));
    expect(error).toMatchObject({ effect: "rejected", kind, statusCode: status });
    expect(received).toHaveLength(1);
  });

  test("a rejection keeps code, detail, messages and route", async () => {
    const business = { statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE", detail: { existingId: "1" } };
    const { api } = await stub({ status: 409, json: business });
    expect(await errorFrom(api.bulk("createTargetings", items(["{}"])))).toMatchObject({
      errorCode: "TARGETING_NAME_DUPLICATE",
      detail: { existingId: "1" },
      route: "POST /context-targeting/bulk/create",
    });
    const invalid = await stub({ status: 400, json: { message: "Validation failed (ulid is expected)" } });
    expect(await errorFrom(invalid.api.getTargeting("x"))).toMatchObject({
      kind: "validation",
      messages: ["Validation failed (ulid is expected)"],
    });
  });

  test.each([
    [1500, 1500],
    [0, 0],
    [-5, 0],
    [undefined, 0],
    ["soon", 0],
    [1e12, 2000],
  ])("a running write with retryAfterMs %j waits %i ms", async (retryAfterMs, wait) => {
    const json = { statusCode: 409, errorCode: "CONTEXT_TARGETING_WRITE_IN_PROGRESS", detail: { retryAfterMs } };
    const { api } = await stub({ status: 409, json });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "busy",
      retryAfterMs: wait,
    });
  });

  test.each([
    ["3", 3000],
    ["Sat, 01 Nov 2025 10:00:05 GMT", 5000],
    ["whenever", 0],
    ["86400", 86_400_000],
  ])("429 with Retry-After %s waits %i ms", async (after, wait) => {
    const headers = { "retry-after": after, date: "Sat, 01 Nov 2025 10:00:00 GMT" };
    const { api } = await stub({ status: 429, json: {}, headers });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "busy",
      retryAfterMs: wait,
    });
  });
});

describe("refusals that are not the service's", () => {
  const page = "<!DOCTYPE html><html><head><TITLE>\n Blocked &lt;by&gt; policy</TITLE></head></html>";
  test.each([
    [400, page, "Blocked <by> policy"],
    [401, page, "Blocked <by> policy"],
    [403, page, "Blocked <by> policy"],
    [404, page, "Blocked <by> policy"],
    [405, "<html><body><h1>405 Not Allowed</h1></body></html>", "405 Not Allowed"],
    [403, "RBAC: access denied", "RBAC: access denied"],
    [409, "upstream\nconflict", "upstream"],
  ])("%i with the body %j", async (status, text, title) => {
    const { api } = await stub({ status, text });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "rejected",
      kind: "foreign",
      statusCode: status,
      messages: [title],
    });
  });

  test.each([
    [413, page, "tooLarge"],
    [401, "", "unauthorized"],
    [403, "", "forbidden"],
    [404, "", "wrongRoute"],
    [403, JSON.stringify({ message: "Forbidden" }), "forbidden"],
  ])("%i with the body %j is %s", async (status, text, kind) => {
    const { api } = await stub({ status, text });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({ effect: "rejected", kind });
  });

  test("a page with status 200 leaves it open, and is named", async () => {
    const { api } = await stub({ status: 200, text: page });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "ambiguous",
      network: "notTheService",
      messages: ["Blocked <by> policy"],
    });
  });

  test("a 407 comes from a proxy, so that nothing was sent to the service", async () => {
    const { api } = await stub({ status: 407, text: page });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "notSent",
      network: "proxyCredentials",
    });
  });
});

describe("answers that leave it open", () => {
  test.each([500, 502, 503, 504, 599, 408])("status %i", async (status) => {
    const { api } = await stub({ status, json: { errorCode: "TARGETING_NOT_FOUND" } });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "ambiguous",
      statusCode: status,
    });
  });

  test.each([
    ["an index missing", [result(0)]],
    ["an index repeated", [result(0), result(0)]],
    ["an index unknown", [result(0), result(2)]],
    ["one too many", [result(0), result(1), result(2)]],
    ["no success", [result(0), { index: 1 }]],
    ["no list", { succeeded: 2 }],
  ])("results with %s", async (_case, results) => {
    const { api } = await stub({ status: 200, json: { results } });
    expect(await errorFrom(api.bulk("addOptions", items(["{}", "{}"])))).toMatchObject({ effect: "ambiguous" });
  });

  test.each(["", "<html>", '{"results":[{"ind'])("a 2xx with the body %j", async (text) => {
    const { api } = await stub({ status: 200, text });
    expect(await errorFrom(api.bulk("addOptions", items(["{}"])))).toMatchObject({ effect: "ambiguous" });
  });

  test.each([
    ["a reset", ""],
    ["half an answer", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"],
    ["garbage", "nonsense\r\n\r\n"],
  ])("%s after the request", async (_case, answer) => {
    const url = await startRaw((socket) =>
      socket.once("data", () => {
        socket.write(answer);
        socket.end();
      }),
    );
    expect(await errorFrom(open(url).bulk("addOptions", items(["{}"])))).toMatchObject({ effect: "ambiguous" });
  });

  test("no answer within the time limit, not even while bytes drip", async () => {
    const { url } = await startStub(() => (response) => {
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    });
    expect(await errorFrom(open(url, {}, 200).bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "ambiguous",
      reason: "its time limit of 200 ms passed",
    });
  });

  test("cancelled while under way", async () => {
    const stop = new AbortController();
    const { url } = await startStub(() => () => stop.abort());
    const error = await errorFrom(open(url).bulk("addOptions", items(["{}"]), { signal: stop.signal }));
    expect(error).toMatchObject({ effect: "ambiguous", reason: "the call was cancelled" });
  });
});

describe("requests that were not sent", () => {
  test("nobody listens", async () => {
    expect(await errorFrom(open(await closedPort()).bulk("addOptions", items(["{}"])))).toMatchObject({
      effect: "notSent",
      reason: "the connection was refused",
    });
  });

  test("TLS fails", async () => {
    const url = await startRaw((socket) => socket.once("data", () => socket.end("no TLS here")));
    const error = await errorFrom(open(url.replace("http:", "https:")).bulk("addOptions", items(["{}"])));
    expect(error.effect).toBe("notSent");
  });

  test("cancelled before it left: the signal's reason", async () => {
    const { api, received } = await stub({ status: 200, json: {} });
    const reason = new Error("enough");
    await expect(api.getTargeting(TARGETING, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(received).toHaveLength(0);
  });

  test("a key that no header can carry", async () => {
    const http = openHttp({ url: "http://127.0.0.1:1", credential: { "x-api-key": "a\nb" }, requestTimeoutMs: 1000 });
    onTestFinished(() => http.close());
    expect(await errorFrom(managementOver(http, routesWith({})).getTargeting(TARGETING))).toMatchObject({
      effect: "notSent",
      reason: expect.stringContaining("header"),
    });
  });
});

test("no error shows the key", async () => {
  const shown: string[] = [];
  for (const status of [302, 400, 401, 404, 409, 429, 500]) {
    const { api } = await stub({ status, json: {} });
    const error = await errorFrom(api.getTargeting(TARGETING));
    shown.push(JSON.stringify(error), error.message, String(error.stack));
  }
  expect(shown.join()).not.toContain(KEY);
});
