import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

/** Reads events with these prices and values. Returns the answer of a dry run. */
async function answerTo(rows: readonly (readonly [price: string, value?: string])[], delimiter = ";") {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context } = await eventTools({ allowedDirs: [folder] });
  const quoted = rows.map(([price, value = ""]) => ["u", "add_to_cart", "x", `"${price}"`, "2", `"${value}"`]);
  const lines = [["uid", "eventName", "item_id", "price", "quantity", "value"], ...quoted];
  await writeFile(join(folder, "a.csv"), lines.map((cells) => `${cells.join(delimiter)}\n`).join(""));
  return (await answerOf(trackEvents, { file: "a.csv", dryRun: true }, context)).text;
}

test.each([
  ["1,250", "12.50", "1250"],
  ["1,250", "1,250,000", "1250"],
  ["1,250", "0.250", "1250"],
  ["1,250", "12,50", "1.25"],
  ["1,250", "0,250", "1.25"],
  ["1.250", "1.250.000", "1250"],
  ["1.250", "1250,500", "1250"],
  ["(1,250)", "(5.00)", "-1250"],
  ["$1,250", "$ 99.90", "1250"],
  ["1,250 %", "12.50", undefined],
])("%s beside %s is read as %s", async (price, other, number) => {
  const text = await answerTo([[price], [other]]);
  if (number === undefined) expect(text).toContain(`the price "${price}" is not a number in a clear form`);
  else expect(text).toContain(`price ${number}, quantity 2`);
});

test.each([
  ["(5.00)", "-5"],
  ["($5.00)", "-5"],
  ["€ (5,50)", "-5.5"],
  ["-$5.00", "-5"],
  ["−5", "-5"],
  ["₩1,250", "1250"],
  ["1.250원", "1250"],
  ["1.250.000", "1250000"],
  ["0,125", "0.125"],
  ["12,34567", "12.34567"],
])("%s is a number by itself", async (price, number) => {
  expect(await answerTo([[price]])).toContain(`price ${number}, quantity 2`);
});

test.each(["1,250", "1.250", "1.250 €", "12%", "１２％", "10-20", "1250-", "1,2,3", "5,000 %", "12345678901234567"])(
  "%s is a problem of its row, with how to write it, and the row is not sent",
  async (price) => {
    const text = await answerTo([[price], ["5"]]);
    expect(text).toContain("Would send 1 of 2 events; 1 would fail");
    expect(text).toContain(`line 2: the price "${price}" is not a number in a clear form`);
    expect(text).toContain("Write digits, and a point only before decimals: 1250 or 1.25");
  },
);

test("the decimal sign of one column is that of the others, unless the sheet has both", async () => {
  expect(await answerTo([["1,250", "12.5"]])).toContain("price 1250, quantity 2");
  expect(await answerTo([["1.250", "12,5"]])).toContain("price 1250, quantity 2");
  const both = await answerTo([
    ["1,250", "12,5"],
    ["3.5", ""],
  ]);
  expect(both).toContain("price 1250, quantity 2, value 12.5");
  const mixed = await answerTo([["1,250"], ["3.5"], ["3,5"]]);
  expect(mixed).toContain('the price "1,250" is not a number in a clear form');
});

test("a price with a point is a number in a file that is separated by commas", async () => {
  expect(await answerTo([["1.250"]], ",")).toContain("price 1.25, quantity 2");
});

test("a text that is like no number stays, and is a finding of the event", async () => {
  const text = await answerTo([["free"]]);
  expect(text).toContain('price "free"');
  expect(text).toContain('"price" is a string, not a number');
});
