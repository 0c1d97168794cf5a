import { describe, expect, test } from "vitest";
import * as z from "zod";
import { contextParts } from "../../../src/changes/plan/context-changes.ts";
import { readOptionContents } from "../../../src/reads/option-contents.ts";
import { randomFrom } from "../../faults/random.ts";
import { startService } from "../service.ts";

/** The limits of management-api 8.1, repeated here by hand. */
const PER_REQUEST = 10_000;
const PER_OPTION = 50_000;
const OPTION_BYTES = 8 * 1_048_576;
const PER_PROJECT = 200_000;

const ids = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix}-${number}`);

type Parts = ReturnType<typeof contextParts>;

/** Applies the parts in order. Returns the option's Context IDs after each part. */
function between(held: readonly string[], parts: Parts): readonly ReadonlySet<string>[] {
  const now = new Set(held);
  return parts.map(({ add = [], remove = [] }) => {
    expect(add.length + remove.length).toBeLessThanOrEqual(PER_REQUEST);
    const before = now.size;
    for (const id of add) now.add(id);
    expect(now.size).toBe(before + add.length);
    for (const id of remove) now.delete(id);
    expect(now.size).toBe(before + add.length - remove.length);
    return new Set(now);
  });
}

const bytesOf = (held: Iterable<string>): number => [...held].reduce((sum, id) => sum + Buffer.byteLength(id), 0);

describe("a change in parts", () => {
  test("is never empty in between where it may only add or only take away", () => {
    const [held, wanted] = [ids(12_000, "old"), ids(25_000, "new")];
    const growth = { ids: 0, bytes: OPTION_BYTES };
    const parts = contextParts({ add: wanted, remove: held }, { growth, isPure: true });
    for (const { add = [], remove = [] } of parts) expect(Math.min(add.length, remove.length)).toBe(0);
    const states = between(held, parts);
    for (const { size } of states) expect(size).toBeGreaterThan(0);
    const after = states.at(-1) ?? new Set();
    expect(after.size).toBe(wanted.length);
    expect(wanted.every((id) => after.has(id))).toBe(true);
  });

  test("gives what another group waits for first, and takes what another group holds last", () => {
    const [early, late] = [ids(3, "to-other"), ids(4, "from-other")];
    const work = { early, late, add: ids(9000, "new"), remove: ids(9000, "old") };
    const [first, ...rest] = contextParts(work, { growth: { ids: 20_000, bytes: OPTION_BYTES } });
    expect(first?.remove?.slice(0, 3)).toEqual(early);
    expect(first?.add).not.toEqual(expect.arrayContaining(late));
    expect(rest.flatMap(({ add = [] }) => add)).toEqual(expect.arrayContaining(late));
    expect(rest).toHaveLength(1);
  });

  const seed = Number(process.env.LONG_SET_SEED ?? Date.now() % 1_000_000);
  test(`any change keeps to every bound (seed ${seed})`, () => {
    const random = randomFrom(seed);
    for (let round = 0; round < 12; round += 1) {
      const kept = ids(random.below(20_000), "kept");
      const length = random.pick([3, 40, 200]);
      const pad = "x".repeat(length);
      const removed = ids(random.below(PER_OPTION - kept.length), `old-${pad}`);
      const added = ids(random.below(PER_OPTION - kept.length), `new-${pad}`);
      const held = [...kept, ...removed];
      const wanted = [...kept, ...added];
      if (Math.max(bytesOf(held), bytesOf(wanted)) > OPTION_BYTES) continue;
      const growth = {
        ids: Math.max(wanted.length, random.between(held.length, PER_OPTION)) - held.length,
        bytes: OPTION_BYTES - bytesOf(held),
      };
      const parts = contextParts({ add: added, remove: removed }, { growth });
      expect(parts).toHaveLength(Math.ceil((added.length + removed.length) / PER_REQUEST));
      const least = Math.min(held.length, wanted.length);
      // If the limit of bytes counts, several short Context IDs may have to be removed to make room for a long one.
      const spare = bytesOf(held) + bytesOf(added) > OPTION_BYTES ? 300 : 1;
      const states = between(held, parts);
      for (const state of states) {
        expect(state.size).toBeGreaterThanOrEqual(least - spare);
        expect(state.size).toBeLessThanOrEqual(held.length + growth.ids);
        expect(bytesOf(state)).toBeLessThanOrEqual(OPTION_BYTES);
        for (const id of [kept[0], kept.at(-1)]) if (id !== undefined) expect(state.has(id)).toBe(true);
      }
      const after = states.at(-1) ?? new Set(held);
      expect(after.size).toBe(wanted.length);
      expect(wanted.every((id) => after.has(id))).toBe(true);
    }
  });
});

const journal = z.object({
  requests: z.array(z.looseObject({ operation: z.string().nullable(), status: z.number().nullish() })),
});

describe("a long set over HTTP", () => {
  type Service = Awaited<ReturnType<typeof startService>>;

  async function optionOf(service: Service, contexts: readonly string[], name = "Articles", targeting = "Spring") {
    const targetingId = await service.targeting(targeting);
    const made = await service.run({ tool: "bulk_add_options", input: { targetingId, items: [{ name, contexts }] } });
    return made.results[0]?._id ?? "";
  }

  const updates = async ({ control }: Service): Promise<number> =>
    journal.parse(await control("GET", "/requests")).requests.filter(({ operation }) => operation === "updateOptions")
      .length;

  test("of 12,000 other Context IDs takes three requests", async () => {
    const service = await startService();
    const _id = await optionOf(service, ids(12_000, "old"));
    const before = await updates(service);
    const set = ids(12_000, "new");
    const result = await service.run({ tool: "update_contexts", input: { items: [{ _id, set }] } });
    expect(result.counts).toEqual({ items: 1, succeeded: 1 });
    expect((await updates(service)) - before).toBe(3);
    expect((await service.api.getOption(_id, {})).option.contextCount).toBe(12_000);
  });

  test("works in a project that is full, of which other options are not known", async () => {
    const service = await startService();
    const fill = [0, 1, 2, 3].map((at) => ({ name: `Full ${at}`, contexts: ids(46_500, `full-${at}`) }));
    const targetingId = await service.targeting("Full");
    await service.run({ tool: "bulk_add_options", input: { targetingId, items: fill } });
    const _id = await optionOf(service, ids(PER_PROJECT - 4 * 46_500, "old"));
    const set = ids(PER_PROJECT - 4 * 46_500, "new");
    const result = await service.run({ tool: "update_contexts", input: { items: [{ _id, set }] } });
    expect(result.counts).toEqual({ items: 1, succeeded: 1 });
    const { option, contexts } = await service.api.getOption(_id, { limit: 10_000 });
    expect(option.contextCount).toBe(set.length);
    expect(contexts.every((id) => id.startsWith("new"))).toBe(true);
  });

  test("two groups that exchange a Context ID in long sets both get theirs", async () => {
    const service = await startService();
    const targetingId = await service.targeting("Spring");
    const groups = ["x", "y"].map((own) => ({
      name: `Group ${own}`,
      type: "collection" as const,
      contexts: [...ids(12_000, own), `moving-${own}`],
    }));
    const made = await service.run({ tool: "bulk_add_options", input: { targetingId, items: groups } });
    const [one = "", two = ""] = made.results.map(({ _id }) => _id);
    const items = [
      { _id: one, set: [...ids(11_000, "x2"), "moving-y"] },
      { _id: two, set: [...ids(11_000, "y2"), "moving-x"] },
    ];
    const result = await service.run({ tool: "update_contexts", input: { items } });
    expect(result.counts).toEqual({ items: 2, succeeded: 2 });
    const held = async (id: string) =>
      (await readOptionContents(service.api, id, new AbortController().signal)).contexts;
    expect((await held(one)).includes("moving-y")).toBe(true);
    expect((await held(two)).includes("moving-x")).toBe(true);
  });
});
