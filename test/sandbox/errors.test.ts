import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, errorOf, idOf, ROUTE } from "./service.ts";

const UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const MIB = 1_048_576;

rule("validation-body", async (service) => {
  const items = [
    { name: "fine" },
    { name: "x" },
    { name: 5, extra: 1 },
    { name: "good", options: [{ name: "a_b" }, { name: "ok", contexts: ["", "y".repeat(257)] }] },
    "text",
  ];
  const reply = await service.send("POST", ROUTE.createTargetings, { items, other: true });
  expect(reply.status).toBe(400);
  expect(reply.body).toEqual({
    statusCode: 400,
    error: "Bad Request",
    message: [
      "items.1.name must be longer than or equal to 2 characters",
      "items.2.name must be a string",
      "items.2.property extra should not exist",
      expect.stringMatching(/^items\.3\.options\.0\.name must contain only/),
      "items.3.options.1.contexts.0 must not be empty",
      "items.3.options.1.contexts.1 must be at most 256 bytes",
      "items.4 must be an object",
      "property other should not exist",
    ],
  });
});

rule("validation-sentence", async (service) => {
  const sentence = { status: 400, body: { statusCode: 400, error: "Bad Request", message: expect.any(String) } };
  expect(await service.send("GET", "/context-targeting/not-a-ulid")).toMatchObject(sentence);
  expect(await service.send("PATCH", "/context-targeting/category/01arz3ndektsv4rrffq69g5fav", {})).toMatchObject(
    sentence,
  );
  expect(await service.sendText("POST", ROUTE.createTargetings, '{"items":[')).toMatchObject(sentence);
});

rule("business-body", async (service) => {
  const reply = await service.send("GET", `/context-targeting/${UNKNOWN}`);
  expect(reply.body).toEqual({
    statusCode: 404,
    errorCode: "TARGETING_NOT_FOUND",
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/),
  });
  expect(Date.parse(reply.headers.get("date") ?? "")).not.toBeNaN();
});

rule("server-error-body", async (service) => {
  await service.fault({ on: "read", kind: "status", status: 500 }, { on: "read", kind: "status", status: 502, nth: 2 });
  for (const statusCode of [500, 502]) {
    const { status, body } = await service.send("GET", `/context-targeting/${UNKNOWN}`);
    expect(status).toBe(statusCode);
    expect(body).toEqual({ statusCode, message: expect.any(String), error: expect.any(String) });
  }
  const refused = await service.send("GET", `/context-targeting/${UNKNOWN}`, undefined, { "x-api-key": "wrong" });
  expect(refused.body).toEqual({ statusCode: 401, message: expect.any(String) });
});

rule("processed-is-200", async (service) => {
  const results = await service.bulk(ROUTE.deleteTargetings, { ids: [UNKNOWN, UNKNOWN] });
  expect(codes(results)).toEqual(["TARGETING_NOT_FOUND", "TARGETING_NOT_FOUND"]);
});

rule("whole-400", async (service) => {
  const items = [{ name: "Good" }, { name: "b@d" }];
  const reply = await service.send("POST", ROUTE.createTargetings, { items });
  expect(reply.status).toBe(400);
  expect(reply.body).not.toHaveProperty("results");
  expect(reply.body).not.toHaveProperty("errorCode");
  expect(codes(await service.bulk(ROUTE.createTargetings, { items: [{ name: "Good" }] }))).toEqual(["ok"]);
});

rule("repeated-id", async (service) => {
  const targeting = await service.create("News");
  const [option] = await service.add(targeting, [{ name: "one" }]);
  const items = [
    { _id: option, name: "two" },
    { _id: option, contexts: { add: ["a"] } },
  ];
  expect(await service.send("POST", ROUTE.updateOptions, { items })).toMatchObject({
    status: 400,
    body: { message: ["items.1._id must be unique within the request"] },
  });
  expect(at((await service.list(targeting)).items, 0)).toMatchObject({ name: "one", contextCount: 0 });
});

rule("single-error", async (service) => {
  await service.create("News");
  expect(await service.send("POST", ROUTE.targetings, { name: "News" })).toMatchObject({
    status: 409,
    body: { statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE", detail: { existingId: expect.any(String) } },
  });
  await service.fault({ kind: "uncatched" });
  const unexpected = await service.send("POST", ROUTE.targetings, { name: "Sport" });
  expect(unexpected.status).toBe(502);
  expect(unexpected.body).not.toHaveProperty("errorCode");
});

rule("unknown-route", async (service) => {
  const unknown = [
    ["GET", "/", 404],
    ["GET", "/context-targetings", 404],
    ["POST", "/context-targeting/bulk/other", 404],
    ["GET", "/context-targeting", 405],
    ["PUT", ROUTE.createTargetings, 405],
    ["PUT", `/context-targeting/${UNKNOWN}`, 405],
    ["GET", "/event", 405],
  ] as const;
  for (const [method, path, status] of unknown) {
    const reply = await service.send(method, path);
    expect(reply, `${method} ${path}`).toMatchObject({ status });
    expect(reply.body).not.toHaveProperty("errorCode");
  }
});

rule("unknown-field", async (service) => {
  const targeting = await service.create("News");
  const [option] = await service.add(targeting, [{ name: "one" }]);
  const wrong = [
    [ROUTE.createTargetings, '{"items":[{"name":"Sport","__proto__":{"name":"x"}}]}'],
    [ROUTE.addOptions, `{"items":[{"targeting":"${targeting}","name":"two","constructor":1}]}`],
    [ROUTE.addOptions, `{"items":[{"targeting":"${targeting}","name":"two","contextCount":1}]}`],
    [ROUTE.updateOptions, `{"items":[{"_id":"${option}","type":"collection"}]}`],
    [ROUTE.updateOptions, `{"items":[{"_id":"${option}","contexts":{"put":["a"]}}]}`],
    [ROUTE.deleteOptions, `{"ids":["${option}"],"items":[]}`],
  ] as const;
  for (const [path, text] of wrong) {
    expect(await service.sendText("POST", path, text), text).toMatchObject({
      status: 400,
      body: { message: [expect.stringMatching(/should not exist$/)] },
    });
  }
  expect((await service.list(targeting)).total).toBe(1);
});

rule("unknown-query", async (service) => {
  const targeting = await service.create("News");
  const reply = await service.send("GET", `/context-targeting/${targeting}/category?page=2`);
  expect(reply).toMatchObject({ status: 400, body: { message: ["property page should not exist"] } });
});

rule("body-413", async (service) => {
  const big = JSON.stringify({ items: [{ name: "News" }], filler: "x".repeat(9 * MIB) });
  const reply = await service.sendText("POST", ROUTE.createTargetings, big);
  expect(reply).toMatchObject({ status: 413, body: { statusCode: 413, message: expect.any(String) } });
  expect(codes(await service.bulk(ROUTE.createTargetings, { items: [{ name: "News" }] }))).toEqual(["ok"]);
});

rule("body-8-mib", async (service) => {
  const body = JSON.stringify({ items: [{ name: "News" }] });
  const filled = body + " ".repeat(8 * MIB - body.length);
  expect((await service.sendText("POST", ROUTE.createTargetings, `${filled} `)).status).toBe(413);
  expect((await service.sendText("POST", ROUTE.createTargetings, filled)).status).toBe(200);
});

rule("set-alone", async (service) => {
  const targeting = await service.create("News");
  const [option] = await service.add(targeting, [{ name: "one" }]);
  for (const beside of ["add", "remove"]) {
    const items = [{ _id: option, contexts: { set: ["a"], [beside]: ["b"] } }];
    expect(await service.send("POST", ROUTE.updateOptions, { items })).toMatchObject({
      status: 400,
      body: { message: ["items.0.contexts must not have set together with add or remove"] },
    });
  }
});

rule("duplicate-of-index", async (service) => {
  const targeting = await service.create("News");
  const item = (fields: object) => ({ targeting, ...fields });
  const added = await service.bulk(ROUTE.addOptions, {
    items: [
      item({ name: "one" }),
      item({ name: "one" }),
      item({ name: "group", children: [{ name: "sub" }, { name: "sub" }] }),
      item({ name: "own", children: [{ name: "own" }] }),
      item({ name: "sub" }),
    ],
  });
  expect(added.map((result) => errorOf(result)?.detail)).toEqual([
    undefined,
    { duplicateOfIndex: 0 },
    { duplicateOfIndex: 2 },
    { duplicateOfIndex: 3 },
    { duplicateOfIndex: 2 },
  ]);
  const [first, second] = await service.add(targeting, [{ name: "two" }, { name: "three" }]);
  const updated = await service.bulk(ROUTE.updateOptions, {
    items: [
      { _id: first, name: "new" },
      { _id: second, name: "new" },
    ],
  });
  expect(errorOf(updated[1])).toEqual({
    statusCode: 409,
    errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE",
    detail: { duplicateOfIndex: 0 },
  });
});

rule("rename-repeated", async (service) => {
  const [first, second] = [await service.create("First"), await service.create("Second")];
  const results = await service.bulk(ROUTE.renameTargetings, {
    items: [
      { _id: first, name: "Third" },
      { _id: second, name: "Third" },
    ],
  });
  expect(errorOf(results[1])?.detail).toEqual({ existingId: first });
});

rule("audience-name", async (service) => {
  await service.seed({ audience: [{ name: "Visitors" }] });
  const targeting = await service.create("News");
  const created = await service.bulk(ROUTE.createTargetings, { items: [{ name: "Visitors" }] });
  expect(errorOf(created[0])).toEqual({ statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE" });
  const renamed = await service.bulk(ROUTE.renameTargetings, { items: [{ _id: targeting, name: "Visitors" }] });
  expect(errorOf(renamed[0])).toEqual({ statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE" });
});

rule("name-scopes", async (service) => {
  const [first, second] = [await service.create("First"), await service.create("Second")];
  const [group = ""] = await service.add(first, [{ name: "group", children: [{ name: "sub" }] }]);
  await service.add(second, [{ name: "group", children: [{ name: "sub" }] }]);
  const results = await service.bulk(ROUTE.addOptions, {
    items: [
      { targeting: first, name: "sub" },
      { targeting: first, name: "group", parent: group },
    ],
  });
  const sub = at((await service.list(first, `?parent=${group}`)).items, 0)._id;
  expect(results.map((result) => errorOf(result)?.detail)).toEqual([{ existingIds: [sub] }, { existingIds: [group] }]);
  const taken = await service.bulk(ROUTE.createTargetings, { items: [{ name: "First" }] });
  expect(errorOf(taken[0])?.detail).toEqual({ existingId: first });
});

rule("name-case", async (service) => {
  const results = await service.bulk(ROUTE.createTargetings, { items: [{ name: "News" }, { name: "NEWS" }] });
  expect(idOf(results[0])).not.toBe(idOf(results[1]));
});
