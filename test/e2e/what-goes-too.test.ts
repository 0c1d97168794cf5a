import { expect, test } from "vitest";
import { call, textOf } from "../support/clients.ts";
import { startSession, tokensOfResult } from "../support/writing.ts";

// Checks what a deletion or a move changes in addition to the objects that the call names.

const TARGETING = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
const id = (at: number): string => `01HZZZZZZZZZZZZZZZZZZZZA${String(at).padStart(2, "0")}`;

/**
 * Creates two groups without own Context IDs, one with one, and an option. Also returns the questions to the person.
 */
async function shop(more = 0) {
  const asked: string[] = [];
  const session = await startSession({
    answer(message) {
      asked.push(message);
      return { action: "decline" };
    },
  });
  const option = (at: number, name: string, fields: object) => ({ _id: id(at), targeting: TARGETING, name, ...fields });
  await session.control("/seed", {
    targetings: [{ _id: TARGETING, name: "Shop" }],
    options: [
      option(0, "Hats", { type: "collection", contexts: [] }),
      option(1, "Caps", { parent: id(0), contexts: ["c1", "c2"] }),
      option(2, "Shoes", { type: "collection", contexts: ["s"] }),
      option(3, "Boots", { parent: id(2), contexts: ["b1"] }),
      option(4, "Gloves", { contexts: [] }),
      ...Array.from({ length: more }, (_, at) => option(10 + at, `More ${at}`, { contexts: ["m"] })),
    ],
  });
  return { client: session.client, asked };
}

test("a targeting goes with its Context IDs: counted, and its options named, in the dry run and the question", async () => {
  const { client, asked } = await shop();
  const planned = await call(client, "delete_targeting", { targetingId: TARGETING, dryRun: true });
  await client.callTool("delete_targeting", { targetingId: TARGETING });
  for (const text of [planned.text, asked[0] ?? ""]) {
    expect(text).toContain("deletes 1 targeting with 5 options and 4 Context IDs.");
    expect(text).toContain("Options deleted with their targeting (5):");
    expect(text).toContain(`"Caps" (${id(1)}): 2 Context IDs`);
    expect(text).toContain(`"Gloves" (${id(4)}): no Context IDs`);
  }
});

test("the undo of a new targeting says how many Context IDs go with it", async () => {
  const { client, asked } = await shop();
  const options = [
    { name: "Hats", contexts: ["a", "b"] },
    { name: "Shoes", type: "collection", contexts: ["c"], children: [{ name: "Boots", contexts: ["d"] }] },
  ];
  const made = await call(client, "create_targetings", { items: [{ name: "Made", options }] });
  const undo = await call(client, "undo_run", { runId: made.runId });
  await client.callTool("apply_plan", { runId: undo.runId });
  expect(asked[0]).toContain("deletes 1 targeting with 3 options and 4 Context IDs.");
});

test("of a large targeting the first and last options are named, within the budget of an answer", async () => {
  const { client, asked } = await shop(80);
  const planned = await client.callTool("delete_targeting", { targetingId: TARGETING, dryRun: true });
  expect(tokensOfResult(planned)).toBeLessThan(2500);
  expect(textOf(planned)).toContain("with 85 options and 84 Context IDs.");
  expect(textOf(planned)).toContain('"More 79"');
  await client.callTool("delete_targeting", { targetingId: TARGETING });
  expect(asked[0]).toContain("… 65 more …");
});

test("a group that a deletion would leave empty is named, and what stays", async () => {
  const { client, asked } = await shop();
  const call1 = { targetingId: TARGETING, names: ["Caps", "Boots", "Gloves"] };
  const planned = await call(client, "delete_options", { ...call1, dryRun: true });
  expect(planned.text).toContain("Would delete 2 of 3 options; 1 would fail.");
  expect(planned.text).toContain('the option is the last sub-option of "Hats", a group without Context IDs of its own');
  await client.callTool("delete_options", call1);
  for (const text of [planned.text, asked[0] ?? ""]) {
    expect(text).toContain("This deletes 2 options with ");
    expect(text).toContain("1 option stays: its group cannot be empty.");
    expect(text).toContain(`Groups that keep their last sub-option (1):\n"Hats" (${id(0)}): keeps "Caps"`);
  }
  // The last sub-option can be deleted together with its group.
  const whole = await call(client, "delete_options", { ids: [id(0), id(1)], dryRun: true });
  expect(whole.text).toContain("Would delete 2 options.");
  expect(whole.text).not.toContain("stays");
});

test("nobody is asked about a deletion of which the service would carry out nothing", async () => {
  const { client, asked } = await shop();
  for (const dryRun of [true, false]) {
    const alone = await call(client, "delete_options", { targetingId: TARGETING, names: ["Caps"], dryRun });
    expect(alone.counts).toMatchObject({ items: 1, failed: 1 });
    expect(alone.text).toContain('the option is the last sub-option of "Hats", a group without Context IDs of its own');
    expect(alone.text).not.toContain("approve");
    expect(alone.text).not.toContain("A request to delete");
  }
  expect(asked).toEqual([]);
});

test("a group that a move would leave empty is named in the dry run", async () => {
  const { client } = await shop();
  const move = (items: readonly object[]) =>
    call(client, "update_options", { targetingId: TARGETING, items, dryRun: true });
  const emptied = await move([
    { currentName: "Caps", parentName: "Shoes" },
    { currentName: "Boots", parent: null },
  ]);
  expect(emptied.counts).toMatchObject({ items: 2, failed: 1 });
  expect(emptied.text).toContain('the option is the last sub-option of "Hats", a group without Context IDs of its own');
  expect(emptied.text).toContain("First give this group Context IDs or another sub-option.");
});

test("nobody is asked to approve that a group without sub-options loses its last Context ID", async () => {
  const { client, asked } = await shop();
  const made = { targetingId: TARGETING, items: [{ name: "Bare", type: "collection", contexts: ["e1", "e2"] }] };
  await call(client, "bulk_add_options", made);
  const items = [{ name: "Bare", remove: ["e1", "e2"] }];
  const refused = await call(client, "update_contexts", { targetingId: TARGETING, items });
  expect(asked).toEqual([]);
  expect(refused.counts).toMatchObject({ failed: 1 });
  expect(refused.text).toContain("the group has no sub-options and would lose its last Context ID");
});
