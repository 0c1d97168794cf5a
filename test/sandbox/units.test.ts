import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, errorOf, idOf, ROUTE } from "./service.ts";

const NOT_SUPPORTED = "TARGETING_CATEGORY_NOT_SUPPORTED";

rule("unit-partial", async (service) => {
  const created = await service.bulk(ROUTE.createTargetings, {
    items: [{ name: "News" }, { name: "Sport", options: [{ name: "g1", type: "collection" }] }, { name: "Music" }],
  });
  expect(codes(created)).toEqual(["ok", NOT_SUPPORTED, "ok"]);
  const targeting = idOf(created[0]);
  const added = await service.bulk(ROUTE.addOptions, {
    items: ["one", "two", "one"].map((name) => ({ targeting, name })),
  });
  expect(codes(added)).toEqual(["ok", "ok", "TARGETING_CATEGORY_NAME_DUPLICATE"]);
  const ids = [idOf(added[0]), targeting, idOf(added[1])];
  expect(codes(await service.bulk(ROUTE.deleteOptions, { ids }))).toEqual(["ok", "TARGETING_CATEGORY_NOT_FOUND", "ok"]);
  expect((await service.list(targeting)).total).toBe(0);
});

rule("unit-uncatched", async (service) => {
  const targeting = await service.create("News");
  await service.add(targeting, [{ name: "one" }]);
  const items = ["one", "two", "three"].map((name) => ({ targeting, name }));
  await service.fault({ kind: "uncatched", items: [2] });
  const results = await service.bulk(ROUTE.addOptions, { items });
  expect(codes(results)).toEqual(["TARGETING_CATEGORY_NAME_DUPLICATE", "UNCATCHED", "UNCATCHED"]);
  expect(errorOf(results[1])).toEqual({ statusCode: 500, errorCode: "UNCATCHED" });
  expect((await service.list(targeting)).total).toBe(1);
  await service.fault({ kind: "uncatched" }, { kind: "uncatched", nth: 2 });
  const ids = [targeting];
  expect(codes(await service.bulk(ROUTE.deleteTargetings, { ids }))).toEqual(["UNCATCHED"]);
  expect(codes(await service.bulk(ROUTE.createTargetings, { items: [{ name: "Sport" }] }))).toEqual(["UNCATCHED"]);
  expect(codes(await service.bulk(ROUTE.createTargetings, { items: [{ name: "Sport" }] }))).toEqual(["ok"]);
});

rule("item-by-item", async (service) => {
  const targeting = await service.create("News");
  const [one, two] = await service.add(targeting, [{ name: "one" }, { name: "two" }]);
  const results = await service.bulk(ROUTE.updateOptions, {
    items: [
      { _id: one, exposeChildren: true },
      { _id: two, name: "new" },
    ],
  });
  expect(codes(results)).toEqual([NOT_SUPPORTED, "ok"]);
  const renamed = await service.bulk(ROUTE.renameTargetings, {
    items: [
      { _id: one, name: "Sport" },
      { _id: targeting, name: "Music" },
    ],
  });
  expect(codes(renamed)).toEqual(["TARGETING_NOT_FOUND", "ok"]);
});

rule("item-uncatched", async (service) => {
  const targeting = await service.create("News");
  const ids = await service.add(targeting, [{ name: "one" }, { name: "two" }, { name: "three" }]);
  await service.fault({ kind: "uncatched", items: [1] });
  const items = ids.map((_id) => ({ _id, contexts: { add: ["a"] } }));
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "UNCATCHED", "ok"]);
  expect((await service.list(targeting)).items.map(({ contextCount }) => contextCount)).toEqual([1, 0, 1]);
});

rule("freed-name", async (service) => {
  const targeting = await service.create("News");
  const [one, two] = await service.add(targeting, [{ name: "one" }, { name: "two" }]);
  const items = [
    { _id: one, name: "three" },
    { _id: two, name: "one" },
  ];
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "ok"]);
  const other = await service.create("Sport");
  const renames = [
    { _id: targeting, name: "Music" },
    { _id: other, name: "News" },
  ];
  expect(codes(await service.bulk(ROUTE.renameTargetings, { items: renames }))).toEqual(["ok", "ok"]);
});

rule("freed-name-lost", async (service) => {
  const targeting = await service.create("News");
  const [one, two, three] = await service.add(targeting, [{ name: "one" }, { name: "two" }, { name: "three" }]);
  const items = [
    { _id: one, name: "three" },
    { _id: two, name: "one" },
  ];
  const results = await service.bulk(ROUTE.updateOptions, { items });
  expect(results.map((result) => errorOf(result)?.detail)).toEqual([{ existingIds: [three] }, { existingIds: [one] }]);
});

rule("name-not-yet-free", async (service) => {
  const targeting = await service.create("News");
  const [one, two] = await service.add(targeting, [{ name: "one" }, { name: "two" }]);
  const items = [
    { _id: one, name: "two" },
    { _id: two, name: "three" },
  ];
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual([
    "TARGETING_CATEGORY_NAME_DUPLICATE",
    "ok",
  ]);
});

rule("add-before-remove", async (service) => {
  const targeting = await service.create("News");
  const [one] = await service.add(targeting, [{ name: "one", contexts: ["a"] }]);
  await service.fault({ kind: "uncatched", addApplied: true });
  const items = [{ _id: one, contexts: { add: ["b"], remove: ["a"] } }];
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["UNCATCHED"]);
  expect((await service.get(`${ROUTE.options}/${one}`)).contexts).toEqual(["a", "b"]);
});

rule("context-not-yet-free", async (service) => {
  const targeting = await service.create("News");
  const [one, two] = await service.add(targeting, [
    { name: "one", type: "collection", contexts: ["a", "b"] },
    { name: "two", type: "collection", contexts: ["c"] },
  ]);
  const items = [
    { _id: one, contexts: { remove: ["a"] } },
    { _id: two, contexts: { add: ["a"] } },
  ];
  const results = await service.bulk(ROUTE.updateOptions, { items });
  expect(codes(results)).toEqual(["ok", "TARGETING_COLLECTION_CONTEXT_DUPLICATED"]);
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "ok"]);
});

rule("room-not-yet-free", async (service) => {
  const { targetings } = await service.seed({ targetings: [{ name: "News" }] });
  const contexts = Array.from({ length: 50_000 }, (_, index) => `c${index}`);
  const parts = [1, 2, 3, 4].map((part) => ({ targeting: targetings[0], name: `part ${part}`, contexts }));
  const { options } = await service.seed({ options: [...parts, { targeting: targetings[0], name: "one" }] });
  const items = [
    { _id: options[0], contexts: { remove: ["c1", "c2"] } },
    { _id: options[4], contexts: { add: ["a"] } },
  ];
  const first = await service.bulk(ROUTE.updateOptions, { items });
  expect(codes(first)).toEqual(["ok", "TARGETING_CONTEXT_LIMIT_EXCEEDED"]);
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "ok"]);
});

rule("arrival-not-yet-there", async (service) => {
  const targeting = await service.create("News");
  const [group, one] = await service.add(targeting, [{ name: "group", children: [{ name: "sub" }] }, { name: "one" }]);
  const sub = at((await service.list(targeting, `?parent=${group}`)).items, 0)._id;
  const items = [
    { _id: one, parent: group },
    { _id: sub, parent: null },
  ];
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", NOT_SUPPORTED]);
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "ok"]);
});

rule("resend-create", async (service) => {
  const targeting = await service.create("News");
  const again = await service.bulk(ROUTE.createTargetings, { items: [{ name: "News" }, { name: "Sport" }] });
  expect(errorOf(again[0])).toEqual({
    statusCode: 409,
    errorCode: "TARGETING_NAME_DUPLICATE",
    detail: { existingId: targeting },
  });
  expect(codes(again)[1]).toBe("ok");
});

rule("resend-add", async (service) => {
  const targeting = await service.create("News");
  const [one] = await service.add(targeting, [{ name: "one" }]);
  const items = ["one", "two"].map((name) => ({ targeting, name }));
  const again = await service.bulk(ROUTE.addOptions, { items });
  expect(errorOf(again[0])).toEqual({
    statusCode: 409,
    errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE",
    detail: { existingIds: [one] },
  });
  expect(codes(again)[1]).toBe("ok");
});

rule("resend-rename", async (service) => {
  const targeting = await service.create("News");
  const [one] = await service.add(targeting, [{ name: "one" }]);
  for (const _ of [1, 2]) {
    const renamed = await service.bulk(ROUTE.renameTargetings, { items: [{ _id: targeting, name: "Sport" }] });
    expect(renamed).toMatchObject([{ success: true, data: { _id: targeting, name: "Sport" } }]);
    const updated = await service.bulk(ROUTE.updateOptions, { items: [{ _id: one, name: "two" }] });
    expect(updated).toMatchObject([{ success: true, data: { _id: one, name: "two" } }]);
  }
});

rule("resend-contexts", async (service) => {
  const targeting = await service.create("News");
  const [one, two] = await service.add(targeting, [{ name: "one", contexts: ["a", "b"] }, { name: "two" }]);
  for (const _ of [1, 2]) {
    const items = [
      { _id: one, contexts: { add: ["a", " c "], remove: ["b", "missing"] } },
      { _id: two, contexts: { set: ["x", "y"] } },
    ];
    expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual(["ok", "ok"]);
    expect((await service.get(`${ROUTE.options}/${one}`)).contexts).toEqual(["a", "c"]);
    expect((await service.get(`${ROUTE.options}/${two}`)).contexts).toEqual(["x", "y"]);
  }
});

rule("resend-move", async (service) => {
  const targeting = await service.create("News");
  const [group, one] = await service.add(targeting, [
    { name: "group", type: "collection", contexts: ["a"] },
    { name: "one" },
  ]);
  for (const parent of [group, group, null, null]) {
    const results = await service.bulk(ROUTE.updateOptions, { items: [{ _id: one, parent }] });
    expect(codes(results)).toEqual(["ok"]);
    expect((await service.get(`${ROUTE.options}/${one}`)).parent).toBe(parent ?? undefined);
  }
});

rule("resend-expose", async (service) => {
  const targeting = await service.create("News");
  const [group] = await service.add(targeting, [{ name: "group", type: "collection", contexts: ["a"] }]);
  for (const _ of [1, 2]) {
    const results = await service.bulk(ROUTE.updateOptions, { items: [{ _id: group, exposeChildren: true }] });
    expect(results).toMatchObject([{ success: true, data: { exposeChildren: true } }]);
  }
});

rule("resend-delete", async (service) => {
  const targeting = await service.create("News");
  const ids = await service.add(targeting, [{ name: "one" }]);
  await service.bulk(ROUTE.deleteOptions, { ids });
  expect(errorOf((await service.bulk(ROUTE.deleteOptions, { ids }))[0])).toEqual({
    statusCode: 404,
    errorCode: "TARGETING_CATEGORY_NOT_FOUND",
  });
  await service.bulk(ROUTE.deleteTargetings, { ids: [targeting] });
  expect(errorOf((await service.bulk(ROUTE.deleteTargetings, { ids: [targeting] }))[0])).toEqual({
    statusCode: 404,
    errorCode: "TARGETING_NOT_FOUND",
  });
});
