import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { previewNotes, sheetNotes } from "../../src/answers/sheets.ts";
import { contextRows, optionRows } from "../../src/changes/rows/input-rows.ts";
import { actionIn, contextActionIn } from "../../src/files/cells.ts";
import type { SheetArguments } from "../../src/files/detect-sheet.ts";
import { withDetectedForm } from "../../src/files/detected-form.ts";
import type { SheetSeen } from "../../src/files/input-file.ts";
import { openFile } from "../../src/files/open-file.ts";
import { itemsIn, type RowShape } from "../../src/files/rows.ts";
import { planOf } from "../../src/plans/diff.ts";
import { formatToRead, readDesired } from "../../src/plans/file/read-desired.ts";
import { FileError } from "../../src/platform/files.ts";
import { getRun } from "../../src/tools/get-run.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";
import { problemOf } from "./content.ts";

// Files that LibreOffice, openpyxl and editors have saved. The tests say what each contains.

const FOLDER = join(import.meta.dirname, "sheets");
const RULES = { allowedDirs: [FOLDER], maxLineBytes: 1_048_576 };

async function read<Item>(name: string, shape: RowShape<Item>, given: SheetArguments = {}) {
  const opened = await openFile(join(FOLDER, name), given, RULES);
  const { bytes } = opened;
  // The rows must be the same, whether the form was detected before or is detected while reading.
  const unread = await itemsIn(bytes, { ...opened.file }, shape);
  const file = { ...opened.file, ...(await withDetectedForm(bytes, opened.file, shape)) };
  expect(await itemsIn(bytes, file, shape)).toEqual(unread);
  return { file, items: await itemsIn(bytes, file, shape), notes: sheetNotes(file) };
}

/** Returns items without the cells from which they were read. Only planning needs those. */
const items = (given: readonly object[]) =>
  given.map((one) => {
    if (!("item" in one) || typeof one.item !== "object" || one.item === null) return one;
    return Object.fromEntries(Object.entries(one.item).filter(([field]) => field !== "split"));
  });

async function desired(name: string) {
  const path = join(FOLDER, name);
  return readDesired({ bytes: readFileSync(path), path, format: formatToRead(path), folder: undefined });
}

async function desiredOf(text: string) {
  return readDesired({ bytes: Buffer.from(text), path: "a.csv", format: formatToRead("a.csv"), folder: undefined });
}

const KOREAN = readdirSync(FOLDER).filter((name) => name.startsWith("korean-"));

test("there are many forms of the same options", () => {
  expect(KOREAN.length).toBeGreaterThan(45);
  expect(readdirSync(FOLDER).length).toBeGreaterThan(60);
});

test("macros of a workbook are not run, which is said", async () => {
  const { file, notes } = await read("korean-xlsxwriter-macros.xlsm", optionRows);
  expect(file.seen?.macros).toBe(true);
  expect(notes.join("\n")).toContain("its macros were not run");
});

test.each(["prices.numbers", "prices.gsheet", "prices.xlsb", "prices.fods"])(
  "%s is refused with how to save it",
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    await writeFile(join(folder, name), "PK");
    const refused = openFile(name, {}, { ...RULES, allowedDirs: [folder] });
    await expect(refused).rejects.toMatchObject({
      message: expect.stringContaining("cannot be read"),
      remedy: expect.stringMatching(/\.xlsx|Excel/),
    });
  },
);

describe.each(KOREAN)("%s holds the same options", (name) => {
  test("for bulk_add_options", async () => {
    expect(items((await read(name, optionRows)).items)).toEqual([
      { name: "Ball games", type: "collection", contexts: [] },
      { name: "Football", parentName: "Ball games", type: "atomic", contexts: ["00123", "goal"] },
      { name: "러닝화", type: "atomic", contexts: ["1234567890123", "신발"] },
    ]);
  });

  test.skipIf(name.endsWith(".ndjson"))("for update_contexts", async () => {
    expect(items((await read(name, contextRows)).items)).toEqual([
      { name: "Ball games", add: [] },
      { name: "Football", add: ["00123", "goal"] },
      { name: "러닝화", add: ["1234567890123", "신발"] },
    ]);
  });

  test("for plan_targeting: the plan is the same", async () => {
    const { desired: wanted, problems } = await desired(name);
    expect(problems).toEqual([]);
    const plan = planOf({
      ...{ desired: wanted, base: undefined, prune: false, byName: false },
      there: { targeting: { _id: "01J0000000000000000000000T", name: "Spring" }, options: [] },
      thresholds: { maxChangePercent: 100, maxDeletes: 100 },
    });
    expect(plan.problems).toEqual([]);
    expect(plan.items.map((item) => ({ ...item, line: 0 }))).toEqual([
      { kind: "create", line: 0, name: "Ball games", type: "collection", parent: null, contexts: [] },
      { kind: "create", line: 0, name: "Football", type: "atomic", parent: { item: 0 }, contexts: ["00123", "goal"] },
      { kind: "create", line: 0, name: "러닝화", type: "atomic", parent: null, contexts: ["1234567890123", "신발"] },
    ]);
  });
});

test.each<readonly [string, string, SheetSeen]>([
  ["korean-utf8.csv", "utf-8 ,", { severalIds: 2 }],
  ["korean-mark.csv", "utf-8 ,", { severalIds: 2 }],
  ["korean-cp949.csv", "euc-kr ,", { severalIds: 2 }],
  ["korean-utf16be-tabs.csv", "utf-16be \t", { severalIds: 2 }],
  ["korean-utf16le-without-mark.txt", "utf-16le \t", { severalIds: 2 }],
  ["korean-libreoffice-utf16.csv", "utf-16le \t", { severalIds: 2 }],
  ["korean-libreoffice-semicolons.csv", "utf-8 ;", { severalIds: 2 }],
  ["korean-tabs.tsv", "utf-8 \t", { severalIds: 2 }],
  ["korean-sep-line.csv", "utf-8 ;", { headerLine: 2, severalIds: 2 }],
  ["korean-bars.txt", "utf-8 |", { severalIds: 2 }],
  ["korean-decomposed.csv", "utf-8 ,", { severalIds: 2, composed: 2 }],
  ["korean-one-a-row.csv", "utf-8 ,", { continued: 2 }],
  ["korean-more-columns.csv", "utf-8 ,", { ignored: 2, ignoredHeadings: ["Priority", "Owner"], severalIds: 2 }],
  [
    "korean-title-and-total.csv",
    "utf-8 ,",
    { headerLine: 4, above: 2, ignored: 1, ignoredHeadings: ["Clicks"], severalIds: 2 },
  ],
])("%s is read as %j", async (name, form, seen) => {
  const { file } = await read(name, optionRows);
  expect(`${file.encoding} ${file.sheet?.delimiter}`).toBe(form);
  expect(file.seen).toEqual(seen);
});

test.each([
  ["korean-subtotals.csv", "lines 4, 7 and 9 skipped as rows of totals"],
  ["korean-openpyxl-subtotals.xlsx", "lines 4, 6 and 7 skipped as rows of totals"],
  ["korean-german-headings.csv", '"Übergeordnet" as Group, "Ist Gruppe" as Is Group, "Kontext-IDs" as Context IDs'],
])("the notes of %s say what was made of it: %s", async (name, words) => {
  expect((await read(name, optionRows)).notes.join("\n")).toContain(words);
});

async function notesOf(text: string): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), text);
  const { file, bytes } = await openFile("rows.csv", {}, { ...RULES, allowedDirs: [folder] });
  return sheetNotes({ ...file, ...(await withDetectedForm(bytes, file, optionRows)) });
}

test.each([
  // Two of the dates are in one row.
  [["2026-03-04,2026-03-05", "x,y", "2026-03-06,z"], "3 Context IDs that are dates (lines 2, 4): "],
  [Array.from({ length: 20 }, () => "2026-03-04,x"), "20 Context IDs that are dates (lines 2-21): "],
  [Array.from({ length: 21 }, () => "2026-03-04,x"), "21 Context IDs that are dates (lines 2-21, …): "],
])("the first lines with dates are named, each once", async (cells, words) => {
  const rows = cells.map((two, at) => `Option ${at},${two}\n`).join("");
  expect((await notesOf(`name,Context ID 1,Context ID 2\n${rows}`)).join()).toContain(words);
});

test("the advice to fill a column of groups names it as the file does", async () => {
  expect((await notesOf("name,parentName,contexts\nOne,Group A,a\nTwo,,b\n")).join()).toContain(
    'blank "parentName" below a filled one: read without a group; to put them into the group above, use fillDown ["parentName"]',
  );
});

test.each([
  ["name,parentName,contextId\nA,Kids,a\n,,b\n,Kids,c\n", "2 rows without an option, which continue the option above"],
  [
    "name,parentName,contextId\nA,Kids,a\n,,b\n,Moms,c\n,Kids,d\nB,,e\n,Moms,f\nC,Dads,g\n,Kids,h\n",
    "5 rows without an option: 2 name another group than the option above, and 3 continue it (lines 3, 5, 7); if names are missing in the file, fill them in",
  ],
])("rows without an option are counted by what becomes of them: %s", async (text, words) => {
  const notes = await notesOf(text);
  expect(notes.find((note) => note.includes("without an option"))).toBe(words);
});

test.each([
  ["name,parentName,contextId\nA,Kids,a\nA,,b\n,,c\n", undefined],
  ["name,parentName,type,contextId\nA,Kids,,a\nMoms,,collection,\nB,,,b\nB,,,c\n", "2 rows with a blank"],
  ["name,parentName,contexts\nA,Kids,a\nA,,b\n", "1 row with a blank"],
])(
  "rows that belong to a named group, or create one, are not counted as rows without a group: %s",
  async (text, words) => {
    expect((await notesOf(text)).find((note) => note.includes("blank"))?.slice(0, words?.length)).toBe(words);
  },
);

test.each<readonly [SheetArguments, string]>([
  [{}, "3 cells of Context IDs with | or ; or a line break, read as part of the ID"],
  [{ separator: ";|" }, "3 cells with several Context IDs, separated by ;|"],
])("cells with different separators are counted together: %j", async (given, note) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "mixed.csv"), 'name,contextId\nAa,a;b\nBb,a|b;c\nCc,"a\nb"\nDd,d\n');
  const { file, bytes } = await openFile("mixed.csv", given, { ...RULES, allowedDirs: [folder] });
  expect(sheetNotes({ ...file, ...(await withDetectedForm(bytes, file, optionRows)) }).join("\n")).toContain(note);
});

test("German headings of a sheet with one Context ID a row are known", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const rows = [
    "Options-ID;Name;Gruppe;Artikel-ID",
    ";Schuhe;[];4711",
    ";;;4712",
    ";Zwischensumme;;2",
    ";Hemden;[];4713",
  ];
  await writeFile(join(folder, "artikel.csv"), rows.join("\n"));
  const { file, bytes } = await openFile("artikel.csv", {}, { ...RULES, allowedDirs: [folder] });
  expect(items(await itemsIn(bytes, file, optionRows))).toMatchObject([
    { name: "Schuhe", contexts: ["4711", "4712"] },
    // The total of this column could be a Context ID, too, because the others are also numbers.
    { name: "Zwischensumme", contexts: ["2"] },
    { name: "Hemden", contexts: ["4713"] },
  ]);
  expect(["Hinzufügen", "Ändern", "Löschen"].map(actionIn)).toEqual(["add", "edit", "remove"]);
  expect(["Hinzufügen", "Setzen", "Entfernen"].map(contextActionIn)).toEqual(["add", "set", "remove"]);
});

test.each([
  ["Opción;Grupo;ID de contexto;Acción", "Zapatos;Ropa;c1;Añadir"],
  ["Option;Groupe;ID de contexte;Action", "Chaussures;Vêtements;c1;Ajouter"],
])("the Spanish or French headings %s are known", async (headings, row) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), `${headings}\n${row}\n`);
  const { file, bytes } = await openFile("rows.csv", {}, { ...RULES, allowedDirs: [folder] });
  const [name, parentName] = row.split(";");
  expect(items(await itemsIn(bytes, file, optionRows))).toMatchObject([{ name, parentName, contexts: ["c1"] }]);
});

/** Reads rows.csv. Returns the error about its headings. */
async function headerError(folder: string): Promise<FileError | undefined> {
  const { file, bytes } = await openFile("rows.csv", {}, { ...RULES, allowedDirs: [folder] });
  try {
    await itemsIn(bytes, file, optionRows);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof FileError) return thrown;
    throw thrown;
  }
}

test("a mapping to a heading that is neither in the file nor a column is not turned round", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), "name;contextId\nEins;k1\n");
  const opened = openFile("rows.csv", { columns: { name: "nope" } }, { ...RULES, allowedDirs: [folder] });
  const read = opened.then(({ file, bytes }) => itemsIn(bytes, file, optionRows));
  await expect(read).rejects.toMatchObject({ remedy: expect.stringMatching(/^Its headings: "name"/) });
});

test.each([
  [{ Kennung: "contextId" }, '{"contextId":"Kennung"}'],
  [{ Optionsname: "name" }, '{"name":"Optionsname"}'],
])("a mapping from heading to column says how to turn it round: %j", async (columns, turned) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), "Optionsname;Kennung\nEins;k1\n");
  const opened = openFile("rows.csv", { columns }, { ...RULES, allowedDirs: [folder] });
  const read = opened.then(({ file, bytes }) => itemsIn(bytes, file, optionRows));
  await expect(read).rejects.toMatchObject({ remedy: `Give it the other way round, column first: columns ${turned}.` });
});

test.each([
  [
    "Optioner;Gruppen;Context ID artikel",
    '{"name":"Optioner","contextId":"Context ID artikel","parentName":"Gruppen"}',
  ],
  [
    "Optioner;ID;Kode",
    /columns \{"name":"Optioner"\}\. This mapping reads no Context IDs\. If one of the other headings .*: "Kode"/,
  ],
])("headings that are nearly known name the whole mapping: %s", async (headings, expected) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), `${headings}\nScarpe;1;c1\n`);
  const { remedy = "" } = (await headerError(folder)) ?? {};
  if (typeof expected === "string") expect(remedy).toContain(expected);
  else expect(remedy).toMatch(expected);
});

test("headings in an unknown encoding say so", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "rows.csv"), Buffer.from("Možnost,Kód\nA,k1\n", "latin1"));
  expect(await headerError(folder)).toMatchObject({
    message: expect.stringContaining("read as Windows-1252"),
    remedy: expect.stringContaining("save it as CSV UTF-8, or give its encoding: utf-8"),
  });
});

const AS_OPTION = (line: number) =>
  `line ${line} read as an option, not as a row of totals: its numbers are not sums of the rows above`;
const SKIPPED = (line: number) => `line ${line} skipped as a row of totals`;

/** Returns the notes on a sheet with two options and one more row. `isLast` says whether that row is the last one. */
async function noteOn(row: string, { isLast }: { readonly isLast: boolean }) {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const rows = ["Option,Group,Is Group,Context IDs,Price,Share", "One,,,a,1,40%", "Two,,,b,2,60%", row];
  await writeFile(join(folder, "prices.csv"), [...rows, ...(isLast ? [] : ["Three,,,c,3,10%"])].join("\n"));
  const { file, bytes } = await openFile("prices.csv", {}, { ...RULES, allowedDirs: [folder] });
  const read = { ...file, ...(await withDetectedForm(bytes, file, optionRows)) };
  const options = await itemsIn(bytes, read, optionRows);
  const notes = sheetNotes(read).filter((note) => note.startsWith("line "));
  return { notes, isKept: options.length === (isLast ? 3 : 4) };
}

test("the notes beside a preview do not repeat its columns", async () => {
  const { file, notes } = await read("korean-german-headings.csv", optionRows);
  const columns = [{ heading: "Gruppe", column: "parentName" }];
  const preview = previewNotes(file, { columns, rows: [] });
  expect(preview.join("\n")).toContain('columns: "Gruppe" as Group');
  const beside = notes.filter((note) => !note.startsWith("columns read: "));
  expect(beside).toHaveLength(notes.length - 1);
  expect(sheetNotes(file, preview)).toEqual(beside);
});

test.each<readonly [header: string, names: readonly string[] | "refused"]>([
  ["Artikel;Artikelnr.;Preis", ["One"]],
  ["Artikel-Bezeichnung;Art.-Nr.;Warengruppe", ["One"]],
  ["Produktname;Preis;Kategorie", ["One"]],
  ["상품명;기사 번호;가격", ["One"]],
  ["Product;Article number;Category", ["One"]],
  // Another column has a better heading.
  ["Artikelnr.;Bezeichnung;Artikel", ["4711"]],
  ["Artikel;Artikelbezeichnung;Artikelnr.", ["4711"]],
  // This heading may mean the article number as well.
  ["Artikel;Preis;Warengruppe", "refused"],
  ["Produktname;Artikelname;Artikelnr.", "refused"],
])("the option of a price list with the header %s is %j", async (header, names) => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, "preise.csv"), [header, "One;4711;Two"].join("\n"));
  const { file, bytes } = await openFile("preise.csv", {}, { ...RULES, allowedDirs: [folder] });
  const taken = itemsIn(bytes, file, optionRows).then((all) =>
    items(all).map((item) => ("name" in item ? item.name : item)),
  );
  if (names === "refused") await expect(taken).rejects.toThrow(/column/);
  else expect(await taken).toEqual(names);
});

test("in a sheet of IDs, the name of a product is no new name of an option", async () => {
  const { desired: wanted } = await desiredOf("Option ID;Artikelname;Artikelnr.\n01J0000000000000000000000A;One;4711");
  expect(wanted?.options[0]?.name).toBeUndefined();
});

test("the decimal comma of a damaged number is no comma of Context IDs", async () => {
  const { notes } = await read("german-price-list.csv", optionRows, { columns: { name: "Marke" } });
  expect(notes.join("\n")).not.toContain("commas, read");
});

test.each<readonly [row: string, inMiddle: "option" | "named" | "skipped", last: "option" | "named" | "skipped"]>([
  ["Total,[],no,goal,5", "option", "option"],
  ["Total,,no,,5", "option", "option"],
  ["Total,,,3,5", "option", "option"],
  ["Total,,,2,3", "skipped", "skipped"],
  ["Total,,,2,5", "named", "named"],
  ["Total,,,,3", "skipped", "skipped"],
  ["Summe:,,,,3.00", "skipped", "skipped"],
  // This may be a brand with this name, and a price.
  ["Total,,,,5", "named", "named"],
  ["합계,,,,5", "named", "named"],
  ["Total,,,,3,100%", "skipped", "skipped"],
  // Percentages do not add up, so only the position of the row can decide.
  ["Total,,,,,50%", "named", "skipped"],
  ["\nTotal,,,,5", "named", "skipped"],
  ["Total,,,=SUM(D2:D3),5", "skipped", "skipped"],
  ["Sum of all,,,,5", "option", "option"],
  ["Nike Total,,,,=SUBTOTAL(9;E2:E3)", "skipped", "skipped"],
  ["Total", "option", "option"],
])("%j is read in the middle of a sheet as %s, at its end as %s", async (row, inMiddle, last) => {
  const line = row.startsWith("\n") ? 5 : 4;
  const notes = { option: [], named: [AS_OPTION(line)], skipped: [SKIPPED(line)] };
  for (const [kind, isLast] of [[inMiddle, false] as const, [last, true] as const]) {
    expect(await noteOn(row, { isLast })).toEqual({ notes: notes[kind], isKept: kind !== "skipped" });
  }
});

test("a European price list with an option called Total, subtotals and a total", async () => {
  const { file, items: options, notes } = await read("german-total-brand.csv", optionRows);
  expect(file.sheet?.subtotals).toEqual([6, 9, 10]);
  expect(items(options)).toMatchObject([
    { name: "Shell", contexts: ["4711"] },
    { name: "Total", contexts: [] },
    { name: "Aral", contexts: ["4713"] },
    { name: "Castrol", contexts: ["5001"] },
    { name: "Motul", contexts: ["5002"] },
  ]);
  expect(notes).toContain("lines 6, 9 and 10 skipped as rows of totals");
  expect(notes).toContain(AS_OPTION(4));
});

test("a workbook: the sheet with a header, merged cells, numbers as they are shown, the row of totals", async () => {
  const { file, notes } = await read("korean-merged.xlsx", optionRows);
  expect(file.sheet).toEqual({ sheet: "Options", subtotals: [9] });
  expect(file.seen).toEqual({
    ...{ otherSheets: 1, sheets: ["Read me"], headerLine: 3, above: 1, ignored: 1, ignoredHeadings: ["Clicks"] },
  });
  expect(notes.join("\n")).toContain('read from the sheet "Options" (the workbook has 1 other sheet: "Read me")');
  await expect(read("korean-merged.xlsx", optionRows, { sheet: "Nothing" })).rejects.toThrow('no sheet "Nothing"');
  await expect(read("korean-merged.xlsx", optionRows, { sheet: 1 })).rejects.toThrow('"How to use this"');
  expect((await read("korean-merged.xlsx", optionRows, { sheet: 2 })).items).toHaveLength(3);
});

test("Windows-1252 is told from Korean", async () => {
  const one = await read("latin-libreoffice-windows-1252.csv", optionRows);
  expect(one.file.encoding).toBe("windows-1252");
  expect(items(one.items)).toEqual(items((await read("latin-utf8.csv", optionRows)).items));
});

test("what a spreadsheet has damaged is a problem of its row, whatever reads it", async () => {
  const damage = [
    undefined,
    "scientific",
    "formulaError",
    "formulaText",
    "truth",
    "date",
    "narrow",
    "invisible",
    "invisible",
    "quoted",
  ];
  const all = [await read("damaged.csv", optionRows), await read("damaged.csv", contextRows)];
  for (const { items: found } of all) {
    const details = found.map((one) => ("reason" in one ? one.reason.detail?.damage : undefined));
    expect(details).toEqual(damage);
    expect(problemOf(found[7])).toBe("damaged");
  }
  const found = all[0]?.items ?? [];
  expect("reason" in (found[8] ?? {}) && found[8]).toMatchObject({ reason: { detail: { characters: ["U+00A0"] } } });
  const { desired: wanted, problems } = await desired("damaged.csv");
  expect(problems).toEqual([]);
  expect(wanted.suspects.map(({ line }) => line)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test("cells of a workbook: formulas without values, rounded numbers, dates and errors", async () => {
  const { items: found } = await read("damaged.xlsx", optionRows);
  expect(found.map((one) => ("reason" in one ? one.reason.detail?.damage : one.item.contexts))).toEqual([
    ["a1"],
    "noValue",
    "scientific",
    ["2026-03-04"],
    "truth",
    "formulaError",
    ["12.5%"],
  ]);
});

test.each<readonly [name: string, given: SheetArguments, right: readonly (readonly string[] | string)[], note: string]>(
  [
    // Each row as its option and Context IDs, or as the problem of the row.
    [
      "odd-mac-line-ends.csv",
      {},
      [
        ["Football", "goal", "offside"],
        ["Running", "shoe", "sole"],
      ],
      "separated by |",
    ],
    [
      "odd-header-repeats.csv",
      {},
      [
        ["One", "a"],
        ["Two", "b"],
      ],
      "1 row skipped, equal to the header",
    ],
    [
      "odd-merged-header.xlsx",
      {},
      [
        ["One", "a"],
        ["Two", "b"],
      ],
      "1 row skipped, equal to the header",
    ],
    [
      "odd-mixed-separators.csv",
      {},
      [
        ["One", "a", "b"],
        ["Two", "c;d"],
      ],
      "1 cell of Context IDs with | or ;",
    ],
    [
      "odd-mixed-separators.csv",
      { separator: "|;" },
      [
        ["One", "a", "b"],
        ["Two", "c", "d"],
      ],
      "separated by |;",
    ],
    [
      "odd-numbers.xlsx",
      {},
      [
        ...[["Opt B", "1234567"], ["Opt C", "0.3"], "scientific", "scientific", ["Opt F", "04.03.2026"]],
        ...[["Opt G", "00123"], ["Opt H", "SKU-0005"], "truth", "noValue", ["Opt K", "-5"], ["Opt L", "1.50 €"]],
      ],
      "read from the sheet",
    ],
    [
      "german-damage.csv",
      {},
      ["formulaError", "formulaError", "truth", "date", "scientific", ["Zehn", "Größe"]],
      "read as Windows-1252, separated by semicolons",
    ],
    [
      "german-price-list.csv",
      { columns: { name: "Marke", contexts: "Artikelnummern" } },
      [
        ["Köhler & Söhne", "4711", "4712"],
        "scientific",
        ["Tail_spin", "5001", "5002"],
        "formulaError",
        ["Litware", "6001"],
      ],
      "line 9 skipped as a row of totals",
    ],
  ],
)("%s, read with %j, is what its rows mean", async (name, given, right, note) => {
  const { items: found, notes } = await read(name, optionRows, given);
  const rows = found.map((one) =>
    "reason" in one ? one.reason.detail?.damage : [one.item.name, ...(one.item.contexts ?? [])],
  );
  expect(rows).toEqual(right);
  expect(notes.join("\n")).toContain(note);
});

test("without a known heading the error shows the row that looks like a header, below a title", async () => {
  await expect(read("german-price-list.csv", optionRows)).rejects.toMatchObject({
    message: expect.stringContaining('its header was read from line 3: "Marke", "Artikelnummern", "Preis"'),
    remedy: expect.stringContaining('Map the heading to the column: columns {"name":"HEADING"}.'),
  });
});

test.each([
  ["odd-unclosed-quote.csv", /cell that begins here has no closing quotation mark \(line 2/],
  ["odd-utf8-and-cp949.csv", /line 3 of the file has bytes that are not UTF-8/],
  ["odd-utf8-one-bad-byte.csv", /line 3 of the file has bytes that are not UTF-8/],
  ["refused-html.csv", /page of HTML or XML/],
  ["refused-libreoffice.ods", /OpenDocument spreadsheet.*cannot be read/],
  ["refused-libreoffice.xls", /old Excel workbook.*cannot be read/],
  ["refused-encrypted.xlsx", /protected by a password/],
  ["refused-encrypted-agile.xlsx", /protected by a password/],
  ["refused-duplicate-part.xlsx", /same name/],
  ["refused-absolute-part.xlsx", /absolute path/],
  ["refused-entities.xlsx", /document type/],
  ["refused-many-columns.xlsx", /beyond column 512/],
  ["refused-large-strings.xlsx", /more than 96 MB/],
  ["refused-wrong-size.xlsx", /cannot be read: too many bytes/],
  ["refused-cut.xlsx", /cannot be read/],
])("%s is refused", async (name, words) => {
  await expect(read(name, optionRows)).rejects.toThrow(words);
});

test.each(["events.xlsx", "events.tsv"])(
  "events of %s are sent, and what failed is shown as it was given",
  async (name) => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const { context, sandbox } = await eventTools({ allowedDirs: [folder, FOLDER] });
    const rows = [
      "UID\tEvent Name\titem_id\tprice\tquantity\ttx_id",
      "a\tadd_to_cart\tx\t1.5\t2\t",
      "b\tadd_to_cart\ty\t\t1\t",
    ];
    const text = [...rows, "c\tpurchase\t\t\t\t00042", "d\tnot_an_event\t\t\t\t"].join("\r\n");
    await writeFile(
      join(folder, "events.tsv"),
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, "utf16le")]),
    );
    const { structured, text: said } = await answerOf(trackEvents, { file: name }, context);
    expect(structured).toMatchObject({ counts: { succeeded: 2, failed: 2 } });
    expect(said).toContain(name === "events.tsv" ? "Read as UTF-16, separated by tabs" : "with the header on line 3");
    expect(sandbox.events().map(({ text: body }) => JSON.parse(body))).toEqual([
      { uid: "a", eventName: "add_to_cart", item_id: "x", price: 1.5, quantity: 2 },
      { uid: "c", eventName: "purchase", tx_id: "00042" },
    ]);
    const given = { runId: String(structured.runId), outcome: "failed", includeInput: true } as const;
    const failed = await answerOf(getRun, given, context);
    expect(failed.structured).toMatchObject({
      results: [
        { input: { uid: "b", eventName: "add_to_cart", item_id: "y", quantity: 1 } },
        { input: { uid: "d", eventName: "not_an_event" } },
      ],
    });
  },
);

test("blank cells of events continue those above where fillDown names their column", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { context, sandbox } = await eventTools({ allowedDirs: [folder] });
  await writeFile(
    join(folder, "events.csv"),
    "uid,eventName,item_id,price,quantity\nu1,add_to_cart,x,1,1\n,add_to_cart,y,2,1\nu2,add_to_cart,z,3,1\n",
  );
  const dry = await answerOf(trackEvents, { file: "events.csv", fillDown: ["uid"], dryRun: true }, context);
  expect(dry.text).toMatch(/read as UTF-8, separated by commas/i);
  expect(dry.text).toContain(
    'line 3: uid "u1", eventName "add_to_cart", item_id "y", price 2, quantity 1; line 4: uid "u2"',
  );
  const { structured } = await answerOf(trackEvents, { file: "events.csv", fillDown: ["uid"] }, context);
  expect(structured).toMatchObject({ counts: { succeeded: 3 } });
  const sent = sandbox
    .events()
    .map(({ text }) => z.object({ uid: z.string(), item_id: z.string() }).parse(JSON.parse(text)));
  expect(sent.map(({ uid, item_id }) => `${item_id} of ${uid}`).sort()).toEqual(["x of u1", "y of u1", "z of u2"]);
});
