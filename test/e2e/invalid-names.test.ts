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
