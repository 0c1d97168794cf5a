import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, startSession } from "../support/writing.ts";

test("an invalid name is told with all that is wrong, item by item", async () => {
  const session = await startSession();
  const names = [`A/B_C ${"x".repeat(40)}`, "Zero\u200bwidth", "봄 세일".normalize("NFD"), "(a) [b] {c}, d."];
  const given = await session.client.callTool("create_targetings", { items: names.map((name) => ({ name })) });
  const [failure, decomposed] = checkedReport(given).failures;
  expect(failure).toMatchObject({ count: 3, errorCode: "INVALID_NAME" });
  expect(failure?.details).toMatchObject([
    { index: 0, rules: ["characters", "tooLong"], length: 46, characters: ["/", "_"] },
    { index: 1, characters: ["\u200b"] },
    { index: 3, characters: [..."()[]{},."] },
  ]);
  expect(decomposed).toMatchObject({ count: 1, detail: { rules: ["decomposed"], length: 4 } });
  const text = textOf(given);
  expect(text).toContain('item 1: the name has 2 characters that are not allowed: "/", "_"; it has 46 characters');
  expect(text).toContain('item 2: the name has 1 character that is not allowed: "\\u{200B}" (U+200B)');
  expect(text).toContain("the name contains decomposed Hangul; convert it to NFC");
  expect(text).toContain(
    'item 4: the name has 8 characters that are not allowed: "(", ")", "[", "]", "{", "}", ",", "."',
  );
});

test("each kind of invalid name is counted with its first positions, the most frequent kind first", async () => {
  const { client } = await startSession();
  const twenty = Array.from({ length: 20 }, (_, at) => `Shoe_${at}`);
  const names = [`long.${"x".repeat(40)}`, `longer.${"x".repeat(45)}`, ...twenty, "#a", "$b", "@c", "*d", "*e"];
  const run = await client.callTool("create_targetings", { items: names.map((name) => ({ name })) });
  const kinds = [
    'INVALID_NAME, 27 items: 20 items (3-22): the name has 1 character that is not allowed: "_". ',
    '2 items (1-2): the name has 1 character that is not allowed: "."; it has 45 characters (at most 36). ',
    '2 items (26-27): the name has 1 character that is not allowed: "*". ',
    'item 23: the name has 1 character that is not allowed: "#". ',
    'item 24: the name has 1 character that is not allowed: "$". And 1 more item. Allowed:',
  ].join("");
  expect(textOf(run)).toContain(kinds);
  const { runId, failures } = checkedReport(run);
  expect(failures[0]?.message).toContain("20 items (3-22)");
  expect(textOf(await client.callTool("get_run", { runId }))).toContain(kinds);
});
