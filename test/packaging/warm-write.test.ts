import { mkdtemp, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { OPENING, startNode, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

/**
 * In how many source files a write runs code after earlier writes have loaded everything. This number may only shrink,
 * so that a reader can follow a write. The goal is 60.
 */
const MAX_FILES = 71;

const SOURCE = join(import.meta.dirname, "..", "..", "src");

const coverage = z.object({
  result: z.array(
    z.object({
      url: z.string(),
      functions: z.array(z.object({ ranges: z.tuple([z.object({ count: z.number() })]).rest(z.unknown()) })),
    }),
  ),
});
const result = z.object({ result: z.object({ structuredContent: z.looseObject({ status: z.string() }) }) });

test("a write of a warm server runs code in few files of the source", async () => {
  const sandbox = await startService();
  const targetingId = await sandbox.targeting("Shop");
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-warm-"));
  const hook = join(import.meta.dirname, "..", "support", "take-coverage.mjs");
  // Starts the server from the source, where each file is a separate script.
  const server = startNode(["--import", "tsx", "--import", hook, join(SOURCE, "main.ts"), "stdio"], {
    ...{ NODE_V8_COVERAGE: folder, TARGETING_MCP_PAGE: "off" },
    ...{ TARGETING_MCP_MODE: "live", TARGETING_API_URL: sandbox.url, TARGETING_API_KEY: "sandbox-key" },
  });
  for (const message of OPENING) server.send(message);
  let calls = 0;
  const write = async (): Promise<void> => {
    calls += 1;
    const items = [{ name: `Option ${calls}`, contexts: ["a"] }];
    server.send(toolCall(calls, "bulk_add_options", { targetingId, items }));
    expect(result.parse(await server.answer(calls)).result.structuredContent.status).toBe("succeeded");
  };
  /** Returns the files in which functions have run since the last call. */
  const ranSince = async (before: readonly string[]): Promise<readonly string[]> => {
    server.child.kill("SIGUSR2");
    let ran: readonly string[] = [];
    const taken = async () => {
      const [fresh] = (await readdir(folder)).filter((file) => !before.includes(file));
      const { result } = coverage.parse(JSON.parse(await readFile(join(folder, fresh ?? ""), "utf8")));
      const used = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0));
      ran = used.flatMap(({ url }) => url.split(`${SOURCE}/`)[1] ?? []).sort();
    };
    await expect
      .poll(() =>
        taken().then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    return ran;
  };
  await write();
  await write();
  const all = await ranSince([]);
  expect(all.length).toBeGreaterThan(MAX_FILES);
  const before = await readdir(folder);
  // Each write leaves some work for later, which would be counted with the next one.
  for (let more = 0; more < 3; more += 1) await write();
  const ran = await ranSince(before);
  expect(ran).toContain("tools/bulk-add-options.ts");
  expect(ran).toContain("api/http.ts");
  expect(ran.length, ran.join("\n")).toBeLessThanOrEqual(MAX_FILES);
});
