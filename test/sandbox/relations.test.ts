import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, errorOf, ROUTE, type SandboxService } from "./service.ts";

const POLICY = "AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED";

/** A targeting with `count` seeded top-level options. */
async function targetingWith(service: SandboxService, count: number, name = "News") {
  const { targetings } = await service.seed({ targetings: [{ name }] });
  const targeting = at(targetings, 0);
  const { options } = await service.seed({
    options: Array.from({ length: count }, (_, index) => ({ targeting, name: `option ${index}` })),
  });
  return { targeting, options };
}

rule("product-limit-add", async (service) => {
  const { targeting, options } = await targetingWith(service, 499);
  const other = await service.create("Other");
  const { products } = await service.seed({
    products: [
      { name: "Banner", required: { include: options }, newOptions: { exclude: [targeting] } },
      { name: "Video", newOptions: { include: [targeting] } },
    ],
  });
  const [group] = await service.add(other, [{ name: "group", type: "collection", contexts: ["own"] }]);
  const item = (name: string, more = {}) => ({ targeting, name, ...more });
  const results = await service.bulk(ROUTE.addOptions, {
    items: [
      item("new 1"),
      item("new 2"),
      item("option 0"),
      { targeting: other, name: "elsewhere" },
      { targeting: other, name: "below", parent: group },
    ],
  });
  const exceeded = { statusCode: 400, errorCode: POLICY, detail: { limit: 500, count: 501, products: [products[0]] } };
  expect(results.map(errorOf).slice(0, 2)).toEqual([exceeded, exceeded]);
  expect(codes(results).slice(2)).toEqual(["TARGETING_CATEGORY_NAME_DUPLICATE", "ok", "ok"]);
  expect(codes(await service.bulk(ROUTE.addOptions, { items: [item("new 1")] }))).toEqual(["ok"]);
  expect(codes(await service.bulk(ROUTE.addOptions, { items: [item("new 2")] }))).toEqual([POLICY]);
});

rule("product-limit-detach", async (service) => {
  const { targeting, options } = await targetingWith(service, 498);
  const group = { name: "group", type: "collection", contexts: ["own"], children: [{ name: "s1" }, { name: "s2" }] };
  const [groupId = ""] = await service.add(targeting, [group]);
  const subs = (await service.list(targeting, `?parent=${groupId}`)).items.map(({ _id }) => _id);
  const { products } = await service.seed({
    products: [{ name: "Banner", required: { include: options, exclude: [groupId] } }],
  });
  const detach = async (_id: string) => service.bulk(ROUTE.updateOptions, { items: [{ _id, parent: null }] });
  expect(codes(await detach(at(subs, 0)))).toEqual(["ok"]);
  expect(errorOf((await detach(at(subs, 1)))[0])).toEqual({
    statusCode: 400,
    errorCode: POLICY,
    detail: { limit: 500, count: 501, products },
  });
  // The detached option is now in use itself, so it cannot move back.
  const back = await service.bulk(ROUTE.updateOptions, { items: [{ _id: subs[0], parent: groupId }] });
  expect(codes(back)).toEqual(["TARGETING_CATEGORY_LOCKED"]);
});

rule("product-limit-delete", async (service) => {
  const { targeting, options } = await targetingWith(service, 499);
  const group = { name: "group", children: [{ name: "s1" }, { name: "s2" }] };
  const [groupId = ""] = await service.add(targeting, [group]);
  const [sub] = (await service.list(targeting, `?parent=${groupId}`)).items;
  const { products } = await service.seed({
    products: [{ name: "Banner", required: { include: [...options, groupId] } }],
  });
  const results = await service.bulk(ROUTE.deleteOptions, { ids: [groupId] });
  expect(results.map(errorOf)).toEqual([
    { statusCode: 400, errorCode: POLICY, detail: { limit: 500, count: 501, products } },
  ]);
  expect(codes(await service.bulk(ROUTE.deleteOptions, { ids: [groupId, sub?._id] }))).toEqual(["ok", "ok"]);
  const left = (await service.list(targeting, "?offset=499")).items;
  expect(left).toMatchObject([{ name: "s2" }]);
  const [other] = await service.add(targeting, [{ name: "other", type: "collection", contexts: ["own"] }]);
  const moved = await service.bulk(ROUTE.updateOptions, { items: [{ _id: at(left, 0)._id, parent: other }] });
  expect(codes(moved)).toEqual(["TARGETING_CATEGORY_LOCKED"]);
});

rule("option-locked", async (service) => {
  const { targeting, options } = await targetingWith(service, 5);
  const [group] = await service.add(targeting, [{ name: "group", type: "collection", contexts: ["own"] }]);
  const [required, excluded, planned, ended, free] = options;
  await service.seed({
    products: [{ name: "Banner", required: { include: [required], exclude: [excluded] } }],
    campaigns: [
      { approved: false, ended: false, options: [planned] },
      { approved: true, ended: true, options: [ended] },
    ],
  });
  const items = [required, excluded, planned, ended, free].map((_id) => ({ _id, parent: group }));
  const locked = "TARGETING_CATEGORY_LOCKED";
  expect(codes(await service.bulk(ROUTE.updateOptions, { items }))).toEqual([locked, locked, locked, "ok", "ok"]);
});

rule("targeting-locked", async (service) => {
  const [running, planned, ended] = [
    await targetingWith(service, 1, "Running"),
    await targetingWith(service, 1, "Planned"),
    await targetingWith(service, 1, "Ended"),
  ];
  await service.seed({
    campaigns: [
      { approved: true, ended: false, options: running.options },
      { approved: false, ended: false, options: planned.options },
      { approved: true, ended: true, options: ended.options },
    ],
  });
  const ids = [running, planned, ended].map(({ targeting }) => targeting);
  expect(codes(await service.bulk(ROUTE.deleteTargetings, { ids }))).toEqual(["TARGETING_LOCKED", "ok", "ok"]);
  expect((await service.list(running.targeting)).total).toBe(1);
});

rule("tree-items", async (service) => {
  const targeting = await service.create("News");
  const children = Array.from({ length: 149 }, (_, index) => ({ name: `sub ${index}` }));
  const [group = "", own = "", regular = ""] = await service.add(targeting, [
    { name: "group", children },
    { name: "own", type: "collection", contexts: ["a"] },
    { name: "regular" },
  ]);
  const subs = (await service.list(targeting, `?parent=${group}`)).items.map(({ _id }) => _id);
  const reply = await service.send("POST", ROUTE.deleteOptions, { ids: [group, own, regular, ...subs] });
  expect(reply).toMatchObject({
    status: 400,
    body: {
      statusCode: 400,
      errorCode: "TARGETING_CATEGORY_TREE_ITEMS_LIMIT_EXCEEDED",
      detail: { limit: 150, count: 151 },
    },
  });
  expect(reply.body).not.toHaveProperty("results");
  const results = await service.bulk(ROUTE.deleteOptions, { ids: [group, regular, ...subs] });
  expect(codes(results)).toEqual(results.map(() => "ok"));
});

rule("own-context", async (service) => {
  const [first, second] = [await service.create("First"), await service.create("Second")];
  const [group] = await service.add(first, [{ name: "group", type: "collection", contexts: ["a", "b"] }]);
  const results = await service.bulk(ROUTE.addOptions, {
    items: [
      { targeting: second, name: "taken", type: "collection", contexts: ["x", "a"] },
      { targeting: second, name: "regular", contexts: ["a"] },
      { targeting: second, name: "group", children: [{ name: "sub", contexts: ["a", "b"] }] },
    ],
  });
  expect(codes(results).slice(1)).toEqual(["ok", "ok"]);
  expect(errorOf(results[0])).toEqual({
    statusCode: 400,
    errorCode: "TARGETING_COLLECTION_CONTEXT_DUPLICATED",
    detail: {
      conflicts: [{ value: "a", collection: { _id: group, name: "group" }, targeting: { _id: first, name: "First" } }],
    },
  });
  const own = await service.bulk(ROUTE.updateOptions, { items: [{ _id: group, contexts: { set: ["a", "c"] } }] });
  expect(codes(own)).toEqual(["ok"]);
});

rule("own-context-in-request", async (service) => {
  const options = [{ name: "group", type: "collection", contexts: ["a"] }];
  const created = await service.bulk(ROUTE.createTargetings, {
    items: [
      { name: "First", options },
      { name: "Second", options },
      { name: "Third", options: [...options, { name: "again", type: "collection", contexts: ["a"] }] },
    ],
  });
  const duplicated = "TARGETING_COLLECTION_CONTEXT_DUPLICATED";
  expect(codes(created)).toEqual(["ok", duplicated, duplicated]);
  expect(errorOf(created[1])?.detail).toMatchObject({ conflicts: [{ value: "a", collection: { name: "group" } }] });
});

rule("conflicts-shown", async (service) => {
  const targeting = await service.create("News");
  const contexts = Array.from({ length: 30 }, (_, index) => `c${index}`);
  const [group] = await service.add(targeting, [{ name: "group", type: "collection", contexts }]);
  const item = { targeting, name: "other", type: "collection", contexts };
  const [result] = await service.bulk(ROUTE.addOptions, { items: [item] });
  const conflict = { collection: { _id: group, name: "group" }, targeting: { _id: targeting, name: "News" } };
  expect(errorOf(result)?.detail).toEqual({
    conflicts: contexts.slice(0, 20).map((value) => ({ value, ...conflict })),
  });
});
