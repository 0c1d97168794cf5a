import { expect } from "vitest";
import { rule } from "./rule.ts";
import { codes, errorOf, ROUTE, type SandboxService } from "./service.ts";

const create = (service: SandboxService, name: string) =>
  service.send("POST", ROUTE.createTargetings, { items: [{ name }] });

rule("writes-one-by-one", async (service) => {
  const targeting = await service.create("News");
  await service.seed({ project: "other", keys: [{ key: "other-key" }, { key: "other-key-2" }] });
  await service.control("POST", "/lock", { ms: 60_000 });
  expect((await create(service, "Sport")).status).toBe(409);
  expect((await service.send("PATCH", `/context-targeting/${targeting}`, { name: "Sport" })).status).toBe(409);
  expect((await service.send("DELETE", `/context-targeting/${targeting}`)).status).toBe(409);
  expect((await service.send("GET", `/context-targeting/${targeting}`)).status).toBe(200);
  const theirs = { "x-api-key": "other-key" };
  expect((await service.send("POST", ROUTE.targetings, { name: "Sport" }, theirs)).status).toBe(200);
});

rule(
  "lock-wait",
  async (service) => {
    await service.control("POST", "/lock", { ms: 50 });
    expect((await create(service, "News")).status).toBe(200);
  },
  { lockWaitMs: 10_000 },
);

rule("lock-409", async (service) => {
  await service.control("POST", "/lock", { ms: 60_000 });
  const reply = await create(service, "News");
  expect(reply).toMatchObject({
    status: 409,
    body: {
      statusCode: 409,
      errorCode: "CONTEXT_TARGETING_WRITE_IN_PROGRESS",
      detail: { retryAfterMs: expect.any(Number) },
    },
  });
  expect(reply.body).not.toHaveProperty("results");
  expect(reply.body).toHaveProperty("detail.retryAfterMs", 2000);
  expect(await service.control("GET", "/state")).toMatchObject({ body: { projects: [{ targetings: [] }] } });
});

rule("takeover", async (service) => {
  const targeting = await service.create("News");
  const ids = await service.add(targeting, [{ name: "one" }, { name: "two" }, { name: "three" }]);
  await service.fault({ kind: "takeover", from: 1, retryAfterMs: 70 });
  const items = ids.map((_id) => ({ _id, contexts: { add: ["a"] } }));
  const results = await service.bulk(ROUTE.updateOptions, { items });
  const taken = {
    statusCode: 409,
    errorCode: "CONTEXT_TARGETING_WRITE_IN_PROGRESS",
    detail: { retryAfterMs: 70 },
  };
  expect(results.map(errorOf)).toEqual([undefined, taken, taken]);
  expect((await service.list(targeting)).items.map(({ contextCount }) => contextCount)).toEqual([1, 0, 0]);
  await service.fault({ kind: "takeover" });
  expect(await service.send("POST", ROUTE.targetings, { name: "Sport" })).toMatchObject({ status: 409 });
});

rule("console-edits", async (service) => {
  const targeting = await service.create("News");
  const [one = ""] = await service.add(targeting, [{ name: "one" }]);
  await service.control("POST", "/lock", { ms: 60_000 });
  const { options } = await service.seed({ options: [{ targeting, name: "one" }] });
  await service.control("POST", "/seed", { targetings: [{ name: "News" }] });
  expect((await service.list(targeting)).items.map(({ _id }) => _id)).toEqual([one, ...options]);
});

rule("identical-creates", async (service) => {
  const replies = await Promise.all([create(service, "News"), create(service, "News"), create(service, "News")]);
  const made = replies.filter(({ body }) => JSON.stringify(body).includes('"succeeded":1'));
  expect(made).toHaveLength(1);
  const again = await service.bulk(ROUTE.createTargetings, { items: [{ name: "News" }] });
  expect(codes(again)).toEqual(["TARGETING_NAME_DUPLICATE"]);
});
