import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, ROUTE, type SandboxService } from "./service.ts";

const NOT_SUPPORTED = "TARGETING_CATEGORY_NOT_SUPPORTED";

/** Creates a targeting with a group of sub-options, a group with own Context IDs, and a regular option. */
async function catalogue(service: SandboxService) {
  const targeting = await service.create("News");
  const [group = "", own = "", regular = ""] = await service.add(targeting, [
    { name: "group", children: [{ name: "sub 1" }, { name: "sub 2" }] },
    { name: "own", type: "collection", contexts: ["a", "b"] },
    { name: "regular" },
  ]);
  const subs = (await service.list(targeting, `?parent=${group}`)).items.map(({ _id }) => _id);
  const update = async (_id: string, changes: object) =>
    at(codes(await service.bulk(ROUTE.updateOptions, { items: [{ _id, ...changes }] })), 0);
  const add = async (item: object) =>
    at(codes(await service.bulk(ROUTE.addOptions, { items: [{ targeting, name: "new", ...item }] })), 0);
  const remove = async (...ids: string[]) => codes(await service.bulk(ROUTE.deleteOptions, { ids }));
  return { targeting, group, own, regular, sub: at(subs, 0), lastSub: at(subs, 1), update, add, remove };
}

rule("group-1", async (service) => {
  const { add } = await catalogue(service);
  for (const item of [{ type: "collection" }, { children: [] }, { type: "collection", children: [], contexts: [] }]) {
    expect(await add(item), JSON.stringify(item)).toBe(NOT_SUPPORTED);
  }
  expect(await add({ type: "collection", contexts: ["new"] })).toBe("ok");
});

rule("group-2", async (service) => {
  const { add, update, regular } = await catalogue(service);
  expect(await add({ type: "atomic", children: [{ name: "sub" }] })).toBe(NOT_SUPPORTED);
  expect(await add({ exposeChildren: false })).toBe(NOT_SUPPORTED);
  expect(await update(regular, { exposeChildren: true })).toBe(NOT_SUPPORTED);
});

rule("group-3", async (service) => {
  const { add, group } = await catalogue(service);
  expect(await add({ parent: group, type: "collection", contexts: ["x"] })).toBe(NOT_SUPPORTED);
  expect(await add({ parent: group, children: [{ name: "sub" }] })).toBe(NOT_SUPPORTED);
  expect(await add({ parent: group, exposeChildren: true })).toBe(NOT_SUPPORTED);
  expect(await add({ parent: group, type: "atomic" })).toBe("ok");
});

rule("group-4", async (service) => {
  const { add, update, regular, sub } = await catalogue(service);
  expect(await add({ parent: regular })).toBe(NOT_SUPPORTED);
  expect(await add({ parent: sub })).toBe(NOT_SUPPORTED);
  expect(await update(regular, { parent: sub })).toBe(NOT_SUPPORTED);
  expect(await update(regular, { parent: regular })).toBe(NOT_SUPPORTED);
});

rule("group-5", async (service) => {
  const { update, group, own } = await catalogue(service);
  expect(await update(own, { parent: group })).toBe(NOT_SUPPORTED);
  expect(await update(own, { parent: null })).toBe(NOT_SUPPORTED);
});

rule("group-6", async (service) => {
  const { targeting, update, remove, add, group, own, sub, lastSub } = await catalogue(service);
  expect(await update(sub, { parent: null })).toBe("ok");
  expect(await update(lastSub, { parent: null })).toBe(NOT_SUPPORTED);
  expect(await update(lastSub, { parent: own })).toBe(NOT_SUPPORTED);
  expect(await remove(lastSub)).toEqual([NOT_SUPPORTED]);
  expect(await add({ parent: own })).toBe("ok");
  const only = at((await service.list(targeting, `?parent=${own}`)).items, 0)._id;
  expect(await update(only, { parent: null })).toBe("ok");
  expect(await update(sub, { parent: group })).toBe("ok");
  expect(await remove(sub, lastSub)).toEqual(["ok", NOT_SUPPORTED]);
  expect(await remove(lastSub, group)).toEqual(["ok", "ok"]);
});

rule("group-7", async (service) => {
  const { update, add, own, group } = await catalogue(service);
  expect(await update(own, { contexts: { remove: ["a", "b"] } })).toBe(NOT_SUPPORTED);
  expect(await update(own, { contexts: { set: [] } })).toBe(NOT_SUPPORTED);
  expect(await update(own, { contexts: { remove: ["a"] } })).toBe("ok");
  expect(await add({ parent: own })).toBe("ok");
  expect(await update(own, { contexts: { set: [] } })).toBe("ok");
  expect(await update(group, { contexts: { set: [] } })).toBe("ok");
});

rule("group-8", async (service) => {
  const { targeting, regular, sub, group } = await catalogue(service);
  for (const parent of [regular, sub]) {
    const reply = await service.send("GET", `/context-targeting/${targeting}/category?parent=${parent}`);
    expect(reply).toMatchObject({ status: 400, body: { errorCode: NOT_SUPPORTED } });
  }
  expect((await service.list(targeting, `?parent=${group}`)).total).toBe(2);
});

rule("group-9", async (service) => {
  const { targeting, group, update, remove, add } = await catalogue(service);
  const { options } = await service.seed({
    options: [{ targeting, name: "nested", type: "collection", parent: group, contexts: ["n"] }],
  });
  const nested = at(options, 0);
  expect(await update(nested, { name: "other" })).toBe(NOT_SUPPORTED);
  expect(await update(nested, { contexts: { add: ["x"] } })).toBe(NOT_SUPPORTED);
  expect(await add({ parent: nested })).toBe(NOT_SUPPORTED);
  expect(await remove(nested)).toEqual([NOT_SUPPORTED]);
});

rule("group-deleted", async (service) => {
  const { targeting, group, sub, lastSub, remove } = await catalogue(service);
  expect(await remove(group, sub)).toEqual(["ok", "ok"]);
  const { items } = await service.list(targeting);
  expect(items.map(({ name }) => name)).toEqual(["sub 2", "own", "regular"]);
  expect((await service.get(`${ROUTE.options}/${lastSub}`)).parent).toBeUndefined();
});

rule("children-make-group", async (service) => {
  const targeting = await service.create("News", [{ name: "group", children: [{ name: "sub", contexts: ["a"] }] }]);
  const group = at((await service.list(targeting)).items, 0);
  expect(group).toMatchObject({ type: "collection", childCount: 1, exposeChildren: false });
  expect((await service.list(targeting, `?parent=${group._id}`)).items).toMatchObject([
    { type: "atomic", contextCount: 1 },
  ]);
});
