import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const page = z.object({
  environment: z.literal("sandbox"),
  options: z.array(z.looseObject({ _id: z.string(), name: z.string() })),
  cursor: z.string().optional(),
});

describe("tools that read", () => {
  const connect = CLIENTS["2025 client"];

  test("lists and calls the reading tools", async () => {
    const sandbox = await startService();
    const targetingId = await sandbox.targeting("Sports fans");
    const [groupId = ""] = await sandbox.options(targetingId, [
      {
        name: "Ball games",
        type: "collection",
        contexts: ["ball"],
        children: [{ name: "Football", contexts: ["goal"] }],
      },
      { name: "Running", contexts: ["goal", "shoe"] },
    ]);
    const client = await connect({
      args: [COMMAND],
      env: cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: sandbox.url }),
    });
    expect((await client.listTools()).map((tool) => tool.name).slice(0, 3)).toEqual([
      "get_targeting",
      "list_options",
      "get_option",
    ]);
    expect(client.instructions()?.length).toBeLessThan(2000);

    const targeting = await client.callTool("get_targeting", { targetingId });
    expect(targeting.structuredContent).toMatchObject({
      environment: "sandbox",
      targeting: { _id: targetingId, name: "Sports fans" },
    });
    expect(textOf(targeting)).toContain('"Sports fans"');

    const byName = await client.callTool("list_options", { targetingName: "Sports fans" });
    expect(page.parse(byName.structuredContent).options.map((option) => option.name)).toEqual([
      "Ball games",
      "Running",
    ]);
    const inside = await client.callTool("list_options", { targetingId, parent: groupId });
    expect(page.parse(inside.structuredContent).options).toMatchObject([{ name: "Football", parent: groupId }]);
    const found = await client.callTool("list_options", { targetingId, contextId: "goal" });
    expect(page.parse(found.structuredContent).options.map((option) => option.name)).toEqual(["Football", "Running"]);
    const option = await client.callTool("get_option", { optionId: groupId });
    expect(option.structuredContent).toMatchObject({ option: { name: "Ball games" }, contexts: ["ball"], total: 1 });
  });

  test("errors are answers that say what to do", async () => {
    const sandbox = await startService();
    const client = await connect({
      args: [COMMAND],
      env: cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: sandbox.url }),
    });
    const unknown = await client.callTool("get_targeting", { targeting_id: "x" });
    expect(unknown.isError).toBe(true);
    expect(textOf(unknown)).toContain(
      "did you mean targetingId? (valid arguments: targetingId, targetingName, summary, cursor)",
    );
    expect(textOf(await client.callTool("get_targeting", { targetingId: "x" }))).toContain("not a ULID");
    expect(textOf(await client.callTool("get_option", { optionId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }))).toContain(
      "no option with this ID exists",
    );
    expect(textOf(await client.callTool("get_targeting", { targetingName: "Nobody" }))).toContain(
      'no targeting named "Nobody" has been seen',
    );
  });
});

test("the memory of names outlives the process", async () => {
  const sandbox = await startService();
  const targetingId = await sandbox.targeting("Sports fans");
  const env = cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: sandbox.url });
  const connect = CLIENTS["2026 client, legacy"];
  const first = await connect({ args: [COMMAND], env });
  await first.callTool("get_targeting", { targetingId });
  await first.close();
  const second = await connect({ args: [COMMAND], env });
  expect((await second.callTool("get_targeting", {})).structuredContent).toMatchObject({
    targetings: [{ _id: targetingId, name: "Sports fans" }],
  });
});
