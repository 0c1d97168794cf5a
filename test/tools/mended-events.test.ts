import { readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as z from "zod";
import { fixSpelling } from "../../src/events/spelling.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

const rows = z.object({
  results: z.array(z.looseObject({ index: z.number(), input: z.record(z.string(), z.unknown()) })),
});

test("of 5,000 events of a file the 27 that would be lost, with what each held, 20 of them mended and sent, in three calls", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
  const bad = (at: number): string => (at % 3 === 0 ? "addToCart" : "checkout_step2");
  const lines = Array.from({ length: 5000 }, (_, at) => {
    const name = at % 185 === 7 ? bad(at) : "add_to_cart";
    const event = { uid: `user-${at}`, eventName: name, item_id: `sku-${at}`, price: 12000, quantity: 1 };
    return JSON.stringify(event);
  });
  const file = join(folder, "events.ndjson");
  await writeFile(file, lines.join("\n"));
  const first = await answerOf(trackEvents, { file }, context);
  expect(first.structured).toMatchObject({ status: "partial", counts: { succeeded: 4973, failed: 27 } });
  expect(first.text).toContain('uids of the first 5: "user-');
  const second = await answerOf(
    getRun,
    { runId: String(first.structured.runId), outcome: "failed", includeInput: true },
    context,
  );
  expect(second.text).toContain('fix it, and give it as file: the same call with saveTo "failed-');
  const save = { runId: String(first.structured.runId), saveTo: "failed.csv" };
  await expect(answerOf(getRun, save, context)).rejects.toThrow(
    "the file of this run is .ndjson, not a sheet, so no sheet with results can be saved",
  );
  const savedTo = join(folder, "failed.ndjson");
  const saved = await answerOf(getRun, { ...save, saveTo: savedTo }, context);
  expect(saved.text).toContain("27 rows");
  const kept = readFileSync(savedTo, "utf8").trimEnd().split("\n");
  expect(kept).toHaveLength(27);
  for (const line of kept)
    expect(JSON.parse(line)).toMatchObject({ item_id: expect.any(String), reason: expect.any(String) });
  const again = await answerOf(trackEvents, { file: savedTo, autocorrect: true }, context);
  expect(again.structured).toMatchObject({ counts: { succeeded: 9, failed: 18 } });
  // Everything that was not sent is among the failures, so it is not counted separately.
  expect(first.text).not.toContain("more kinds");
  const { results } = rows.parse(second.structured);
  expect(results).toHaveLength(27);
  for (const { index, input } of results) expect(input).toEqual(JSON.parse(lines[index] ?? ""));
  expect(countTokens(JSON.stringify(second.structured)) + countTokens(second.text)).toBeLessThanOrEqual(3500);
  const before = sandbox.events().length;
  const items = results.slice(0, 20).map(({ input }) => ({ ...input, eventName: "add_to_cart" }));
  const third = await answerOf(trackEvents, { items }, context);
  expect(third.structured).toMatchObject({ status: "succeeded", counts: { succeeded: 20 } });
  expect(sandbox.events()).toHaveLength(before + 20);
});

test("mend puts right what is plainly misspelt, tells each, and guesses nothing else", async () => {
  const { context, sandbox } = await eventTools();
  const events = [
    { uid: "a", eventName: "addToCart", itemId: "x", price: 1, quantity: 1 },
    { uid: "b", eventName: "AddToCart", item_id: "x", price: 1, quantity: 1 },
    { uid: "c", eventName: "order", tx_id: "t" },
    { uid: "d", eventName: "checkout_step2" },
  ];
  const { structured, text } = await answerOf(trackEvents, { events, autocorrect: true }, context);
  expect(structured).toMatchObject({
    counts: { succeeded: 2, failed: 2 },
    notes: expect.arrayContaining([
      expect.stringContaining("eventName addToCart → add_to_cart (item 1)"),
      expect.stringContaining("itemId → item_id"),
    ]),
  });
  expect(text).toContain("Corrected: ");
  expect(sandbox.events().map(({ text: body }) => JSON.parse(body))).toEqual([
    { uid: "a", eventName: "add_to_cart", item_id: "x", price: 1, quantity: 1 },
    { uid: "b", eventName: "add_to_cart", item_id: "x", price: 1, quantity: 1 },
  ]);
});

test.each([false, true])(
  "a column that the caller chose is read, not corrected (autocorrect: %s)",
  async (autocorrect) => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
    const file = join(folder, "orders.csv");
    await writeFile(file, "uid,eventName,주문번호\na,purchase,t\n");
    const given = { file, columns: { tx_id: "주문번호" }, autocorrect };
    const { structured, text } = await answerOf(trackEvents, given, context);
    expect(structured).toMatchObject({ counts: { items: 1, succeeded: 1 } });
    expect(text).not.toContain("orrected:");
    expect(sandbox.events().map(({ text: body }) => JSON.parse(body))).toEqual([
      { uid: "a", eventName: "purchase", tx_id: "t" },
    ]);
  },
);

test("a file with a column and another one that is mapped to it names both", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context } = await eventTools({ allowedDirs: [folder] });
  const file = join(folder, "two.csv");
  await writeFile(file, "uid,eventName,item_id,qty,quantity\na,add_to_cart,x,1,2\n");
  const given = { file, columns: { quantity: "qty" } };
  const refused = await trackEvents.handler(trackEvents.input().parse(given), context).catch(String);
  expect(refused).toContain('"qty", "quantity" on line 1 of the file are both the column quantity');
});

test("mend puts misspelt columns of a CSV file right, too, also where rows of it fail", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
  const file = join(folder, "events.csv");
  await writeFile(
    file,
    "uid,evntName,itm_id,price,quantity,tx_idd\na,addToCart,x,1,1,\nb,add_to_cart,,1,1,\nc,purchase,,,,t\n",
  );
  const refused = await trackEvents.handler(trackEvents.input().parse({ file }), context).catch(String);
  expect(refused).toContain('unknown columns "evntName", "itm_id", "tx_idd"');
  const { structured, text } = await answerOf(trackEvents, { file, autocorrect: true }, context);
  expect(structured).toMatchObject({
    counts: { succeeded: 2, failed: 1 },
    notes: expect.arrayContaining([
      expect.stringContaining("evntName → eventName (2 events"),
      expect.stringContaining("itm_id → item_id (line 2)"),
      expect.stringContaining("tx_idd → tx_id (line 4)"),
    ]),
  });
  expect(text).toContain("Corrected: ");
  expect(sandbox.events().map(({ text: body }) => JSON.parse(body))).toEqual([
    { uid: "a", eventName: "add_to_cart", item_id: "x", price: 1, quantity: 1 },
    { uid: "c", eventName: "purchase", tx_id: "t" },
  ]);
  const failed = await answerOf(
    getRun,
    { runId: String(structured.runId), outcome: "failed", includeInput: true },
    context,
  );
  expect(rows.parse(failed.structured).results.map(({ input }) => input)).toEqual([
    { uid: "b", eventName: "add_to_cart", price: 1, quantity: 1 },
  ]);
});

test("what failed of a list of events is shown with what each held, and nothing of the others is kept", async () => {
  const { context } = await eventTools();
  const items = [
    { uid: "a", eventName: "add_to_cart", item_id: "x", price: 1, quantity: 1 },
    { uid: "b", eventName: "checkout_step2", step: 2 },
    { uid: "c", eventName: "purchase" },
  ];
  const { structured } = await answerOf(trackEvents, { items }, context);
  expect(structured).toMatchObject({ status: "partial", counts: { succeeded: 1, failed: 2 } });
  const runId = String(structured.runId);
  const shown = await answerOf(getRun, { runId, outcome: "failed", includeInput: true }, context);
  expect(rows.parse(shown.structured).results.map(({ index, input }) => ({ index, input }))).toEqual([
    { index: 1, input: items[1] },
    { index: 2, input: items[2] },
  ]);
  let stored = "";
  for await (const chunk of context.runs.part(runId, "input")()) stored += Buffer.from(chunk).toString("utf8");
  expect(stored).not.toContain("add_to_cart");
});

test.each([
  [{ eventName: "purchse", tx_id: "t" }, "purchase"],
  [{ eventName: "transaction" }, "transaction"],
  [{ eventName: "purchase2" }, "purchase2"],
  [{ eventName: "clik" }, "click"],
])("%j is mended to %s", (event, name) => {
  expect(fixSpelling(event).event).toMatchObject({ eventName: name });
});

test.each([
  [
    { eventName: "purchase", order_id: "t" },
    { eventName: "purchase", tx_id: "t" },
  ],
  [
    { eventName: "purchase", tx_id: "t", order_id: "o" },
    { eventName: "purchase", tx_id: "t", order_id: "o" },
  ],
  [
    { eventName: "add_to_cart", sku: "s", unit_price: 1, qty: 2, total: 2 },
    { eventName: "add_to_cart", item_id: "s", price: 1, quantity: 2, total: 2 },
  ],
  [
    { eventName: "add_to_cart", item_id: "s", amount: 2 },
    { eventName: "add_to_cart", item_id: "s", amount: 2 },
  ],
])("of %j only required parameters are known by another name: %j", (event, corrected) => {
  expect(fixSpelling(event).event).toEqual(corrected);
});
