import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { everyTool } from "../../src/tools/registry.ts";

const TOOLS = await everyTool();

// Hosts with many tools show a model only those that match its words. A plain search in names and descriptions (ranked
// by BM25) must find the right tool among the first three.

const PHRASES = z
  .record(z.string(), z.array(z.string()).min(3))
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, "phrases.json"), "utf8")));

/** The usual constants of BM25: how little a repeated word adds, and how much the length of a text counts. */
const K1 = 1.2;
const B = 0.75;

/** Words that every text has, so they do not help the search. */
const STOP = new Set(
  "a an and are as did do for from in is it of on or that the there these to was what which with".split(" "),
);

/** Returns the important words of a text, in lower case and without a plural ending. */
function wordsOf(text: string): readonly string[] {
  const words = (text.toLowerCase().match(/[a-z]+/g) ?? []).filter((word) => !STOP.has(word));
  return words.map((word) => (word.length > 3 ? word.replace(/s$/, "") : word));
}

const DOCUMENTS = TOOLS.map(({ name, title, description }) => ({
  name,
  words: wordsOf(`${name} ${title} ${description}`),
}));
const MEAN_LENGTH = DOCUMENTS.reduce((sum, { words }) => sum + words.length, 0) / DOCUMENTS.length;

function scoreOf(words: readonly string[], query: readonly string[]): number {
  let score = 0;
  for (const word of new Set(query)) {
    const holding = DOCUMENTS.filter((document) => document.words.includes(word)).length;
    const rarity = Math.log(1 + (DOCUMENTS.length - holding + 0.5) / (holding + 0.5));
    const times = words.filter((one) => one === word).length;
    score += (rarity * times * (K1 + 1)) / (times + K1 * (1 - B + (B * words.length) / MEAN_LENGTH));
  }
  return score;
}

function ranked(phrase: string): readonly string[] {
  const query = wordsOf(phrase);
  return DOCUMENTS.map(({ name, words }) => ({ name, score: scoreOf(words, query) }))
    .sort((one, other) => other.score - one.score)
    .map(({ name }) => name);
}

test("there are 160 phrases, for every tool", () => {
  expect(Object.values(PHRASES).flat().length).toBeGreaterThanOrEqual(160);
  expect(Object.keys(PHRASES).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
});

test("the right tool is among the first three of every phrase", () => {
  const missed = Object.entries(PHRASES).flatMap(([name, phrases]) =>
    phrases.flatMap((phrase) => {
      const first = ranked(phrase).slice(0, 3);
      return first.includes(name) ? [] : [`${name}: "${phrase}" finds ${first.join(", ")}`];
    }),
  );
  expect(missed).toEqual([]);
});
