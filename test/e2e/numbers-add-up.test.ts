import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
type Session = Awaited<ReturnType<typeof startSession>>;

const OF_200 = Array.from({ length: 200 }, (_, at) => ({
  name: `Model ${at}`,
  ...(at > 0 && { contexts: [`m${at}`] }),
}));

/** Makes a call that needs approval, and approves it with its token. */
async function approved(session: Session, tool: string, args: Readonly<Record<string, unknown>>): Promise<void> {
  const { confirmation } = await session.write(tool, args);
  const done = await session.write(tool, { confirmation: confirmation?.token });
  expect(done.status).toBe("succeeded");
}

test("new targetings and their options are counted separately", async () => {
  const session = await startSession();
  const items = [{ name: "Shop", options: [{ name: "Shoes", children: [{ name: "Boots" }] }] }, { name: "Empty" }];
  const planned = await session.client.callTool("create_targetings", { items, dryRun: true });
  expect(textOf(planned)).toContain("Would create 2 targetings with 2 options. Run");
  const made = await session.client.callTool("create_targetings", { items });
  expect(textOf(made)).toContain("Created 2 targetings with 2 options. ");
  const bare = await session.client.callTool("create_targetings", { items: [{ name: "Bare" }] });
  expect(textOf(bare)).toContain("Created 1 targeting. Run");
  const taken = [{ name: "Shop", options: [{ name: "Shoes" }, { name: "Hats" }] }];
  const failed = await session.client.callTool("create_targetings", { items: taken });
  expect(textOf(failed)).toContain("1 targeting with 2 options: 1 failed, 2 not applied. Run");
});

test("a small share is less than 1 %, and names the targeting", async () => {
  const session = await startSession();
  await session.client.callTool("create_targetings", { items: [{ name: "Large", options: OF_200 }] });
  await session.client.callTool("bulk_add_options", {
    targetingName: "Large",
    items: OF_200.map(({ name }) => ({ name: `${name} B` })),
  });
  const asked = await session.client.callTool("delete_options", { targetingName: "Large", names: ["Model 0"] });
  expect(textOf(asked)).toContain('That is 1 of the 400 options of "Large" (less than 1 %).');
});

test("an undo counts what is as before already, and a later undo plans only what was left", async () => {
  const session = await startSession({ env: { TARGETING_MCP_PAGE: "off" } });
  await session.client.callTool("create_targetings", { items: [{ name: "Undone" }] });
  const made = await session.write("bulk_add_options", {
    targetingName: "Undone",
    items: ["Shoes", "Boots", "Hats"].map((name) => ({ name, contexts: [name] })),
  });
  const [, boots] = made.results;
  await session.client.callTool("update_options", { items: [{ _id: boots?._id, name: "High Boots" }] });
  await approved(session, "delete_options", { targetingName: "Undone", names: ["Hats"] });
  const planned = await session.client.callTool("undo_run", { runId: made.runId });
  expect(textOf(planned)).toContain(
    "1 will be undone exactly, 1 changed since and will not be undone, 1 already undone;",
  );
  const undo = String(planned.structuredContent?.runId);
  await approved(session, "apply_plan", { runId: undo });
  const again = await session.client.callTool("undo_run", { runId: made.runId });
  expect(textOf(again)).toContain("1 changed since and will not be undone, 1 already undone; nothing was sent.");
  expect(textOf(again)).toContain(`Run ${undo} has undone the rest before.`);
  const part = await session.client.callTool("get_run", { runId: made.runId });
  expect(textOf(part)).toContain(`This run was undone in part by run ${undo} and cannot be resumed.`);
  await session.client.callTool("update_options", { items: [{ _id: boots?._id, name: "Boots" }] });
  const rest = await session.client.callTool("undo_run", { runId: made.runId });
  const last = String(rest.structuredContent?.runId);
  await approved(session, "apply_plan", { runId: last });
  const third = await session.client.callTool("undo_run", { runId: made.runId });
  expect(textOf(third)).toContain(`this run was undone before by runs ${undo} and ${last}`);
  expect(textOf(third)).toContain(`undo_run {"runId":"${last}"}`);
  const shown = await session.client.callTool("get_run", { runId: made.runId });
  expect(textOf(shown)).toContain(`This run was undone by run ${last} and cannot be resumed.`);
});

test("a missing group says how to create it, and how many there are", async () => {
  const session = await startSession();
  const groups = Array.from({ length: 12 }, (_, at) => ({ name: `Group ${at}`, children: [{ name: `Child ${at}` }] }));
  await session.client.callTool("create_targetings", { items: [{ name: "Grouped", options: groups }] });
  const items = [
    { name: "One", parentName: "Nope" },
    { name: "Two", parentName: "None" },
  ];
  const added = await session.client.callTool("bulk_add_options", { targetingName: "Grouped", items });
  expect(textOf(added)).toMatch(
    /: item 1: the targeting has no option group named "Nope"\. Existing groups: .* and 7 more\./,
  );
  expect(textOf(added)).toContain(
    'To create this group, add to the same call an item or row with its name and type "collection".',
  );
});

test("a group that exists and has an item of the same call is listed once", async () => {
  const session = await startSession();
  const groups = ["Summer", "Shoes"].map((name) => ({ name, children: [{ name: `${name} 1` }] }));
  await session.client.callTool("create_targetings", { items: [{ name: "Seasons", options: groups }] });
  const added = await session.client.callTool("bulk_add_options", {
    targetingName: "Seasons",
    items: [
      { name: "Summer", type: "collection", children: [{ name: "Hats" }] },
      { name: "Boots", parentName: "Nope" },
    ],
  });
  expect(textOf(added)).toContain('Existing groups: "Summer", "Shoes". ');
});

test("a group that the same call renames is found by its new name, too", async () => {
  const session = await startSession();
  await session.client.callTool("create_targetings", {
    items: [{ name: "Renamed", options: [{ name: "Tulip" }, { name: "Spring", children: [{ name: "Rose" }] }] }],
  });
  const items = [
    { currentName: "Spring", name: "Seasonal" },
    { currentName: "Tulip", parentName: "Seasonal" },
  ];
  const moved = await session.client.callTool("update_options", { targetingName: "Renamed", items });
  expect(textOf(moved)).toMatch(/"Tulip" \w{26} from the top level to group "Seasonal"/);
});

test("a move between two groups of one name gives the IDs of the groups", async () => {
  const session = await startSession();
  const targetingId = await session.sandbox.targeting("Twice");
  const [from = ""] = await session.sandbox.options(targetingId, [
    { name: "Sports", children: [{ name: "Golf" }, { name: "Rugby" }] },
  ]);
  const to = "01J00000000000000000000000";
  const second = { _id: to, targeting: targetingId, name: "Sports", type: "collection", contexts: ["a"] };
  await session.control("/seed", { options: [second] });
  const moved = await session.client.callTool("update_options", {
    targetingId,
    items: [{ currentName: "Golf", parent: to }],
  });
  expect(textOf(moved)).toMatch(/Moved \(item 1\): "Golf" \w{26} from/);
  expect(textOf(moved)).toContain(`from group "Sports" ${from} to group "Sports" ${to}`);
});

test("a dry run of renames shows before and after, and that a swap takes more requests", async () => {
  const session = await startSession();
  await session.client.callTool("create_targetings", {
    items: [
      {
        name: "Swapped",
        options: [{ name: "Tulip" }, { name: "Rose" }, { name: "Spring", children: [{ name: "Fern" }] }],
      },
    ],
  });
  const items = [
    { currentName: "Tulip", name: "Rose" },
    { currentName: "Rose", name: "Tulip" },
  ];
  const planned = await session.client.callTool("update_options", { targetingName: "Swapped", items, dryRun: true });
  expect(textOf(planned)).toMatch(/^Would rename \(items 1-2\): "Tulip" → "Rose" \w{26}, "Rose" → "Tulip" \w{26}$/m);
  expect(textOf(planned)).toContain("Names would be swapped, so 1 option is renamed twice");
  expect(planned.structuredContent?.results).toMatchObject([
    { from: "Tulip", to: "Rose" },
    { from: "Rose", to: "Tulip" },
  ]);
});

test("a name that stays taken is explained by the item of the same call that failed", async () => {
  const session = await startSession();
  const options = [{ name: "Tulip" }, { name: "Rose" }, { name: "Fern" }, { name: "Held" }];
  await session.client.callTool("create_targetings", { items: [{ name: "Chained", options }] });
  const renames = [
    ["Tulip", "Rose"],
    ["Rose", "Fern"],
    ["Fern", "F_rn"],
    ["Held", "Held 2"],
  ];
  const items = renames.map(([currentName, name]) => ({ currentName, name }));
  for (const dryRun of [true, false]) {
    const text = textOf(await session.client.callTool("update_options", { targetingName: "Chained", items, dryRun }));
    expect(text).toMatch(
      /^TARGETING_CATEGORY_NAME_DUPLICATE, 2 items \(1-2\) .*, but item 3 failed\. Fix item 3, and make /m,
    );
    expect(text).not.toContain("free this one first");
  }
});

test("what failed inside of a new targeting is not sent again with the targeting", async () => {
  const session = await startSession();
  const items = [{ name: "Inside", options: [{ name: "Tulip" }, { name: "x" }] }, { name: "y" }];
  const made = await session.client.callTool("create_targetings", { items });
  expect(textOf(made)).toContain(
    "Next: fix and send only item 2 again with create_targetings, and add what failed inside item 1 with bulk_add_options. ",
  );
});

test("rows that are there already are counted, not listed as if they were all", async () => {
  const session = await startSession();
  await session.client.callTool("create_targetings", { items: [{ name: "Again" }] });
  const call = { targetingName: "Again", items: OF_200.slice(0, 60), onExisting: "addContexts" };
  await session.client.callTool("bulk_add_options", call);
  const again = await session.client.callTool("bulk_add_options", { ...call, items: [...call.items, { name: "New" }] });
  expect(textOf(again)).toMatch(/^Created 1 of 61 options, left 59 unchanged in "Again" .*; 1 already there\./);
  expect(textOf(again)).toMatch(/^Created \(item 61\): "New" \w{26}$/m);
  expect(textOf(again)).toMatch(/^Unchanged \(items 2-4\): "Model 1" \w{26} \(1 already there\), .* and 56 more/m);
});

test("cancelling a run that had ended says that nothing was cancelled", async () => {
  const session = await startSession();
  const made = await session.write("create_targetings", { items: [{ name: "Ended" }] });
  const cancelled = await session.client.callTool("cancel_run", { runId: made.runId });
  expect(textOf(cancelled)).toContain("This run had ended before, so nothing was cancelled.");
});

test("several items about one option count it once", async () => {
  const session = await startSession();
  const options = ["Aa", "Bb", "Cc"].map((name) => ({ name, contexts: [`${name}-1`] }));
  await session.client.callTool("create_targetings", { items: [{ name: "Counted", options }] });
  const items = [
    { name: "Aa", add: ["k1"] },
    { name: "Aa", add: ["k2"] },
    { name: "Aa", remove: ["Aa-1"] },
    { name: "Bb", add: ["k3"] },
  ];
  const textAfter = async (more: object) =>
    textOf(await session.client.callTool("update_contexts", { targetingName: "Counted", ...more }));
  const planned = await textAfter({ items, dryRun: true });
  expect(planned).toContain("Would change 2 options (4 items). ");
  expect(planned).toContain("adds Context IDs to 2 options");
  expect(await textAfter({ items })).toMatch(
    /^Changed the Context IDs of 2 options \(4 items\) in "Counted" \(\w+\), which has 3 options\./,
  );
  const again = [...items.slice(0, 2), { names: ["Bb", "Cc"], add: ["k3"] }, { name: "Dd", add: ["k3"] }];
  expect(await textAfter({ items: again })).toMatch(
    /^Changed the Context IDs of 1 option, left 2 unchanged \(4 of 5 items\) in .*, which has 3 options; 1 failed\./,
  );
  expect(await textAfter({ items: [{ names: ["Aa", "Bb"], add: ["k4"] }] })).toMatch(
    /^Changed the Context IDs of 2 options in /,
  );
});

test("a question about a deletion says which options are in a group", async () => {
  const session = await startSession();
  const options = [
    { name: "Plain" },
    { name: "Shoes", type: "collection", children: [{ name: "Inside" }, { name: "Stays" }] },
  ];
  await session.client.callTool("create_targetings", { items: [{ name: "In a group", options }] });
  const call = { targetingName: "In a group", names: ["Plain", "Inside"], dryRun: true };
  const planned = textOf(await session.client.callTool("delete_options", call));
  expect(planned).toMatch(/"Plain" \(\w{26}\): no Context IDs$/m);
  expect(planned).toMatch(/"Inside" \(\w{26}\): sub-option with no Context IDs$/m);
});

test("a dry run also counts the renames to a name that a failed rename does not free", async () => {
  const session = await startSession();
  const options = [{ name: "Shoes", children: [{ name: "Boots" }] }, { name: "Hats" }, { name: "Caps" }];
  await session.client.callTool("create_targetings", { items: [{ name: "Not freed", options }] });
  const items = [
    { currentName: "Caps", name: "Hats" },
    { currentName: "Hats", name: "Boots" },
    { currentName: "Boots", name: "Sandals", parent: null },
  ];
  const call = { targetingName: "Not freed", items };
  const planned = textOf(await session.client.callTool("update_options", { ...call, dryRun: true }));
  expect(planned).toContain("Would change no option; 3 would fail.");
  const done = textOf(await session.client.callTool("update_options", call));
  expect(done).toContain("3 failed");
});
