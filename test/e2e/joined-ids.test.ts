import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

// A person pasted a list of Context IDs as a single one.

const startSession = warmSessions();

async function shop(env = {}) {
  const { client, sandbox } = await startSession({ env });
  const targetingId = await sandbox.targeting("Shop");
  const [_id = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ["old, held"] }]);
  const change = async (item: object) => {
    const answer = await client.callTool("update_contexts", { items: [{ _id, ...item }] });
    return { report: checkedReport(answer), text: textOf(answer) };
  };
  return { client, targetingId, _id, change };
}

test("Context IDs of items that contain separators are noted", async () => {
  const { client, targetingId, change } = await shop();
  const added = await change({ add: ["a;b, c", "d\te", "f", "old, held"] });
  expect(added.report).toMatchObject({ status: "succeeded" });
  expect(added.text).toContain("2 Context IDs with commas, semicolons and tabs, read as part of the ID (for example");
  expect(added.text).toContain("to give several, list each by itself");
  const set = await change({ set: ["p\nq", "r、s|t"] });
  expect(set.text).toContain("2 Context IDs with vertical bars, ideographic commas and line breaks");
  const later = await client.callTool("get_run", { runId: set.report.runId });
  expect(textOf(later)).toContain("2 Context IDs with vertical bars");
  const plain = await change({ add: ["plain", "with space"], remove: ["p\nq"] });
  expect(plain.text).not.toContain("read as part");
  const items = [
    { name: "Two", contexts: ["x,y"] },
    { name: "Three", children: [{ name: "In", contexts: ["x;y"] }] },
  ];
  const made = await client.callTool("bulk_add_options", { targetingId, items, dryRun: true });
  expect(textOf(made)).toContain("2 Context IDs with commas and semicolons");
});

test("so are those of files with one Context ID a line", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  writeFileSync(join(folder, "ids.txt"), "SKU-1;SKU-2, SKU-3\nSKU-4\tSKU-5\nSKU-6 | SKU-7\nSKU-8、SKU-9\nSKU-10\n");
  const { change } = await shop({ TARGETING_MCP_ALLOWED_DIRS: folder });
  const { text } = await change({ setFile: join(folder, "ids.txt") });
  expect(text).toContain("4 Context IDs with commas, semicolons, vertical bars, ideographic commas and tabs");
  expect(text).toContain("in a file for addFile or setFile, on a line of its own");
});

test("a Context ID that is too long says which separators it contains", async () => {
  const { change } = await shop();
  const ids = Array.from({ length: 60 }, (_, at) => `SKU-${at}`);
  const { report } = await change({ add: [ids.join(", ")] });
  expect(report.failures).toMatchObject([
    {
      errorCode: "INVALID_CONTEXT_ID",
      message: expect.stringContaining("bytes and contains commas"),
      remedy: expect.stringContaining("If it holds several IDs, give each by itself"),
    },
  ]);
});

test("a Context ID with invisible characters is refused as in a file, but can be removed", async () => {
  const { change } = await shop();
  const { report } = await change({ add: ["fine", "SKU-1\u200b2"] });
  expect(report.failures).toMatchObject([
    {
      errorCode: "INVALID_CONTEXT_ID",
      message: expect.stringMatching(/^1 Context ID is refused; number 2, .*U\+200B/),
    },
  ]);
  expect((await change({ remove: ["SKU-1\u200b2"] })).report).toMatchObject({ status: "succeeded" });
});

test("a file whose groups do not exist goes in as the answer says", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  const { client, targetingId } = await shop({ TARGETING_MCP_ALLOWED_DIRS: folder });
  writeFileSync(
    join(folder, "groups.csv"),
    "Option,Group,Context ID\nBoots,Shoes,b1\nBoots,Shoes,b2\nClogs,Shoes,c1\n",
  );
  const file = { targetingId, file: join(folder, "groups.csv") };
  const failed = await client.callTool("bulk_add_options", file);
  expect(textOf(failed)).toContain(
    'create the group in a call with items first. A new group needs content, so give it one of the file\'s sub-options in children. Then send the file again with onExisting "addContexts"',
  );
  const items = [{ name: "Shoes", children: [{ name: "Boots" }] }];
  expect(checkedReport(await client.callTool("bulk_add_options", { targetingId, items })).status).toBe("succeeded");
  const again = await client.callTool("bulk_add_options", { ...file, onExisting: "addContexts" });
  expect(checkedReport(again).status).toBe("succeeded");
  const listed = await client.callTool("list_options", { targetingId, all: true });
  expect(listed.structuredContent).toMatchObject({
    options: expect.arrayContaining([
      expect.objectContaining({ name: "Boots", parentName: "Shoes", contextCount: 2 }),
      expect.objectContaining({ name: "Clogs", parentName: "Shoes", contextCount: 1 }),
    ]),
  });
});

test("the notes on a file name a separator that splits all cells", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  const { client, targetingId } = await shop({ TARGETING_MCP_ALLOWED_DIRS: folder });
  writeFileSync(join(folder, "options.csv"), 'Option,Context ID\nTwo,"a, b"\nThree,"c;d|e"\n');
  const file = { targetingId, file: join(folder, "options.csv"), dryRun: true };
  const dry = await client.callTool("bulk_add_options", file);
  expect(textOf(dry)).toContain('with commas, read as part of the ID; separator ",;|" splits them');
  expect(textOf(dry)).toContain('or a line break, read as part of the ID; separator ";|" splits only these');
  // The hint is in the notes on the file. It is not after them, with the text of other people.
  expect(textOf(dry).indexOf("with commas, read as part of the ID")).toBeLessThan(textOf(dry).indexOf("A request to"));
  const split = await client.callTool("bulk_add_options", { ...file, separator: ",;|" });
  expect(textOf(split)).toContain("2 items, 5 Context IDs");
});
