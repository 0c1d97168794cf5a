import { expect, test } from "vitest";
import * as z from "zod";
import { RECORDED } from "./recorded.ts";
import { replay } from "./replay.ts";
import { startWorld } from "./world.ts";

// Each request has the calls that an agent once made for it. The current server must accept every call and have the
// same results. `docs/contributing/try-with-a-model.md` describes how to try these requests with a model.

test("there are many, each under a name of its own", () => {
  expect(RECORDED.length).toBeGreaterThanOrEqual(30);
  expect(new Set(RECORDED.map(({ name }) => name)).size).toBe(RECORDED.length);
});

test.each(RECORDED)("$name", async (request) => {
  const world = await startWorld(request.world);
  const replayed = await replay(request, world);
  for (const [at, call] of request.calls.entries()) {
    const { isError, text, structured } = replayed[at] ?? {};
    expect({ isError, text }, `call ${at + 1}, ${call.tool}`).toMatchObject({ isError: call.isError });
    expect(asGiven(structured, call.gives, world.folder), `call ${at + 1}, ${call.tool}: ${text}`).toEqual(call.gives);
  }
  if (request.holds !== undefined) expect(await world.holds()).toEqual(request.holds);
  expect(await world.arrived()).toEqual(request.arrived);
});

/**
 * Returns the part of an answer that the expectation describes: its fields, and the length of a list where a number is
 * expected.
 */
function asGiven(value: unknown, told: unknown, folder: string): unknown {
  if (typeof value === "string") return value.replaceAll(folder, "{files}");
  if (Array.isArray(value) && typeof told === "number") return value.length;
  const [fields, asked] = [fieldsOf(value), fieldsOf(told)];
  if (fields === undefined || asked === undefined) return value;
  return Object.fromEntries(Object.keys(asked).map((name) => [name, asGiven(fields[name], asked[name], folder)]));
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const { data } = z.record(z.string(), z.unknown()).safeParse(value);
  return data;
}
