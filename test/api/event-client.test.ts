import { expect, onTestFinished, test } from "vitest";
import { eventsOver } from "../../src/api/events.ts";
import { openHttp } from "../../src/api/http.ts";
import { routesWith } from "../../src/spec/routes.ts";
import { type Reply, startStub } from "../support/stub-server.ts";

async function stub(reply: Reply) {
  const { url, received } = await startStub(() => reply);
  const http = openHttp({ url, credential: { authorization: "app-key" }, requestTimeoutMs: 120_000 });
  onTestFinished(() => http.close());
  return { api: eventsOver(http, routesWith({})), received };
}

test("an event travels as it is, with the key in Authorization", async () => {
  const { api, received } = await stub({ status: 200, json: { message: "ok" } });
  expect(await api.track('{"uid":"ü"}')).toEqual({ statusCode: 200, message: "ok" });
  expect(received[0]).toMatchObject({ method: "POST", url: "/event", body: '{"uid":"ü"}' });
  expect(received[0]?.headers).toMatchObject({ authorization: "app-key", "content-type": "application/json" });
});

test.each([200, 400, 422, 500])("!invalid under status %i is an answer", async (status) => {
  const { api } = await stub({ status, json: { message: "!invalid" } });
  expect(await api.track("{}")).toEqual({ statusCode: status, message: "!invalid" });
});

test("a 2xx without a message is an answer", async () => {
  const { api } = await stub({ status: 202, text: "accepted" });
  expect(await api.track("{}")).toEqual({ statusCode: 202, message: undefined });
});

test.each([
  [401, { effect: "rejected", kind: "unauthorized" }],
  [403, { effect: "rejected", kind: "forbidden" }],
  [404, { effect: "rejected", kind: "wrongRoute" }],
  [307, { effect: "rejected", kind: "redirect" }],
  [400, { effect: "rejected", kind: "validation" }],
  [429, { effect: "busy", retryAfterMs: 0 }],
  [503, { effect: "ambiguous" }],
])("status %i is an error", async (status, error) => {
  const { api } = await stub({ status, json: {} });
  await expect(api.track("{}")).rejects.toMatchObject(error);
});
