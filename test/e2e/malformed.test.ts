import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { connected } from "../agents/replay.ts";
import { startWorld } from "../agents/world.ts";
import { textOf } from "../support/clients.ts";

// Invalid arguments that models really sent. Either the server understands the call, or its answer says how to correct
// the call, and the corrected call succeeds.

const args = z.record(z.string(), z.unknown());
const cases = z
  .array(
    z.strictObject({
      kind: z.string(),
      tool: z.string(),
      arguments: args,
      /** What the answer must mention if the server does not understand the arguments. */
      names: z.array(z.string()).min(1).optional(),
      /** The corrected call. */
      next: args.optional(),
    }),
  )
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, "malformed.json"), "utf8")));

const WORLD = { targetings: { Footwear: [{ name: "Sneakers", contexts: ["sn-{1..3}"] }, { name: "Boots" }] } };

test("malformed arguments are understood, or the answer leads to a call that succeeds", async () => {
  const world = await startWorld({ ...WORLD, unseen: [], files: {}, events: [], faults: [] });
  const client = await connected(world, false);
  for (const targetingId of world.seen) await client.callTool("get_targeting", { targetingId });
  const before = await world.holds();
  const wrong: string[] = [];
  for (const { kind, tool, arguments: given, names, next } of cases) {
    const answer = await client.callTool(tool, given);
    const words = textOf(answer);
    const call = `${kind}: ${tool} ${JSON.stringify(given)}`;
    if (names === undefined) {
      if (answer.isError === true) wrong.push(`${call} is not understood: ${words}`);
      continue;
    }
    if (answer.isError !== true) wrong.push(`${call} was taken: ${words}`);
    for (const name of names) if (!words.includes(name)) wrong.push(`${call} is not told ${name}: ${words}`);
    const second = await client.callTool(tool, next ?? {});
    if (second.isError === true) wrong.push(`${call}, then ${JSON.stringify(next)}: ${textOf(second)}`);
  }
  expect(wrong).toEqual([]);
  expect(await world.holds()).toEqual(before);
});

test("the corpus holds every way that is known, and every tool that takes more than an ID", () => {
  expect(cases.length).toBeGreaterThanOrEqual(60);
  expect(new Set(cases.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(20);
});
