import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, errorOf, ROUTE } from "./service.ts";

const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

rule("audience-unreachable", async (service) => {
  const { audience } = await service.seed({ audience: [{ name: "Visitors" }] });
  const audienceId = at(audience, 0);
  const optionOfIt = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  expect(await service.send("GET", `/context-targeting/${audienceId}`)).toMatchObject({
    status: 404,
    body: { errorCode: "TARGETING_NOT_FOUND" },
  });
  expect(codes(await service.bulk(ROUTE.deleteTargetings, { ids: [audienceId] }))).toEqual(["TARGETING_NOT_FOUND"]);
  expect(codes(await service.bulk(ROUTE.deleteOptions, { ids: [optionOfIt] }))).toEqual([
    "TARGETING_CATEGORY_NOT_FOUND",
  ]);
});

rule("server-ids", async (service) => {
  const _id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const targeting = await service.create("News");
  expect(targeting).toMatch(ULID);
  const ids = await service.add(targeting, [{ name: "one" }, { name: "two" }]);
  expect([targeting, ...ids]).toEqual([targeting, ...ids].toSorted());
  expect(await service.send("POST", ROUTE.createTargetings, { items: [{ _id, name: "Sport" }] })).toMatchObject({
    status: 400,
    body: { message: ["items.0.property _id should not exist"] },
  });
  const option = { _id, targeting, name: "three" };
  expect(await service.send("POST", ROUTE.addOptions, { items: [option] })).toMatchObject({ status: 400 });
  expect((await service.list(targeting)).total).toBe(2);
});

rule("option-record", async (service) => {
  const targeting = await service.create("News");
  const [result] = await service.bulk(ROUTE.addOptions, {
    items: [{ targeting, name: "one", contexts: [" a ", "b", "a"] }],
  });
  expect(result).toEqual({
    index: 0,
    success: true,
    data: {
      _id: expect.stringMatching(ULID),
      targeting,
      name: "one",
      type: "atomic",
      contextCount: 2,
      createdAt: expect.stringMatching(TIME),
      updatedAt: expect.stringMatching(TIME),
    },
  });
});

rule("targeting-record", async (service) => {
  const options = [{ name: "group", children: [{ name: "sub 1" }, { name: "sub 2" }] }, { name: "one" }];
  const _id = await service.create("News", options);
  expect(await service.get(`/context-targeting/${_id}`)).toEqual({
    _id,
    name: "News",
    optionCount: 4,
    createdAt: expect.stringMatching(TIME),
    updatedAt: expect.stringMatching(TIME),
  });
});

rule("group-record", async (service) => {
  const targeting = await service.create("News");
  const item = { name: "group", contexts: ["a"], children: [{ name: "sub" }], exposeChildren: true };
  const [group = ""] = await service.add(targeting, [item]);
  const record = await service.get(`${ROUTE.options}/${group}`);
  expect(record).toMatchObject({ type: "collection", contextCount: 1, exposeChildren: true, childCount: 1 });
  const { items } = await service.list(targeting, `?parent=${group}`);
  expect(items).toMatchObject([{ name: "sub", type: "atomic", parent: group }]);
  expect(record.children).toEqual([at(items, 0)._id]);
  expect(items[0]).not.toHaveProperty("childCount");
});

rule("children-shown", async (service) => {
  const targeting = await service.create("News");
  const children = Array.from({ length: 60 }, (_, index) => ({ name: `sub ${index}` }));
  const [group = ""] = await service.add(targeting, [{ name: "group", children }]);
  const record = await service.get(`${ROUTE.options}/${group}`);
  const { items } = await service.list(targeting, `?parent=${group}`);
  expect(record.childCount).toBe(60);
  expect(record.children).toEqual(items.slice(0, 50).map(({ _id }) => _id));
});

rule("list-pages", async (service) => {
  const targeting = await service.create("News");
  const ids = await service.add(
    targeting,
    Array.from({ length: 7 }, (_, index) => ({ name: `option ${index}` })),
  );
  const shown = async (query: string) => (await service.list(targeting, query)).items.map(({ _id }) => _id);
  expect(await service.list(targeting, "?limit=2&offset=3")).toMatchObject({ total: 7 });
  expect(await shown("?limit=2&offset=3")).toEqual(ids.slice(3, 5));
  expect(await shown("?offset=6")).toEqual(ids.slice(6));
  expect(await shown("?offset=7")).toEqual([]);
  expect(await shown("")).toEqual(ids);
});

rule("list-parent", async (service) => {
  const targeting = await service.create("News");
  const [group] = await service.add(targeting, [
    { name: "group", type: "collection", contexts: ["a"] },
    { name: "one" },
  ]);
  const subs = await service.add(targeting, [
    { name: "sub 1", parent: group },
    { name: "sub 2", parent: group },
  ]);
  const { items, total } = await service.list(targeting, `?parent=${group}`);
  expect(items.map(({ _id }) => _id)).toEqual(subs);
  expect(total).toBe(2);
  expect((await service.list(targeting)).items.map(({ name }) => name)).toEqual(["group", "one"]);
});

rule("get-option-pages", async (service) => {
  const targeting = await service.create("News");
  const [option] = await service.add(targeting, [{ name: "one", contexts: ["a", "b", "c", "d"] }]);
  const page = await service.get(`${ROUTE.options}/${option}?limit=2&offset=1`);
  expect(page).toMatchObject({ _id: option, contextCount: 4, contexts: ["b", "c"] });
});

rule("several-targetings", async (service) => {
  const [first, second] = [await service.create("First"), await service.create("Second")];
  const items = [
    { targeting: first, name: "same" },
    { targeting: second, name: "same" },
  ];
  expect(codes(await service.bulk(ROUTE.addOptions, { items }))).toEqual(["ok", "ok"]);
});

rule("single-routes", async (service) => {
  const made = await service.send("POST", ROUTE.targetings, { name: "News" });
  expect(made).toMatchObject({ status: 200, body: { name: "News", optionCount: 0 } });
  const again = await service.bulk(ROUTE.createTargetings, { items: [{ name: "News" }] });
  const targeting = String(errorOf(again[0])?.detail?.existingId);
  const path = `/context-targeting/${targeting}`;
  expect(await service.send("PATCH", path, { name: "Sport" })).toMatchObject({ status: 200, body: { name: "Sport" } });
  const option = await service.send("POST", ROUTE.options, { targeting, name: "one" });
  expect(option).toMatchObject({ status: 200, body: { name: "one", targeting } });
  const optionPath = `${ROUTE.options}/${at((await service.list(targeting)).items, 0)._id}`;
  expect(await service.send("PATCH", optionPath, { contexts: { add: ["a"] } })).toMatchObject({
    status: 200,
    body: { contextCount: 1 },
  });
  expect(await service.send("DELETE", optionPath)).toMatchObject({ status: 200 });
  expect(await service.send("DELETE", optionPath)).toMatchObject({
    status: 404,
    body: { errorCode: "TARGETING_CATEGORY_NOT_FOUND" },
  });
  expect(await service.send("DELETE", path)).toMatchObject({ status: 200, body: { _id: targeting } });
  expect(await service.send("GET", path)).toMatchObject({ status: 404, body: { errorCode: "TARGETING_NOT_FOUND" } });
});

rule("bulk-body", async (service) => {
  const reply = await service.send("POST", ROUTE.createTargetings, { items: [{ name: "News" }, { name: "News" }] });
  expect(reply.body).toEqual({
    results: [
      { index: 0, success: true, data: expect.objectContaining({ name: "News" }) },
      {
        index: 1,
        success: false,
        error: { statusCode: 409, errorCode: "TARGETING_NAME_DUPLICATE", detail: { duplicateOfIndex: 0 } },
      },
    ],
    succeeded: 1,
    failed: 1,
  });
});

rule("delete-data", async (service) => {
  const targeting = await service.create("News");
  const [option] = await service.add(targeting, [{ name: "one" }]);
  expect(await service.bulk(ROUTE.deleteOptions, { ids: [option] })).toMatchObject([{ data: { _id: option } }]);
  const [deleted] = await service.bulk(ROUTE.deleteTargetings, { ids: [targeting] });
  expect(deleted).toEqual({ index: 0, success: true, data: { _id: targeting } });
});

rule("limit-list", async (service) => {
  const { targetings } = await service.seed({ targetings: [{ name: "News" }] });
  const targeting = at(targetings, 0);
  await service.seed({ options: Array.from({ length: 1001 }, (_, index) => ({ targeting, name: `option ${index}` })) });
  expect((await service.list(targeting)).items).toHaveLength(1000);
  expect((await service.list(targeting, "?limit=1000")).items).toHaveLength(1000);
  for (const limit of ["0", "1001", "-1", "1.5", "x", ""]) {
    expect(await service.send("GET", `/context-targeting/${targeting}/category?limit=${limit}`), limit).toMatchObject({
      status: 400,
    });
  }
});

rule("limit-get", async (service) => {
  const { targetings } = await service.seed({ targetings: [{ name: "News" }] });
  const contexts = Array.from({ length: 10_001 }, (_, index) => `c${index}`);
  const { options } = await service.seed({ options: [{ targeting: targetings[0], name: "one", contexts }] });
  const path = `${ROUTE.options}/${options[0]}`;
  expect((await service.get(path)).contexts).toEqual(contexts.slice(0, 10_000));
  expect((await service.get(`${path}?offset=10000`)).contexts).toEqual(contexts.slice(10_000));
  expect(await service.send("GET", `${path}?limit=10000&offset=50000`)).toMatchObject({ status: 200 });
  for (const query of ["limit=0", "limit=10001", "offset=50001", "offset=-1"]) {
    expect(await service.send("GET", `${path}?${query}`), query).toMatchObject({ status: 400 });
  }
});

rule("option-404", async (service) => {
  const [first, second] = [await service.create("First"), await service.create("Second")];
  const [group] = await service.add(first, [{ name: "group", type: "collection", contexts: ["a"] }]);
  const [option] = await service.add(second, [{ name: "one" }]);
  const unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const notFound = ["TARGETING_CATEGORY_NOT_FOUND"];
  const update = async (item: object) => codes(await service.bulk(ROUTE.updateOptions, { items: [item] }));
  const add = async (item: object) => codes(await service.bulk(ROUTE.addOptions, { items: [item] }));
  expect(await update({ _id: unknown, name: "two" })).toEqual(notFound);
  expect(await update({ _id: option, parent: group })).toEqual(notFound);
  expect(await add({ targeting: second, name: "two", parent: group })).toEqual(notFound);
  expect(await add({ targeting: second, name: "two", parent: unknown })).toEqual(notFound);
  expect(codes(await service.bulk(ROUTE.deleteOptions, { ids: [unknown, first] }))).toEqual([...notFound, ...notFound]);
  expect(await service.send("GET", `${ROUTE.options}/${unknown}`)).toMatchObject({ status: 404 });
  expect(await service.send("GET", `/context-targeting/${second}/category?parent=${group}`)).toMatchObject({
    status: 404,
    body: { errorCode: "TARGETING_CATEGORY_NOT_FOUND" },
  });
});

rule("targeting-404", async (service) => {
  await service.seed({ project: "other", keys: [{ key: "other-key" }] });
  const other = { "x-api-key": "other-key" };
  const targeting = await service.create("News");
  const missing = { status: 404, body: { errorCode: "TARGETING_NOT_FOUND" } };
  expect(await service.send("GET", `/context-targeting/${targeting}`, undefined, other)).toMatchObject(missing);
  expect(await service.send("GET", `/context-targeting/${targeting}/category`, undefined, other)).toMatchObject(
    missing,
  );
  const unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const items = [{ _id: unknown, name: "Sport" }];
  expect(codes(await service.bulk(ROUTE.renameTargetings, { items }))).toEqual(["TARGETING_NOT_FOUND"]);
  const added = await service.bulk(ROUTE.addOptions, { items: [{ targeting: unknown, name: "one" }] });
  expect(codes(added)).toEqual(["TARGETING_NOT_FOUND"]);
});
