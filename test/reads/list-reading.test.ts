import { mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ListError } from "../../src/api/errors.ts";
import type { ManagementApi } from "../../src/api/management.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { findOptions, readOptionContents } from "../../src/reads/option-contents.ts";
import { readOptionNames, readOptions } from "../../src/reads/option-lists.ts";
import { getOption } from "../../src/tools/get-option.ts";
import { listOptions } from "../../src/tools/list-options.ts";
import { type HeldOption, readingApi, toolContext, ulidOf } from "../support/tool-context.ts";

/** From management-api 8.1, repeated here by hand. */
const PAGE = 1000;
const CONTEXT_PAGE = 10_000;

const never = new AbortController().signal;
const targetingId = ulidOf(0);
/** A reading that needs a few pages, but makes more reads than this, is in an endless loop. */
const MAX_READS = 40;

const plain = (count: number, from = 1): HeldOption[] =>
  Array.from({ length: count }, (_, number) => ({
    _id: ulidOf(from + number),
    name: `Option ${from + number}`,
    type: "atomic" as const,
    contextCount: 0,
    targeting: targetingId,
  }));

type List = ManagementApi["listOptions"];
type Get = ManagementApi["getOption"];

/** A service whose reads behave as the test says. The test fails if there are more reads than can be necessary. */
function service(
  options: readonly HeldOption[],
  behave: { readonly list?: (list: List) => List; readonly get?: (get: Get) => Get },
) {
  let count = 0;
  const { api } = readingApi(options, () => {
    count += 1;
    if (count > MAX_READS) throw new Error(`more than ${MAX_READS} reads`);
  });
  return {
    api: {
      ...api,
      listOptions: behave.list?.(api.listOptions) ?? api.listOptions,
      getOption: behave.get?.(api.getOption) ?? api.getOption,
    },
    reads: () => count,
  };
}

const ignoringOffset = (list: List): List => {
  return (id, { offset: _, ...query } = {}, options) => list(id, query, options);
};
const withoutTotal = (list: List): List => {
  return async (...asked) => ({ items: (await list(...asked)).items });
};
const silentAndDeaf = (list: List): List => withoutTotal(ignoringOffset(list));

describe.each([
  ["and gives no total", silentAndDeaf],
  ["and gives a total", ignoringOffset],
] as const)("a service that ignores `offset` %s", (_, list) => {
  const of = (count: number) => service(plain(count), { list });

  test("is told from a list by its first page that repeats", async () => {
    const { api, reads } = of(2 * PAGE + 5);
    await expect(readOptionNames(api, targetingId, never)).rejects.toThrow(ListError);
    expect(reads()).toBe(2);
  });

  test("is told in the sub-options of a group", async () => {
    const group = { ...plain(1, 9000)[0], _id: ulidOf(9000), name: "Group", type: "collection" as const };
    const { api, reads } = service([{ ...group, subOptions: plain(PAGE + 1) }], { list });
    await expect(readOptionNames(api, targetingId, never)).rejects.toMatchObject({ problem: "repeats" });
    expect(reads()).toBe(3);
  });

  test("ends a search, and saving what it finds, which leaves no file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    for (const given of [{ search: "Option 777" }, { search: "nowhere" }, { saveTo: join(folder, "all.csv") }]) {
      const now = { clock: systemClock, arrivedAt: systemClock.now(), waitMs: 240_000 };
      const context = { ...toolContext(of(PAGE + 1).api).context, ...now, allowedDirs: [folder] };
      const call = listOptions.handler(listOptions.input().parse({ targetingId, ...given }), context);
      await expect(call).rejects.toMatchObject({ problem: "repeats" });
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test("options that are looked for by ID are found all the same", async () => {
    const { api } = of(PAGE + 8);
    const wanted = plain(6, PAGE + 1).map(({ _id }) => _id);
    expect([...(await findOptions(api, wanted, never)).found.keys()].sort()).toEqual(wanted);
  });
});

describe("Context IDs of an option", () => {
  const ids = (count: number) => Array.from({ length: count }, (_, number) => `article-${number}`);
  const holding = (contexts: readonly string[], contextCount?: number): HeldOption[] => [
    { _id: ulidOf(1), name: "Option", type: "atomic", contexts, ...(contextCount !== undefined && { contextCount }) },
  ];
  const deaf = (get: Get): Get => {
    return (id, { offset: _, ...query } = {}, options) => get(id, query, options);
  };

  test.each([undefined, 2 * CONTEXT_PAGE])(
    "a service that ignores `offset` is told (contextCount %j)",
    async (count) => {
      const { api, reads } = service(holding(ids(2 * CONTEXT_PAGE), count), { get: deaf });
      await expect(readOptionContents(api, ulidOf(1), never)).rejects.toMatchObject({ problem: "repeats" });
      expect(reads()).toBe(2);
    },
  );

  test("saving them ends, too", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const { api } = service(holding(ids(2 * CONTEXT_PAGE)), { get: deaf });
    const now = { clock: systemClock, arrivedAt: systemClock.now(), waitMs: 240_000 };
    const context = { ...toolContext(api).context, ...now, allowedDirs: [folder] };
    const given = getOption.input().parse({ optionId: ulidOf(1), saveTo: join(folder, "all.csv") });
    await expect(getOption.handler(given, context)).rejects.toMatchObject({ problem: "repeats" });
    expect(await readdir(folder)).toEqual([]);
  });

  test("what changes while it is read is read again", async () => {
    const contexts = ids(2 * CONTEXT_PAGE);
    let pages = 0;
    const get = (read: Get): Get => {
      return async (...asked) => {
        const page = await read(...asked);
        pages += 1;
        // Another user removes the first one between two pages of the first reading.
        if (pages === 1) contexts.shift();
        return { ...page, option: { ...page.option, updatedAt: pages === 1 ? "before" : "after" } };
      };
    };
    const { api } = service(holding(contexts), { get });
    expect((await readOptionContents(api, ulidOf(1), never)).contexts).toEqual(ids(2 * CONTEXT_PAGE).slice(1));
  });

  test("a service whose pages are shorter than asked for is read to the count that it gives", async () => {
    const short = (get: Get): Get => {
      return (id, { limit = CONTEXT_PAGE, offset } = {}, options) =>
        get(id, { limit: Math.min(limit, 400), ...(offset !== undefined && { offset }) }, options);
    };
    const { api } = service(holding(ids(1500), 1500), { get: short });
    expect((await readOptionContents(api, ulidOf(1), never)).contexts).toEqual(ids(1500));
  });
});

describe("a list that shifts while it is walked", () => {
  /** Changes the list after the pages with these numbers; the first is 1. */
  const changing = (held: HeldOption[], after: readonly number[], change: (held: HeldOption[]) => unknown) => {
    let pages = 0;
    return (list: List): List => {
      return async (...asked): ReturnType<List> => {
        const page = await list(...asked);
        pages += 1;
        if (after.includes(pages)) change(held);
        return page;
      };
    };
  };
  type Change = (held: HeldOption[]) => unknown;
  const removeFirst: Change = (held) => held.shift();
  const moveFirst: Change = (held) => held.push(...held.splice(0, 1));
  const putInFront: Change = (held) => held.unshift(...plain(1, 9000));

  test.each([
    ["an option of the first page is deleted", removeFirst],
    ["one is deleted and another one made, so that the total stays", moveFirst],
    ["one is put in front", putInFront],
  ] as const)("%s: every name is found", async (_, change) => {
    for (const total of [(list: List) => list, withoutTotal]) {
      const held = plain(2 * PAGE);
      const changed = changing(held, [1], change);
      const { api } = service(held, { list: (list) => total(changed(list)) });
      const names = await readOptionNames(api, targetingId, never);
      expect([...names.keys()].sort()).toEqual(held.map(({ name }) => name).sort());
    }
  });

  test("a search looks at all of it", async () => {
    const held = plain(2 * PAGE);
    const { api } = service(held, { list: changing(held, [1], removeFirst) });
    const given = listOptions.input().parse({ targetingId, search: `Option ${PAGE + 1}` });
    const { structured } = await listOptions.handler(given, toolContext(api).context);
    expect(structured.options).toMatchObject([{ name: `Option ${PAGE + 1}` }]);
  });

  test("one that never stands still is not read for ever, and is not a list without a name", async () => {
    const held = plain(2 * PAGE);
    const always = Array.from({ length: MAX_READS }, (_, page) => page);
    const { api } = service(held, { list: changing(held, always, moveFirst) });
    await expect(readOptionNames(api, targetingId, never)).rejects.toMatchObject({ problem: "shifts" });
  });

  test("one that only grows at its end is complete as of when it was read", async () => {
    const held = plain(2 * PAGE);
    let next = 9000;
    const grow: Change = (options) => options.push(...plain(1, next++));
    const always = Array.from({ length: MAX_READS }, (_, page) => page);
    const { api } = service(held, { list: changing(held, always, grow) });
    const names = await readOptionNames(api, targetingId, never);
    for (const { name } of plain(2 * PAGE)) expect(names.has(name)).toBe(true);
  });

  test("one that stands still is walked once", async () => {
    for (const count of [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE - 2]) {
      const { api, reads } = service(plain(count), {});
      const read: string[] = [];
      for await (const { name } of readOptions(api, targetingId, never)) read.push(name);
      expect(read).toEqual(plain(count).map(({ name }) => name));
      expect(reads()).toBe(Math.max(1, Math.ceil(count / PAGE)));
    }
  });
});
