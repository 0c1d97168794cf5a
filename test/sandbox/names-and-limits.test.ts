import { expect } from "vitest";
import { rule } from "./rule.ts";
import { at, codes, errorOf, ROUTE, type SandboxService } from "./service.ts";

const MIB = 1_048_576;
const numbered = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

/** Returns whether both a targeting and an option may have this name. */
async function accepts(service: SandboxService, name: string): Promise<boolean> {
  const targeting = await service.send("POST", ROUTE.createTargetings, { items: [{ name }] });
  const options = [{ name }];
  const option = await service.send("POST", ROUTE.createTargetings, { items: [{ name: "Holder", options }] });
  expect(option.status).toBe(targeting.status);
  return targeting.status === 200;
}

rule("name-length", async (service) => {
  expect(await accepts(service, "a")).toBe(false);
  expect(await accepts(service, "")).toBe(false);
  expect(await accepts(service, "ab")).toBe(true);
  expect(await accepts(service, "a".repeat(36))).toBe(true);
  expect(await accepts(service, "a".repeat(37))).toBe(false);
});

rule("name-code-points", async (service) => {
  expect(await accepts(service, "가".repeat(36))).toBe(true);
  expect(await accepts(service, "가".repeat(37))).toBe(false);
  expect(await accepts(service, "ㄱㅎㅏㅣ")).toBe(true);
  expect(await accepts(service, "가나".normalize("NFD"))).toBe(false);
});

rule("name-characters", async (service) => {
  for (const name of ["A b~c", "50%", "R&D", "C++", "a-b", "뉴스 News 1"]) {
    expect(await accepts(service, name), name).toBe(true);
  }
  for (const name of [
    ...[
      "a_b",
      "a.b",
      "[ab]",
      "(ab)",
      "日本",
      "中文",
      "ニュース",
      "ab!",
      "a\tb",
      "a\u00a0b",
      "é1",
      "ab\n",
      "🙂🙂",
      "a\u200bb",
    ],
  ]) {
    expect(await accepts(service, name), name).toBe(false);
  }
});

rule("name-spaces", async (service) => {
  for (const name of [" ab", "ab ", "  "]) expect(await accepts(service, name), name).toBe(false);
  expect(await accepts(service, "a b")).toBe(true);
});

rule("limit-targeting-items", async (service) => {
  const unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const bodies = {
    [ROUTE.createTargetings]: (count: number) => ({ items: numbered(count, (index) => ({ name: `t ${index}` })) }),
    [ROUTE.renameTargetings]: (count: number) => ({ items: numbered(count, () => ({ _id: unknown, name: "tt" })) }),
    [ROUTE.deleteTargetings]: (count: number) => ({ ids: numbered(count, () => unknown) }),
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const [count, status] of [
      [0, 400],
      [1, 200],
      [100, 200],
      [101, 400],
    ] as const) {
      expect(await service.send("POST", path, body(count)), `${path} ${count}`).toMatchObject({ status });
    }
  }
});

rule("limit-targeting-options", async (service) => {
  const create = (first: number, children: number) =>
    service.send("POST", ROUTE.createTargetings, {
      items: [
        { name: "First", options: numbered(first, (index) => ({ name: `o ${index}` })) },
        {
          name: "Second",
          options: [{ name: "group", children: numbered(children, (index) => ({ name: `s ${index}` })) }],
        },
      ],
    });
  expect(await create(50, 50)).toMatchObject({ status: 400 });
  expect(await create(50, 49)).toMatchObject({ status: 200, body: { succeeded: 2 } });
});

rule("limit-option-items", async (service) => {
  const targeting = await service.create("News");
  const unknown = (index: number) => `01ARZ3NDEKTSV4RRFFQ6${String(index).padStart(6, "0")}`;
  const bodies = {
    [ROUTE.addOptions]: (count: number) => ({ items: numbered(count, (index) => ({ targeting, name: `o ${index}` })) }),
    [ROUTE.updateOptions]: (count: number) => ({
      items: numbered(count, (index) => ({ _id: unknown(index), name: "oo" })),
    }),
    [ROUTE.deleteOptions]: (count: number) => ({ ids: numbered(count, unknown) }),
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const [count, status] of [
      [0, 400],
      [5001, 400],
      [5000, 200],
    ] as const) {
      expect((await service.send("POST", path, body(count))).status, `${path} ${count}`).toBe(status);
    }
  }
  expect((await service.list(targeting)).total).toBe(5000);
});

rule("limit-add-options", async (service) => {
  const targeting = await service.create("News");
  const group = (index: number, children: number) => ({
    targeting,
    name: `g ${index}`,
    children: numbered(children, (child) => ({ name: `s ${index} ${child}` })),
  });
  const items = [...numbered(99, (index) => group(index, 49)), group(99, 50)];
  const reply = await service.send("POST", ROUTE.addOptions, { items });
  expect(reply.status).toBe(400);
  const fitting = [...numbered(99, (index) => group(index, 49)), group(99, 49)];
  expect(await service.send("POST", ROUTE.addOptions, { items: fitting })).toMatchObject({ body: { succeeded: 100 } });
});

rule("limit-group-items", async (service) => {
  const targeting = await service.create("News");
  const [group] = await service.add(targeting, [{ name: "group", type: "collection", contexts: ["own"] }]);
  const kinds = [
    (index: number) => ({ name: `g ${index}`, type: "collection", contexts: [`c${index}`] }),
    (index: number) => ({ name: `k ${index}`, children: [{ name: `kk ${index}` }] }),
    (index: number) => ({ name: `s ${index}`, parent: group }),
  ] as const;
  const add = (count: number) =>
    service.send("POST", ROUTE.addOptions, {
      items: numbered(count, (index) => ({ targeting, ...kinds[index % 3]?.(index) })),
    });
  expect((await add(151)).status).toBe(400);
  expect(await add(150)).toMatchObject({ status: 200, body: { succeeded: 150 } });
  const ids = await service.add(
    targeting,
    numbered(151, (index) => ({ name: `o ${index}` })),
  );
  const move = (count: number) =>
    service.send("POST", ROUTE.updateOptions, {
      items: ids.slice(0, count).map((_id, index) => ({ _id, parent: index % 2 === 0 ? null : group })),
    });
  expect((await move(151)).status).toBe(400);
  expect(await move(150)).toMatchObject({ status: 200, body: { succeeded: 150 } });
});

rule("limit-request-contexts", async (service) => {
  const targeting = await service.create("News");
  const some = (count: number) => numbered(count, (index) => `c${index}`);
  const add = (own: number, child: number) =>
    service.send("POST", ROUTE.addOptions, {
      items: [{ targeting, name: "group", contexts: some(own), children: [{ name: "sub", contexts: some(child) }] }],
    });
  expect((await add(5000, 5001)).status).toBe(400);
  expect((await add(5000, 5000)).status).toBe(200);
  const [one, two] = await service.add(targeting, [{ name: "one" }, { name: "two" }]);
  const update = (third: number) =>
    service.send("POST", ROUTE.updateOptions, {
      items: [
        { _id: one, contexts: { add: some(4000), remove: some(3000) } },
        { _id: two, contexts: { set: some(third) } },
      ],
    });
  expect((await update(3001)).status).toBe(400);
  expect((await update(3000)).status).toBe(200);
});

rule("limit-context-length", async (service) => {
  const targeting = await service.create("News");
  const add = (name: string, context: string) =>
    service.send("POST", ROUTE.addOptions, { items: [{ targeting, name, contexts: [context] }] });
  for (const context of ["", "   ", "\n\t", "x".repeat(257), "가".repeat(86)]) {
    expect((await add("bad", context)).status, context).toBe(400);
  }
  for (const [index, context] of ["x".repeat(256), ` ${"x".repeat(256)}\n`, "가".repeat(85)].entries()) {
    expect((await add(`good ${index}`, context)).status, context).toBe(200);
  }
});

/** Creates a targeting with one option that has these Context IDs. */
async function optionWith(service: SandboxService, contexts: readonly string[]) {
  const { targetings } = await service.seed({ targetings: [{ name: "News" }] });
  const targeting = at(targetings, 0);
  const { options } = await service.seed({ options: [{ targeting, name: "full", contexts }] });
  const option = at(options, 0);
  const update = async (contextChanges: object) =>
    at(codes(await service.bulk(ROUTE.updateOptions, { items: [{ _id: option, contexts: contextChanges }] })), 0);
  return { targeting, option, update };
}

rule("limit-option-contexts", async (service) => {
  const { update, option } = await optionWith(
    service,
    numbered(49_999, (index) => `c${index}`),
  );
  expect(await update({ add: ["x1", "x2"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  expect((await service.get(`${ROUTE.options}/${option}?limit=1`)).contextCount).toBe(49_999);
  expect(await update({ add: ["x1", "x2"], remove: ["c0"] })).toBe("ok");
  expect(await update({ add: ["x3"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  expect(await update({ add: ["x1"] })).toBe("ok");
});

rule("limit-option-bytes", async (service) => {
  const wide = (index: number) => String(index).padStart(256, "x");
  const full = (8 * MIB) / 256;
  const { update } = await optionWith(service, numbered(full - 1, wide));
  expect(await update({ add: [`y${wide(0).slice(1)}`, "z"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  expect(await update({ add: [`y${wide(0).slice(1)}`] })).toBe("ok");
  expect(await update({ add: ["z"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
});

rule("limit-project-contexts", async (service) => {
  const { targeting } = await optionWith(service, []);
  const part = (from: number, count: number) => numbered(count, (index) => `c${from + index}`);
  await service.seed({
    options: numbered(4, (index) => ({
      targeting,
      name: `part ${index}`,
      contexts: part(0, index === 3 ? 49_998 : 50_000),
    })),
  });
  const results = await service.bulk(ROUTE.addOptions, {
    items: [
      { targeting, name: "one", contexts: ["a"] },
      { targeting, name: "two", contexts: ["a", "b"] },
      { targeting, name: "three", contexts: ["a"] },
      { targeting, name: "four" },
      { targeting, name: "five", children: [{ name: "six", contexts: ["a"] }] },
    ],
  });
  expect(codes(results)).toEqual([
    "ok",
    "TARGETING_CONTEXT_LIMIT_EXCEEDED",
    "ok",
    "ok",
    "TARGETING_CONTEXT_LIMIT_EXCEEDED",
  ]);
  const created = await service.bulk(ROUTE.createTargetings, {
    items: [{ name: "More", options: [{ name: "one", contexts: ["a"] }] }, { name: "None" }],
  });
  expect(codes(created)).toEqual(["TARGETING_CONTEXT_LIMIT_EXCEEDED", "ok"]);
});

rule("limit-targeting-size", async (service) => {
  const { targetings } = await service.seed({ targetings: [{ name: "News" }] });
  const targeting = at(targetings, 0);
  await service.seed({ options: numbered(99_998, (index) => ({ targeting, name: `o ${index}` })) });
  const results = await service.bulk(ROUTE.addOptions, {
    items: [
      { targeting, name: "group", children: [{ name: "s1" }, { name: "s2" }] },
      { targeting, name: "one" },
      { targeting, name: "two" },
      { targeting, name: "three" },
    ],
  });
  const exceeded = {
    statusCode: 400,
    errorCode: "TARGETING_CATEGORY_LIMIT_EXCEEDED",
    detail: { targeting, limit: 100_000 },
  };
  expect(results.map(errorOf)).toEqual([exceeded, undefined, undefined, exceeded]);
});

rule("only-increases", async (service) => {
  const over = numbered(50_010, (index) => `c${index}`);
  const { update, targeting } = await optionWith(service, over);
  expect(await update({ remove: ["c0"] })).toBe("ok");
  expect(await update({ add: ["x"], remove: ["c1"] })).toBe("ok");
  expect(await update({ add: ["y"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
  const wide = numbered((8 * MIB) / 256 + 2, (index) => String(index).padStart(256, "x"));
  const { options } = await service.seed({ options: [{ targeting, name: "wide", contexts: wide }] });
  const narrow = [{ _id: options[0], contexts: { remove: wide.slice(0, 1) } }];
  expect(codes(await service.bulk(ROUTE.updateOptions, { items: narrow }))).toEqual(["ok"]);
  await service.seed({
    options: numbered(4, (index) => ({ targeting, name: `part ${index}`, contexts: over })),
  });
  expect(await update({ remove: ["c2"], add: ["z"] })).toBe("ok");
  expect(await update({ set: ["a"] })).toBe("ok");
  expect(await update({ add: ["b"] })).toBe("TARGETING_CONTEXT_LIMIT_EXCEEDED");
});
