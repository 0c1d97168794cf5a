import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { readSeed } from "../../src/sandbox/seed.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { ROUTE, withSandbox } from "./service.ts";

const NAMES = ["Shop Categories", "Shop Brands", "Shop Campaigns"];

const arrived = z.object({
  events: z.array(z.looseObject({ at: z.string(), verdict: z.string(), eventName: z.string().nullable() })),
  total: z.number(),
});

describe("the sample", () => {
  test("a small shop: groups, sub-options, Context IDs, and a required option", async () => {
    const seed = await readSeed("sample");
    await withSandbox(
      async (service) => {
        const [categories = "", brands = ""] = seed?.targetings.map(({ _id }) => _id ?? "") ?? [];
        const { items } = await service.list(categories);
        expect(items).toMatchObject([
          { name: "Clothing", type: "collection", childCount: 3 },
          { name: "Shoes", type: "collection", childCount: 2 },
          { name: "Bags", type: "atomic", contextCount: 2 },
          { name: "Gift Cards", contextCount: 0 },
        ]);
        // An option that a product or campaign uses cannot be moved, and its targeting cannot be deleted.
        const [clothing, , bags] = items;
        const move = [{ _id: bags?._id, parent: clothing?._id }];
        expect(await service.bulk(ROUTE.updateOptions, { items: move })).toMatchObject([
          { success: false, error: { errorCode: "TARGETING_CATEGORY_LOCKED" } },
        ]);
        expect(await service.bulk(ROUTE.deleteTargetings, { ids: [brands] })).toMatchObject([
          { success: false, error: { errorCode: "TARGETING_LOCKED" } },
        ]);
        expect((await service.list(brands)).items).toHaveLength(4);
      },
      { seed },
    );
  });

  test("a day of events, of which some were thrown away and one was refused", async () => {
    const now = Date.parse("2026-03-04T12:00:00.000Z");
    await withSandbox(
      async (service) => {
        const { events, total } = arrived.parse((await service.send("GET", "/_sandbox/events")).body);
        expect(total).toBe(22);
        expect(events.filter(({ verdict }) => verdict === "ignored").map(({ eventName }) => eventName)).toEqual([
          "Purchase",
          "purchase",
          "product_view",
        ]);
        expect(events.filter(({ verdict }) => verdict === "rejected")).toHaveLength(1);
        const times = events.map(({ at }) => Date.parse(at));
        expect(times).toEqual([...times].sort((one, other) => one - other));
        expect(now - (times[0] ?? 0)).toBeLessThan(24 * 3_600_000);
        expect(times.at(-1)).toBeLessThan(now);
      },
      { seed: await readSeed("sample", now) },
    );
  });

  test("a data file that holds a state already stays as it is", async () => {
    const dataFile = join(mkdtempSync(join(tmpdir(), "targeting-mcp-sample-")), "state.json");
    const seed = await readSeed("sample");
    for (let round = 1; round <= 2; round += 1) {
      await withSandbox(
        async (service) => {
          const { body } = await service.send("GET", "/_sandbox");
          expect(body).toMatchObject({ projects: [{ targetings: 3 }] });
        },
        { dataFile, seed },
      );
    }
  });
});

/** Starts the server and makes a call. Returns the answer. */
async function called(environment: Readonly<Record<string, string>>, tool: string, args: unknown = {}) {
  const server = startCommand([], environment);
  for (const message of OPENING) server.send(message);
  server.send(toolCall(1, tool, args));
  const answer = await server.answer(1);
  expect(await server.end()).toBe(0);
  return { answer, log: server.stderr() };
}

/** Replaces the seed of other tests, because an empty text counts as not set. */
const NOTHING_SET = { TARGETING_MCP_SANDBOX_SEED: "" };

describe("a server for which nothing is set", () => {
  test("knows the names of the sample", async () => {
    const { answer } = await called(NOTHING_SET, "get_targeting");
    expect(answer).toMatchObject({
      result: { structuredContent: { environment: "sandbox", targetings: NAMES.map((name) => ({ name })) } },
    });
  });

  test("shows its events, and finds its targetings by name", async () => {
    const seen = await called(NOTHING_SET, "inspect_events", { verdict: "ignored" });
    expect(seen.answer).toMatchObject({ result: { structuredContent: { total: 3 } } });
    const { answer } = await called(NOTHING_SET, "list_options", { targetingName: "Shop Brands", search: "fabrikam" });
    expect(answer).toMatchObject({
      result: { structuredContent: { options: [{ name: "Fabrikam" }, { name: "fabrikam" }] } },
    });
  });

  test("with none it is empty", async () => {
    const { answer } = await called({ TARGETING_MCP_SANDBOX_SEED: "none" }, "get_targeting");
    expect(answer).toMatchObject({ result: { structuredContent: { targetings: [] } } });
  });
});

describe("a file of seeds", () => {
  const fileWith = (text: string): string => {
    const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-seed-")), "seed.json");
    writeFileSync(file, text);
    return file;
  };

  test("its targetings are known by name, also where it gives them no ID", async () => {
    const file = fileWith('{"targetings":[{"name":"Mine"}],"events":[{"event":{"uid":"u","eventName":"app_open"}}]}');
    const { answer } = await called({ TARGETING_MCP_SANDBOX_SEED: file }, "get_targeting", { targetingName: "Mine" });
    expect(answer).toMatchObject({ result: { structuredContent: { targeting: { name: "Mine" } } } });
  });

  test.each([
    ["that is not there", "", "cannot be read as a seed"],
    ["of another form", '{"targeting":[]}', "Unrecognized key"],
    ["that does not fit together", '{"options":[{"targeting":"x","name":"a"}]}', "which is not in the project"],
  ])("one %s: the log says why, and the sandbox command refuses it", async (_what, text, why) => {
    const file = text === "" ? join(tmpdir(), "targeting-mcp-no-such-seed.json") : fileWith(text);
    const { answer, log } = await called(
      { TARGETING_MCP_SANDBOX_SEED: file, TARGETING_MCP_RETRY_BUDGET_MS: "0" },
      "create_targetings",
      { items: [{ name: "One" }] },
    );
    expect(JSON.stringify(answer)).toMatch(/seed/);
    expect(log).toContain(why);
    const command = startCommand(["sandbox", "--port", "0", "--seed", file]);
    expect((await command.exited).code).toBe(2);
    expect(command.stderr()).toContain(why);
  });

  test("sandbox --seed sample says what it holds", async () => {
    const command = startCommand(["sandbox", "--port", "0", "--seed", "sample"]);
    await expect.poll(() => command.lines.join("\n")).toContain("Shop Campaigns (");
    command.child.kill("SIGTERM");
    expect((await command.exited).code).toBe(0);
    expect(command.lines.join("\n")).toContain("events: 18 recorded, 3 ignored, 1 rejected");
  });
});
