import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call } from "../support/clients.ts";
import { startSession } from "../support/writing.ts";

// A person sends three messages to an agent, about a price list in the format that a German Excel exports.

const PRICES = `Preisliste Winter 2026;;;;

Artikel Bezeichnung;Artikelnr.;Preis (EUR);Warengruppe;Größe
Wanderschuh;4711001;1.299,00 €;Schuhe;42
Trail_Schuh;4711003;49,90 €;Schuhe;43
Regenhut;4711004;19,95 €;Hüte;L
Sonnenhut;4,71E+12;24,50 €;Hüte;M
X;4711006;9,99 €;Hüte;S
Summe;;1.403,34 €;;
`;

test("a German price list goes into a targeting, three bad rows fixed in the returned sheet, without a further call", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "targeting-mcp-")));
  const { client } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  await call(client, "create_targetings", { items: [{ name: "Winter Sale" }] });
  // Windows-1252 differs from Latin-1 in the euro sign.
  const bytes = Buffer.from(PRICES.replaceAll("€", "\u0080").replaceAll("\n", "\r\n"), "latin1");
  writeFileSync(join(folder, "preise.csv"), bytes);

  // "Put this price list into the targeting Winter Sale."
  const targeting = { targetingName: "Winter Sale" };
  const made = await call(client, "bulk_add_options", { ...targeting, file: "preise.csv" });
  expect(made.counts).toMatchObject({ items: 5, succeeded: 2, failed: 3 });
  expect(made.text).toContain("Read as Windows-1252, separated by semicolons, with the header on line 3");
  expect(made.text).toContain("Line 9 skipped as a row of totals.");
  expect(made.text).toContain('"Artikel Bezeichnung" as Option, "Artikelnr." as Context ID');
  expect(made.text).not.toContain("commas, read as part");
  // "Fix the three bad rows in the returned sheet and send it again."
  await call(client, "get_run", { runId: made.runId, saveTo: "ergebnis.csv" });
  // "Save only those that failed." The file has the person's own columns, so they can fix it and send it alone.
  const only = { runId: made.runId, saveTo: "nur-fehler.csv", outcome: "failed" };
  expect((await call(client, "get_run", only)).text).toMatch(/^Saved only the rows .* Rows: 3 failed\.$/m);
  const failed = readFileSync(join(folder, "nur-fehler.csv"), "utf8").split("\r\n");
  expect(failed.map((row) => row.split(";")[0])).toEqual([
    "\uFEFFPreisliste Winter 2026",
    "",
    "Artikel Bezeichnung",
    ...["Trail_Schuh", "Sonnenhut", "X", ""],
  ]);
  expect(failed[3]).toMatch(/^Trail_Schuh;4711003;49,90 €;Schuhe;43;;Add;Add;Failed;"Line 5: The name has 1 character/);
  const sheet = readFileSync(join(folder, "ergebnis.csv"), "utf8");
  expect(sheet).toContain("Copy it from its source again");
  const fixed = sheet
    .replace("Trail_Schuh", "Trail Schuh")
    .replace("4,71E+12", "4711005")
    .replace("\nX;", "\nFilzhut;");
  writeFileSync(join(folder, "korrigiert.csv"), fixed);
  const again = await call(client, "bulk_add_options", { ...targeting, file: "korrigiert.csv" });
  expect(again.counts).toMatchObject({ items: 5, succeeded: 3, alreadyDone: 2 });
  // "Is all of it in?" The agent needs no further call to answer this.
  expect(again.text).toMatch(/^Created 3 of 5 options in "Winter Sale" \(\w+\), which now has 5; 2 already there\./);
});
