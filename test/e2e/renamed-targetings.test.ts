import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
const SEEDED = z.object({ targetings: z.array(z.string()) });

/**
 * Starts a session whose server has read the targeting "Shop Campaigns". Then another user renames it to "Shop
 * Promotions".
 */
async function renamedElsewhere() {
  const session = await startSession();
  const { client, sandbox, control } = session;
  const [targetingId = ""] = SEEDED.parse(
    await control("/seed", { targetings: [{ name: "Shop Campaigns" }] }),
  ).targetings;
  await client.callTool("get_targeting", { targetingId });
  const env = cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: sandbox.url });
  const other = await CLIENTS["2026 client, legacy"]({ args: [COMMAND], env });
  await other.callTool("rename_targetings", { items: [{ _id: targetingId, name: "Shop Promotions" }] });
  await control("/seed", { targetings: [{ name: "Shop Campaigns" }] });
  await session.writesSent();
  return { ...session, targetingId };
}

test.for([
  ["bulk_add_options", { items: [{ name: "New One" }] }],
  ["update_options", { items: [{ currentName: "One", name: "Two" }] }],
  ["update_contexts", { items: [{ name: "One", add: ["c-1"] }] }],
  ["delete_options", { names: ["One"] }],
  ["delete_targeting", {}],
  ["get_targeting", {}],
  ["list_options", {}],
  ["get_option", { name: "One" }],
] as const)("%s refuses a remembered name that its targeting no longer has", async ([tool, args]) => {
  const { client, writesSent, targetingId } = await renamedElsewhere();
  const refused = await client.callTool(tool, { targetingName: "Shop Campaigns", ...args });
  expect(refused.isError).toBe(true);
  expect(textOf(refused)).toContain(
    'the targeting that was named "Shop Campaigns" is now named "Shop Promotions"; nothing was sent',
  );
  expect(textOf(refused)).toContain(targetingId);
  expect(await writesSent()).toEqual([]);
  const now = await client.callTool("get_targeting", { targetingName: "Shop Promotions" });
  expect(textOf(now)).toContain(targetingId);
});

test.each([
  { targetingName: "Shop Campaigns", desired: { version: 1, options: [{ name: "One" }] } },
  { desired: { version: 1, targeting: { name: "Shop Campaigns" }, options: [{ name: "One" }] } },
])("plan_targeting refuses it as an argument and in a state: %o", async (given) => {
  const { client, targetingId } = await renamedElsewhere();
  const refused = await client.callTool("plan_targeting", given);
  expect(refused.isError).toBe(true);
  expect(textOf(refused)).toContain(
    `the targeting that was named "Shop Campaigns" (${targetingId}) is now named "Shop Promotions"`,
  );
  const desired = { version: 1, targeting: { _id: targetingId, name: "Shop Campaigns" }, options: [] };
  expect(textOf(await client.callTool("plan_targeting", { desired }))).toMatch(/^Planned.*"Shop Promotions"/);
});

test("the name in an answer about a write by ID finds the targeting afterwards", async () => {
  const { client, control } = await startSession();
  const [targetingId = ""] = SEEDED.parse(
    await control("/seed", { targetings: [{ name: "Shop Brands Seen" }] }),
  ).targetings;
  const created = await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Acme" }] });
  expect(textOf(created)).toContain('"Shop Brands Seen"');
  const listed = await client.callTool("list_options", { targetingName: "Shop Brands Seen" });
  expect(textOf(listed)).toContain("Acme");
});

test("two groups are compared with the number of their sub-options, whose Context IDs are not compared", async () => {
  const { client, control } = await startSession();
  const [targetingId = ""] = SEEDED.parse(await control("/seed", { targetings: [{ name: "Shelves" }] })).targetings;
  const groups = ["Shoes", "Hats"].map((name) => ({ name, type: "collection" }));
  const inside = ["Red", "Blue"].map((name) => ({ name, parentName: "Shoes", contexts: ["c-1"] }));
  await client.callTool("bulk_add_options", {
    targetingId,
    items: [...groups, ...inside, { name: "Cap", parentName: "Hats", contexts: ["c-1"] }],
  });
  const compared = await client.callTool("get_option", { targetingId, name: "Shoes", compareWith: "Hats" });
  expect(textOf(compared)).toContain(
    "Only the options' own Context IDs were compared, not those of sub-options: the first has 2 sub-options, the second 1.",
  );
});
