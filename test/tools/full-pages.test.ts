import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { listOptions } from "../../src/tools/list-options.ts";
import { type HeldOption, readingApi, toolContext, ulidOf } from "../support/tool-context.ts";

const targetingId = ulidOf(0);
const MAX_TOKENS = 3500;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

const page = z.object({
  options: z.array(z.looseObject({ _id: z.string(), name: z.string(), parentName: z.string().optional() })),
  total: z.number(),
  cursor: z.string(),
  note: z.string(),
});

/** Returns a source of numbers from 0 to 1, the same for the same seed (a linear congruential generator). */
function randomBy(seed: number): () => number {
  let state = seed * 7919;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const WORDS = (
  "Summer Winter Running Leather Garden Premium Kitchen Outlet Travel Family Vintage Modern Classic Organic Coffee " +
  "Jackets Sneakers Lighting Bedroom Camping"
).split(" ");

/**
 * Returns random options of a seed. `beginning` makes the beginnings of their IDs. Their names have 17 to 20 letters.
 */
function optionsBy(seed: number, beginning: (random: () => number) => string) {
  const random = randomBy(seed);
  const letters = (count: number) => Array.from({ length: count }, () => CROCKFORD[Math.floor(random() * 32)]).join("");
  const word = () => WORDS[Math.floor(random() * WORDS.length)] ?? "";
  const used = new Set<string>();
  const name = (): string => {
    for (;;) {
      const words = [word(), word(), random() < 0.5 ? word() : String(10 + Math.floor(random() * 90))].join(" ");
      if (words.length < 17 || words.length > 20 || used.has(words)) continue;
      used.add(words);
      return words;
    }
  };
  const begin = beginning(random);
  const option = () => {
    const _id = `${begin}${letters(26 - begin.length)}`;
    return { _id, name: name(), type: "atomic" as const, contextCount: Math.floor(random() * 500) };
  };
  const group = (size: number): HeldOption => {
    const { _id, name } = option();
    const subOptions = Array.from({ length: size }, () => ({ ...option(), parent: _id }));
    return { _id, name, type: "collection", contextCount: 0, childCount: size, subOptions };
  };
  return { option, group };
}

/**
 * The beginning of IDs that were created in one moment, as those of one request are. How many tokens it takes depends
 * on the moment.
 */
const oneTime = (random: () => number) =>
  `01${Array.from({ length: 8 }, () => CROCKFORD[Math.floor(random() * 32)]).join("")}`;
/** The beginning of IDs that were created within one year. */
const oneYear = () => "01K";
const dearest = () => "01J2W2B4XQ";

async function fullPage(options: readonly HeldOption[], given: object) {
  const { context } = toolContext(readingApi(options).api);
  const { structured, text } = await listOptions.handler(
    listOptions.input().parse({ targetingId, limit: 1000, ...given }),
    context,
  );
  expect(countTokens(text) + countTokens(JSON.stringify(structured))).toBeLessThanOrEqual(MAX_TOKENS);
  const { options: rows, note, ...rest } = page.parse(structured);
  expect(note).toMatch(new RegExp(`^Only ${rows.length} of the \\d+ requested options fit into this answer`));
  expect(text).toContain(note);
  return { rows, text, ...rest };
}

describe.each([
  ["of one moment", oneTime, 55, 35],
  ["of the dearest moment", dearest, 55, 35],
  // Their IDs have only the first three letters in common.
  ["of one year", oneYear, 54, 35],
] as const)("a full page of options %s", (_, beginning, least, leastInGroup) => {
  test.each(SEEDS)(`holds at least ${least} without parents (seed %i)`, async (seed) => {
    const { option } = optionsBy(seed, beginning);
    const options = Array.from({ length: 90 }, option);
    const { rows, text } = await fullPage(options, {});
    expect(rows.length).toBeGreaterThanOrEqual(least);
    // The text contains each ID completely: the common beginning once, and the rest in each row.
    const left = / Each ID begins with (\w+), which is omitted here\.\n/.exec(text)?.[1] ?? "";
    expect(left.length).toBeGreaterThanOrEqual(3);
    for (const { _id, name } of rows) {
      expect(_id.startsWith(left)).toBe(true);
      expect(text).toMatch(new RegExp(`^${_id.slice(left.length)}:\\d+ ${name}$`, "m"));
    }
  });

  test.each(SEEDS)(`holds at least ${leastInGroup} with parents (seed %i)`, async (seed) => {
    const { group } = optionsBy(seed, beginning);
    const one = group(90);
    for (const given of [{ parent: one._id }, { parent: one._id, sortBy: "contextCount" }, { search: " " }]) {
      const { rows, text } = await fullPage([one], given);
      expect(rows.length, JSON.stringify(given)).toBeGreaterThanOrEqual(leastInGroup);
      expect(rows.filter(({ parentName }) => parentName === one.name).length).toBeGreaterThanOrEqual(rows.length - 1);
      expect(text).toContain(`\nin ${one.name}\n`);
    }
  });

  test.each(SEEDS)("holds at least 28 where each has another parent (seed %i)", async (seed) => {
    const { group } = optionsBy(seed, beginning);
    const contextIds = ["held"];
    const groups = Array.from({ length: 50 }, () => {
      const { subOptions = [], ...one } = group(1);
      return { ...one, subOptions: subOptions.map((option) => ({ ...option, contextCount: 1, contexts: contextIds })) };
    });
    const { rows } = await fullPage(groups, { contextIds });
    expect(rows.length).toBeGreaterThanOrEqual(28);
  });
});

describe.each(["01GFEGZJTM", "01DWSZQTHY", "01RDBZPWBV", "01GFEGNTGJ", "01QBGYBMCJ"])(
  "IDs that begin with %s",
  (begin) => {
    test.each(SEEDS)(
      "take more tokens than most: a page of short names stays within its budget (seed %i)",
      async (seed) => {
        const { option } = optionsBy(seed, () => begin);
        const options = Array.from({ length: 200 }, (_, at) => ({
          ...option(),
          name: `Trip ${at}`,
          contextCount: at % 60,
        }));
        const { rows } = await fullPage(options, {});
        expect(rows.length).toBeGreaterThanOrEqual(55);
      },
    );
  },
);

test("a page that holds all has the whole of each ID", async () => {
  const { option } = optionsBy(1, oneTime);
  const options = Array.from({ length: 20 }, option);
  const { context } = toolContext(readingApi(options).api);
  const { text } = await listOptions.handler(listOptions.input().parse({ targetingId }), context);
  for (const { _id, contextCount, name } of options) expect(text).toContain(`${_id}:${contextCount} ${name}`);
  expect(text).not.toContain("which is omitted here");
});
