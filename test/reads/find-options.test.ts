import { describe, expect, test } from "vitest";
import * as z from "zod";
import { lossDigest } from "../../src/changes/change-kinds.ts";
import { findOptions } from "../../src/reads/option-contents.ts";
import { startService } from "../changes/service.ts";

type Service = Awaited<ReturnType<typeof startService>>;

const journal = z.object({ requests: z.array(z.looseObject({ operation: z.string().nullable() })) });
const UNKNOWN = "01JABCDEFGHJKMNPQRSTVWXYZ0";
const never = new AbortController().signal;

/** Creates a targeting with this many options, and a group with this many sub-options. Returns their IDs. */
async function targetingWith({ run, targeting }: Service, name: string, options: number, children = 0) {
  const targetingId = await targeting(name);
  const items = [
    ...Array.from({ length: options }, (_, number) => ({ name: `Option ${number + 1}`, contexts: ["x"] })),
    ...(children > 0
      ? [
          {
            name: "Group",
            children: Array.from({ length: children }, (_, number) => ({ name: `Child ${number + 1}` })),
          },
        ]
      : []),
  ];
  const { results } = await run({ tool: "bulk_add_options", input: { targetingId, items } });
  const ids = results.flatMap(({ _id, child }) => (_id === undefined ? [] : [{ _id, child }]));
  return {
    targetingId,
    options: ids.slice(0, options).map(({ _id }) => _id),
    group: ids[options]?._id ?? "",
    children: ids.filter(({ child }) => child !== undefined).map(({ _id }) => _id),
  };
}

/** Does some work, and counts the reads that it makes, by operation. */
async function readsOf<T>({ control }: Service, work: () => Promise<T>) {
  const seen = async () => journal.parse(await control("GET", "/requests")).requests;
  const before = (await seen()).length;
  const value = await work();
  const reads = (await seen()).slice(before).map(({ operation }) => operation);
  const count = (operation: string) => reads.filter((one) => one === operation).length;
  return { value, alone: count("getOption"), pages: count("listOptions") };
}

describe("options are found by ID", () => {
  test.each([
    ["one option: alone", 3, 1, { alone: 1, pages: 0 }],
    ["two: alone", 3, 2, { alone: 2, pages: 0 }],
    ["three of a small targeting: one alone, the others in its list", 3, 3, { alone: 1, pages: 1 }],
    ["five hundred: one alone, the others in a page", 900, 500, { alone: 1, pages: 1 }],
    ["three thousand: one alone, the others in three pages", 3000, 3000, { alone: 1, pages: 3 }],
    ["three of a large targeting: a look at its size, and each alone", 4000, 3, { alone: 3, pages: 1 }],
  ])("%s", async (_case, held, wanted, reads) => {
    const service = await startService();
    const { options, targetingId } = await targetingWith(service, "Spring", held);
    // The last options, which only the last page of the list contains.
    const ids = options.slice(-wanted);
    const { value, ...counted } = await readsOf(service, () => findOptions(service.api, ids, never));
    expect([...value.found.keys()].sort()).toEqual([...ids].sort());
    for (const record of value.found.values())
      expect(record).toMatchObject({ targeting: targetingId, contextCount: 1 });
    expect(counted).toEqual(reads);
  });

  test("sub-options in the list of their group, of which the record names only fifty", async () => {
    const service = await startService();
    const { group, children } = await targetingWith(service, "Spring", 10, 120);
    for (const ids of [children, [group, ...children]]) {
      const { value, alone, pages } = await readsOf(service, () => findOptions(service.api, ids, never));
      expect(value.found.size).toBe(ids.length);
      expect(value.found.get(children[119] ?? "")).toMatchObject({ parent: group });
      expect(alone).toBe(1);
      expect(pages).toBeLessThanOrEqual(2);
    }
  });

  test("of several targetings, and those that are missing", async () => {
    const service = await startService();
    const spring = await targetingWith(service, "Spring", 40);
    const summer = await targetingWith(service, "Summer", 40);
    const ids = [...spring.options, UNKNOWN, ...summer.options];
    const { value, alone, pages } = await readsOf(service, () => findOptions(service.api, ids, never));
    expect(value.found.size).toBe(80);
    expect([...value.missing.keys()]).toEqual([UNKNOWN]);
    expect(pages).toBe(2);
    expect(alone).toBeLessThanOrEqual(9);
  });

  test("an error that is no proof of anything is thrown", async () => {
    const service = await startService();
    const { options } = await targetingWith(service, "Spring", 3);
    await service.faults([{ kind: "status", status: 401, on: "getOption", nth: 1 }]);
    await expect(findOptions(service.api, options, never)).rejects.toThrow("getOption");
  });
});

test("a deletion by name reads no option alone, and one that several options have fails", async () => {
  const service = await startService();
  const { targetingId, options } = await targetingWith(service, "Spring", 30);
  const input = { targetingId, names: ["Option 1", "Option 2", "Option 3", "Nowhere"] };
  const { value: plan, ...reads } = await readsOf(service, () =>
    service.changes.plan({ tool: "delete_options", input }, never),
  );
  expect(reads).toEqual({ alone: 0, pages: 1 });
  expect(plan.losses.map(({ _id }) => _id)).toEqual(options.slice(0, 3));
  await service.control("POST", "/seed", { options: [{ _id: options[1], targeting: targetingId, name: "Option 1" }] });
  const again = await service.changes.plan({ tool: "delete_options", input }, never);
  expect(again.losses.map(({ _id }) => _id)).toEqual([options[2]]);
  expect(again.settlements.map(({ reason }) => reason?.code).sort()).toEqual([
    "NAME_AMBIGUOUS",
    "NAME_NOT_FOUND",
    "NAME_NOT_FOUND",
  ]);
});

test("what would be lost differs as soon as one sub-option stands in the place of another", async () => {
  const service = await startService();
  const { targetingId, group, children } = await targetingWith(service, "Spring", 1, 60);
  const lost = async () => {
    const { losses } = await service.changes.plan({ tool: "delete_options", input: { ids: [group] } }, never);
    return { count: losses[0]?.count, digest: lossDigest(losses) };
  };
  const before = await lost();
  expect(before).toMatchObject({ count: 60 });
  expect(await lost()).toEqual(before);
  await service.control("POST", "/seed", { remove: [children[59]] });
  await service.run({
    tool: "bulk_add_options",
    input: { targetingId, items: [{ name: "Another child", parent: group }] },
  });
  const after = await lost();
  expect(after.count).toBe(60);
  expect(after.digest).not.toBe(before.digest);
});
