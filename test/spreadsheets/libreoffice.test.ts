import { execFile } from "node:child_process";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { writtenSheet } from "../../src/files/save-file.ts";
import type { SheetFormat, WrittenRow } from "../../src/files/written-rows.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { sheetOf } from "../../src/plans/file/write-desired.ts";
import { idOf, option, there } from "../plans/sides.ts";

// Saves sheets, opens and saves them again with LibreOffice in German and Korean, and reads them back unchanged. Needs
// soffice.

const STATE = there(
  option("A", { name: "Ball games", type: "collection", exposeChildren: true }),
  option("B", { name: "+Football", parent: idOf("A"), contexts: ["00123", "1234567890123456789", "goal, golden"] }),
  option("C", { name: "러닝화", contexts: ["신발", "1,5", "1.5", "3-4", "MAR4", "a|b", "x;y", "line\nfeed"] }),
  option("D", { name: "100 %", contexts: ["=1+1", "-5", "@home", "TRUE", "1E5", '="00123"', "'=x", "2026-03-04"] }),
  option("E", { name: "-Minus" }),
);

/** The numbers that Windows uses for languages. */
const LANGUAGES = { German: 1031, Korean: 1042 } as const;
/** How LibreOffice reads a CSV: as UTF-8 with quotes, from the first line, with all columns as text. */
const AS_TEXTS = Array.from({ length: 12 }, (_, at) => `${at + 1}/2`).join("/");

async function saved(path: string, form: SheetFormat, rows: Iterable<WrittenRow>): Promise<void> {
  const all = async function* () {
    yield* rows;
  };
  const pieces: Uint8Array[] = [];
  for await (const piece of writtenSheet({ name: "Options", above: 0, rows: all() }, form)) {
    pieces.push(Buffer.from(piece));
  }
  await writeFile(path, Buffer.concat(pieces));
}

/** Opens a file with LibreOffice and saves it in another format. */
async function converted(folder: string, file: string, to: string, filter?: string): Promise<void> {
  const profile = `-env:UserInstallation=file://${join(folder, "profile")}`;
  const how = filter === undefined ? [] : [`--infilter=${filter}`];
  await promisify(execFile)("soffice", [
    ...[profile, "--headless", "--norestore", ...how, "--convert-to", to, "--outdir", join(folder, "out")],
    join(folder, file),
  ]);
}

async function planOfFile(path: string, format: "csv" | "xlsx") {
  const bytes = await readFile(path);
  const { desired, problems } = await readDesired({ bytes, path, format, folder: undefined });
  expect(problems).toEqual([]);
  const thresholds = { maxChangePercent: 100, maxDeletes: 500 };
  return planOf({ desired, there: STATE, prune: false, byName: false, thresholds, base: undefined });
}

describe.each(Object.entries(LANGUAGES))("LibreOffice with %s settings", (_name, language) => {
  test("saves a workbook as a workbook, and as CSV with semicolons", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-sheets-"));
    await saved(join(folder, "options.xlsx"), { format: "xlsx" }, sheetOf(STATE, { format: "xlsx" }));
    await converted(folder, "options.xlsx", "xlsx");
    expect(await planOfFile(join(folder, "out", "options.xlsx"), "xlsx")).toMatchObject({ problems: [], items: [] });
    const csv = `csv:Text - txt - csv (StarCalc):59,34,76,1,,${language},false,true,false,false,false,1`;
    await converted(folder, "options.xlsx", csv);
    expect(await planOfFile(join(folder, "out", "options-Options.csv"), "csv")).toMatchObject({
      problems: [],
      items: [],
    });
  });

  test("opens a CSV with all columns as texts, and saves it as a workbook", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-sheets-"));
    const form = { format: "csv", delimiter: ";" } as const;
    await saved(join(folder, "options.csv"), form, sheetOf(STATE, form));
    const filter = `Text - txt - csv (StarCalc):59,34,76,1,${AS_TEXTS},${language},false,false`;
    await converted(folder, "options.csv", "xlsx:Calc MS Excel 2007 XML", filter);
    expect(await planOfFile(join(folder, "out", "options.xlsx"), "xlsx")).toMatchObject({ problems: [], items: [] });
  });
});

test("a marked cell has its comment there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-sheets-"));
  const rows = [
    { cells: ["Option", "Result"] },
    { cells: ["Bad_name", "Failed"], marks: [{ column: 0, comment: "The name is wrong.\nFix it." }] },
  ];
  await saved(join(folder, "marked.xlsx"), { format: "xlsx" }, rows);
  await converted(folder, "marked.xlsx", "fods");
  const shown = await readFile(join(folder, "out", "marked.fods"), "utf8");
  expect(shown).toContain("The name is wrong.");
  expect(shown).toContain("#ffc7ce");
  expect(shown).toContain('table:display-filter-buttons="true"');
});
