import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { strToU8, zipSync } from "fflate";
import { describe, expect, test } from "vitest";
import { sheetNotes } from "../../src/answers/sheets.ts";
import { optionRows } from "../../src/changes/rows/input-rows.ts";
import { actionIn } from "../../src/files/cells.ts";
import type { SheetArguments } from "../../src/files/detect-sheet.ts";
import { withDetectedForm } from "../../src/files/detected-form.ts";
import { openFile } from "../../src/files/open-file.ts";
import { itemsIn } from "../../src/files/rows.ts";
import { openArchive } from "../../src/files/xlsx/archive.ts";
import { trackEvents } from "../../src/tools/track-events.ts";
import { answerOf, eventTools } from "../support/event-tools.ts";

// Sheets as people have them. How each must be read was written down before the code.

/**
 * Reads a file. Returns each row as its option and Context IDs, or as the problem of the row, and the notes on the
 * file.
 */
async function read(name: string, content: string | Uint8Array, given: SheetArguments = {}) {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  await writeFile(join(folder, name), content);
  const { file: unread, bytes } = await openFile(name, given, { allowedDirs: [folder], maxLineBytes: 1_048_576 });
  const file = await withDetectedForm(bytes, unread, optionRows);
  const items = await itemsIn(bytes, file, optionRows);
  const rows = items.map((one) =>
    "reason" in one
      ? (one.reason.detail?.damage ?? one.reason.detail?.problem)
      : [one.item.name, ...(one.item.contexts ?? [])],
  );
  return { rows, notes: sheetNotes(file).join("\n"), groups: items.map((one) => "item" in one && one.item.parentName) };
}

const text = (content: string) => `<c t="inlineStr"><is><t>${content}</t></is></c>`;
const row = (...cells: readonly string[]) =>
  `<row>${cells.map((one) => (one.startsWith("<") ? one : text(one))).join("")}</row>`;

interface Parts {
  readonly formats?: readonly string[];
  /** The XML prefix of elements, and in `relations` the one of references to sheets. */
  readonly prefix?: string;
  readonly relations?: string;
  readonly sheets?: readonly string[];
  /** The content of the second sheet. Default: that of the first. */
  readonly second?: string;
}

/** Returns a workbook whose XML is written by hand. */
function workbook(
  content: string,
  { formats = [], prefix = "", relations = "r", sheets = ["Data"], second = content }: Parts = {},
) {
  const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
  const related = (targets: readonly (readonly [string, string])[]) => {
    const each = targets.map(
      ([type, target], at) => `<Relationship Id="rId${at}" Type="${office}/${type}" Target="${target}"/>`,
    );
    return strToU8(`<Relationships>${each.join("")}</Relationships>`);
  };
  const own = (xml: string) => strToU8(xml.replaceAll(/<(\/?)(?=[a-z])/g, `<$1${prefix}`));
  const named = sheets.map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" ${relations}:id="rId${at}"/>`);
  const codes = formats.map((code, at) => `<numFmt numFmtId="${200 + at}" formatCode="${code}"/>`);
  const styles = formats.map((_, at) => `<xf numFmtId="${200 + at}"/>`);
  return zipSync({
    "_rels/.rels": related([["officeDocument", "xl/workbook.xml"]]),
    "xl/workbook.xml": own(`<workbook><sheets>${named.join("")}</sheets></workbook>`),
    "xl/_rels/workbook.xml.rels": related([
      ...sheets.map((_, at) => ["worksheet", at === 1 ? "second.xml" : "sheet.xml"] as const),
      ["styles", "styles.xml"],
    ]),
    "xl/styles.xml": strToU8(
      `<styleSheet><numFmts>${codes.join("")}</numFmts><cellXfs>${styles.join("")}</cellXfs></styleSheet>`,
    ),
    "xl/sheet.xml": own(`<worksheet>${content}</worksheet>`),
    "xl/second.xml": own(`<worksheet>${second}</worksheet>`),
  });
}

const rowsOf = (...rows: readonly string[]) => `<sheetData>${rows.join("")}</sheetData>`;

describe("rows of text files", () => {
  test("the empty rows of a template are skipped, whatever it fills in", async () => {
    const { rows, notes } = await read(
      "google.csv",
      "No.,Action,Option,Group,Context IDs,Is Group,Active\r\n1,Add,One,,a,no,TRUE\r\n2,Add,,,,no,FALSE\r\n3,Add,,,b,no,\r\n",
    );
    expect(rows).toEqual([
      ["One", "a"],
      ["", "b"],
    ]);
    expect(notes).toContain("1 row skipped, without an option, a group or Context IDs");
  });

  test.each([
    ['Option,Group,Context IDs\n"Text, 2-36 characters",Name of a group,Separated by |\nOne,Top,a\n', "line 2 skipped"],
    ["Option,Group,Context IDs\nrequired,optional,optional\nOne,Top,a\n", "line 2 skipped"],
    [
      'Option,Group,Context IDs\nstring,string,string[]\nrequired,,"optional, many"\nOne,Top,a\n',
      "lines 2 and 3 skipped",
    ],
    ["옵션명;그룹;키워드\n예: 봄 신상;예: 신발;12345\n필수;선택;선택\nOne;Top;a\n", "lines 2 and 3 skipped"],
    ["Option | Context IDs | Group\n-------+-------------+------\nOne | a | Top\n", "line 2 skipped"],
    ["Option|Context IDs|Group\n'---|'---|'---\nOne|a|Top\n", "line 2 skipped"],
    ["| Option | Context IDs | Group |\n|:---|----:|---|\n| One | a | Top |\n", "line 2 skipped"],
    ["Option;Gruppe;Artikelnummer\nz. B. Schuhe;z. B. Sport;4711\nOne;Top;a\n", "line 2 skipped"],
  ])("hints below the header are no options: %j", async (content, note) => {
    const { rows, notes } = await read("a.csv", content);
    expect(rows).toEqual([["One", "a"]]);
    expect(notes).toMatch(new RegExp(`${note} as (a row|rows) of hints or notes`));
  });

  test.each([
    [
      "Option,Context IDs\nText,text\nOptional,\nRequired,required\n",
      [["Text", "text"], ["Optional"], ["Required", "required"]],
    ],
    [
      'Option,Context IDs\nText,"number, text"\nexample,예쁜 신발\n',
      [
        ["Text", "number, text"],
        ["example", "예쁜 신발"],
      ],
    ],
    [
      "Option,Context IDs\nOne,a\nrequired,optional\n",
      [
        ["One", "a"],
        ["required", "optional"],
      ],
    ],
    ["Option,Context IDs\n예쁜 신발,선택\n", [["예쁜 신발", "선택"]]],
  ])("options that are called like hints stay: %j", async (content, right) => {
    expect((await read("a.csv", content)).rows).toEqual(right);
  });

  test.each([
    "Option,One,Two\nContext IDs,a|b,c\n",
    "Group,Top,Top\nOption,One,Two\nOwner,Kim,Lee\nContext IDs,a|b,c\n",
    "옵션명;봄 신상;여름\n그룹;신발;신발\n키워드;12345;23456\n",
  ])("a sheet with its headings in the first column is refused with what to do: %j", async (content) => {
    await expect(read("a.csv", content)).rejects.toMatchObject({
      message: expect.stringContaining("the sheet is transposed"),
      remedy: expect.stringContaining("Transpose"),
    });
  });

  test("a list of options that are called like columns is no transposed sheet", async () => {
    expect((await read("a.csv", "Option\nGroup\nOne\nTwo\n")).rows).toEqual([["Group"], ["One"], ["Two"]]);
    expect((await read("a.csv", "Option\nGroup\nKeyword\n")).rows).toEqual([["Group"], ["Keyword"]]);
    expect((await read("a.csv", "Option,Context IDs\nGroup,a\nKeyword,b\n")).rows).toHaveLength(2);
  });

  test("lines and rows are told apart where cells hold line breaks", async () => {
    const { notes } = await read("a.csv", 'Option,Context IDs\nOne,"a\nb\nc"\nTwo,d\n');
    expect(notes).toContain("lines are those of a text editor; cells contain 2 line breaks");
    expect((await read("a.csv", "sep=,\nOption,Context IDs\nOne,a\n")).notes).not.toContain("text editor");
  });

  test("a character that was lost in a wrong encoding is a problem of its row", async () => {
    const { rows } = await read(
      "a.csv",
      "Option,Group,Context IDs\nOne,,a\uFFFDb\nTw\uFFFD,,a\nThree,T\uFFFDp,a\nFour,,a\n",
    );
    expect(rows).toEqual(["undecoded", "undecoded", "undecoded", ["Four", "a"]]);
  });

  test("joined files have a mark and a header each, and may have a title", async () => {
    for (const header of ["Option,Context IDs", '"Option","Context IDs"']) {
      const { rows, notes } = await read("a.csv", `\uFEFF${header}\nOne,a\n\uFEFF${header}\nTwo,b\n`);
      expect(rows).toEqual([
        ["One", "a"],
        ["Two", "b"],
      ]);
      expect(notes).toContain("1 row skipped, equal to the header");
    }
    const titled = "Table 1\nOption,Context IDs\nOne,a\n\nTable 2\nOption,Context IDs\nTwo,b\n\nThree,\n";
    const { rows, notes } = await read("a.csv", titled);
    expect(rows).toEqual([["One", "a"], ["Two", "b"], ["Three"]]);
    expect(notes).toContain("1 row skipped, as the title of another table");
  });

  test("cells in columns without a heading are not read, which is said", async () => {
    const { rows, notes } = await read("a.csv", "Option;Context IDs;;\nOne;a;b;\nTwo;c;;\n");
    expect(rows).toEqual([
      ["One", "a"],
      ["Two", "c"],
    ]);
    expect(notes).toContain("1 cell ignored, in columns without a heading");
  });

  test("spaces around names are no part of them", async () => {
    const { rows, notes, groups } = await read("a.csv", "Option,Group,Context IDs\nOne ,Top ,a\n Two,, b\nThree,,c\n");
    expect(rows).toEqual([
      ["One", "a"],
      ["Two", "b"],
      ["Three", "c"],
    ]);
    expect(groups).toEqual(["Top", undefined, undefined]);
    expect(notes).toContain("3 names read without the spaces around them");
  });

  test("a row of headings above more headings is a title", async () => {
    const { rows, notes } = await read("a.csv", "Option,,Context,\nOption,Group,Context IDs,Note\nOne,,a,n\n");
    expect(rows).toEqual([["One", "a"]]);
    expect(notes).toContain("with the header on line 2; 1 row above it skipped");
  });

  test.each([
    // A workbook fills cells that are merged downwards; a text file leaves them empty.
    ["그룹,옵션,\n,옵션명,키워드\nTop,One,a\nTop,Two,b\n", ["a"]],
    ["구분,,컨텍스트 ID\n그룹,옵션명,\nTop,One,a\nTop,Two,b\n", ["a"]],
    ["그룹,옵션,컨텍스트 ID,\n그룹,옵션,1,2\nTop,One,a,c\nTop,Two,,b\n", ["a", "c"]],
    ["그룹,옵션,컨텍스트 ID,\n,,1,2\nTop,One,a,c\nTop,Two,b,\n", ["a", "c"]],
    ["Title\n\nOption,,Context,\nGroup,Name,IDs,Action\nTop,One,a|c,\nTop,Two,b,add\n", ["a", "c"]],
  ])("a header on two lines is read as one: %j", async (content, first) => {
    const { rows, notes, groups } = await read("a.csv", content);
    expect(rows).toEqual([
      ["One", ...first],
      ["Two", "b"],
    ]);
    expect(groups).toEqual(["Top", "Top"]);
    expect(notes).toContain(`with the header on line ${content.startsWith("Title") ? 4 : 2}`);
    expect(notes.includes("skipped")).toBe(content.startsWith("Title"));
    expect(notes).not.toContain("cell ignored");
  });

  test("a workbook with merged cells in a header on two lines has no option called like its column", async () => {
    const content = `${rowsOf(
      row("Option", "Context ID", ""),
      row("", "1", "2"),
      row("One", "a", "c"),
      row("Two", "b", ""),
    )}<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/></mergeCells>`;
    expect((await read("a.xlsx", workbook(content))).rows).toEqual([
      ["One", "a", "c"],
      ["Two", "b"],
    ]);
  });

  test.each([
    "Option,Context ID,Group\nGroup,Keyword,\nTwo,b,\n",
    "Option,Context ID,\nOne,1,2\nTwo,b,\n",
    "Option,,Note\nOne,Group,\nTwo,,Keyword\n",
  ])("a first row with words of the header is no second line of it: %j", async (content) => {
    expect((await read("a.csv", content)).rows).toHaveLength(2);
  });

  test.each([
    ["Spring,,,,\nOption,,Context ID,,\nName,Group,1,2,Note\nOne,Top,a,c,n\nTwo,Top,b,,\n", ["a", "c"]],
    ["Stammdaten,,,Targeting\nOption,,Kontakt,Kontext\nName,Gruppe,,IDs\nOne,Top,K,a|c\nTwo,Top,K,b\n", ["a", "c"]],
    ["타게팅,,,\n옵션,,컨텍스트,\n옵션명,그룹,ID,개수\nOne,Top,a,1\nTwo,Top,b,1\n", ["a"]],
    ["옵션명,그룹,타게팅,\n,,컨텍스트 ID,\n,,1,2\nOne,Top,a,c\nTwo,Top,b,\n", ["a", "c"]],
    ["옵션명,그룹,타게팅,\n옵션명,그룹,컨텍스트 ID,\n옵션명,그룹,1,2\nOne,Top,a,c\nTwo,Top,b,\n", ["a", "c"]],
  ])("a header on three lines is read, with its title or without: %j", async (content, first) => {
    const { rows, notes, groups } = await read("a.csv", content);
    expect(rows).toEqual([
      ["One", ...first],
      ["Two", "b"],
    ]);
    expect(groups).toEqual(["Top", "Top"]);
    expect(notes).toContain("with the header on line 3");
  });

  test("a last line of the header that repeats its other headings is no option", async () => {
    const content = "옵션,,타게팅,\n이름,그룹,키워드,\n이름,그룹,첫째,둘째\nOne,Top,a,\nTwo,Top,b,\n";
    const { rows, notes } = await read("a.csv", content);
    expect(rows).toEqual([
      ["One", "a"],
      ["Two", "b"],
    ]);
    expect(notes).toContain("line 3 skipped as a row of hints or notes");
  });

  test("two columns with one heading are refused with a remedy that works", async () => {
    const refused = read("a.csv", "Option,Context IDs,,Option,Context IDs\nOne,a,,Two,b\n");
    await expect(refused).rejects.toMatchObject({ remedy: expect.stringMatching(/^Delete all but one/) });
  });

  test("a sheet without headings is refused with those that it needs", async () => {
    await expect(read("a.csv", "One,a1|a2\nTwo,b1\n")).rejects.toMatchObject({
      remedy: expect.stringContaining('If the sheet has no headings, insert a row of them: "Option".'),
    });
  });

  test.each([
    '"Option,""Context IDs"",Group"\r\n"One,""a|b"","\r\n',
    "option               context_ids\n-------------------- -----------\nOne                  a\n",
  ])("a sheet with whole lines as cells is refused with how to save it: %j", async (content) => {
    await expect(read("a.csv", content)).rejects.toMatchObject({
      message: expect.stringContaining("is a single cell with all headings"),
      remedy: expect.stringContaining("Export the data again as .xlsx"),
    });
  });

  test("headings may be marked as required, or end with a colon", async () => {
    const { rows, groups } = await read("a.csv", "Option*,Group:,Context IDs *\nOne,Top,a|b\n");
    expect(rows).toEqual([["One", "a", "b"]]);
    expect(groups).toEqual(["Top"]);
  });

  test.each([
    "옵션명(필수),그룹 (선택),키워드(하나씩)",
    "[필수] 옵션명,[선택] 그룹,【선택】키워드",
    "Option (required),Group (optional),Context ID (one per row)",
    "1. Option,2) Group,3. Context ID",
    '"옵션명\n(2~36자)","그룹\n(선택)","키워드\n（하나씩）"',
  ])("headings may have numbers and notes: %s", async (header) => {
    const { rows, groups } = await read("a.csv", `${header}\nOne,Top,a|b\n`);
    expect([rows, groups]).toEqual([[["One", "a|b"]], ["Top"]]);
  });

  test("a heading with a note counts only if there is no better one", async () => {
    const plain = await read("a.csv", "Option,Option (old),Keyword,Keywords (old)\nOne,Two,a,b\n");
    expect(plain.rows).toEqual([["One", "a"]]);
    expect(plain.notes).toContain('2 columns ignored: "Option (old)", "Keywords (old)"');
    const twice = read("a.csv", "Option,Keyword (main),Keyword (other)\nOne,a,b\n");
    await expect(twice).rejects.toThrow("are all read as the column contextId");
    const left = await read("a.csv", "Option,Keyword (main)\nOne,a\n", { columns: { contextId: "" } });
    expect(left.rows).toEqual([["One"]]);
  });

  test("a heading that is like a name is not taken for an ID", async () => {
    const refused = read("a.csv", "My options,Context IDs of them\nOne,a\n");
    await expect(refused).rejects.toMatchObject({ remedy: expect.stringContaining('"name":"My options"') });
    await expect(refused).rejects.not.toMatchObject({ remedy: expect.stringContaining('"_id"') });
  });

  test("a column Status is the person's own, so it is named as ignored", async () => {
    const { notes } = await read("a.csv", "Option,Context IDs,Status\nOne,a,paused\n");
    expect(notes).toContain('1 column ignored: "Status"');
  });

  test.each([
    ["Option,Keyword 1,Keyword 2,Keyword 3", "One,a,b|c,\nTwo,,,d\nThree,,,\n"],
    ["Option,Keyword,Keyword 2,Keyword (3)", "One,a,b|c,\nTwo,,,d\nThree,[],,\n"],
    ["옵션명,키워드1,키워드2,키워드3", "One,,a,b|c\n,,d,\nTwo,d,,\nThree,,,\n"],
    ["Option,Context ID #1,Context ID #2,Note", "One,a,b|c,n\nTwo,,d,\nThree,,,\n"],
  ])("numbered columns of Context IDs are read together: %s", async (header, content) => {
    const { rows, notes } = await read("a.csv", `${header}\n${content}`);
    const isContinued = content.includes("\n,");
    expect(rows).toEqual([["One", "a", "b|c", ...(isContinued ? ["d"] : [])], ["Two", "d"], ["Three"]]);
    expect(notes).not.toMatch(/ignored: "(?:Key|Con|키)|no column|separated by line breaks/i);
    expect(notes).toContain("1 cell of Context IDs with | or ;");
    const split = await read("a.csv", `${header}\n${content}`, { separator: "|" });
    expect(split.rows[0]).toEqual(["One", "a", "b", "c", ...(isContinued ? ["d"] : [])]);
  });

  test("numbered columns of several Context IDs are read together", async () => {
    const { rows, notes } = await read("a.csv", "Option,Context IDs 1,Context IDs 2\nOne,a;b,c\nTwo,,d;e\n");
    expect(rows).toEqual([
      ["One", "a", "b", "c"],
      ["Two", "d", "e"],
    ]);
    expect(notes).toContain("2 cells with several Context IDs, separated by ;");
  });

  test("of numbered columns, the caller may choose one or leave one out", async () => {
    const sheet = "Option,Keyword 1,Keyword 2,Keyword 3\nOne,a,b,c\n";
    const one = await read("a.csv", sheet, { columns: { contextId: "Keyword 2" } });
    expect(one.rows).toEqual([["One", "b"]]);
    expect(one.notes).toContain('2 columns ignored: "Keyword 1", "Keyword 3"');
    expect((await read("a.csv", sheet, { columns: { "Keyword 2": "" } })).rows).toEqual([["One", "a", "c"]]);
    expect((await read("a.csv", sheet, { columns: { contextId: "" } })).rows).toEqual([["One"]]);
  });

  test("what a spreadsheet damaged in a further column of Context IDs is a problem of its row", async () => {
    const { rows, notes } = await read("a.csv", "Option,Keyword 1,Keyword 2\nOne,a,1.2E+15\nTwo,b,2026-03-04\n");
    expect(rows).toEqual(["scientific", ["Two", "b", "2026-03-04"]]);
    expect(notes).toContain("1 Context ID that is a date");
  });

  test("numbered columns that repeat each other, or are of two kinds, are refused", async () => {
    const twice = read("a.csv", "Option,Keyword 1,Keyword 1\nOne,a,b\n");
    await expect(twice).rejects.toThrow("are all read as the column contextId");
    const both = read("a.csv", "Option,Context IDs,Context ID 2\nOne,a,b\n");
    await expect(both).rejects.toThrow("both columns contextId and contexts");
  });

  test("a heading with a year is no further column of Context IDs", async () => {
    const { rows, notes } = await read("a.csv", "Option,Keyword 2025,Keyword 2026\nOne,a,b\n");
    expect(rows).toEqual([["One"]]);
    expect(notes).toContain('no column of Context IDs was read. If "Keyword 2025" has one Context ID in each row');
    expect((await read("a.csv", "Option,Note\nOne,a\n")).notes).not.toContain("no column");
  });
});

describe("cells of text files", () => {
  const MAC = "Option;Context IDs\rGr\x9a\xa7en;Stra\xa7e\r\x80pfel;M\x9fnchen\r";

  test.each([
    ["\r", "read as Mac Roman, separated by semicolons"],
    ["\r\n", "read as Mac Roman, separated by semicolons"],
  ])("CSV of Excel on a Mac, with lines that end with %j", async (end, note) => {
    const { rows, notes } = await read("a.csv", Buffer.from(MAC.replaceAll("\r", end), "latin1"));
    expect(rows).toEqual([
      ["Größen", "Straße"],
      ["Äpfel", "München"],
    ]);
    expect(notes).toContain(note);
  });

  test("lines that end with carriage returns may have line feeds inside their cells", async () => {
    const content = Buffer.from('Option;Context IDs\rOne;"a\nb"\rTwo;Gr\x9a\xa7e\r', "latin1");
    const { rows, notes } = await read("a.csv", content);
    expect(rows).toEqual([
      ["One", "a", "b"],
      ["Two", "Größe"],
    ]);
    expect(notes).toContain("Mac Roman");
    const quoted = 'Option,"Context\rIDs"\nOne,a\n';
    expect((await read("a.csv", quoted)).rows).toEqual([["One", "a"]]);
  });

  test.each(["cœur|L’Oréal", "Škoda|Beneš", "12,50 €", "Größe", "Ægir|Žižek"])(
    "Windows-1252 stays that: %s",
    async (words) => {
      const bytes: Readonly<Record<string, number>> = {
        œ: 0x9c,
        "’": 0x92,
        Š: 0x8a,
        š: 0x9a,
        Ž: 0x8e,
        ž: 0x9e,
        "€": 0x80,
      };
      const encoded = Buffer.from(
        `Option;Context IDs\r\nOne;${words}\r\n`.replaceAll(/[œ’ŠšŽž€]/g, (one) =>
          String.fromCharCode(bytes[one] ?? 0),
        ),
        "latin1",
      );
      const { rows, notes } = await read("a.csv", encoded);
      expect(rows).toEqual([["One", ...words.split("|")]]);
      expect(notes).toContain("Windows-1252");
    },
  );

  test.each([
    ["'00123", "apostrophe"],
    ["• 00123", "bullet"],
    ["- shoes", "bullet"],
    ["N/A", "placeholder"],
    ["null", "placeholder"],
    ["–", "placeholder"],
    ["\\N", "placeholder"],
    ["(null)", "placeholder"],
    ["4.01E12", "scientific"],
    ["4012345000011.0", "decimal"],
    ["04/mar", "date"],
    ["04-mars", "date"],
    ["3-Mrz", "date"],
    ["04-Mai", "date"],
    ["Mrz-04", "date"],
    ["Okt-26", "date"],
    ["janv-04", "date"],
    ["dic-25", "date"],
    ["3月4日", "date"],
    ["#DEĞER!", "formulaError"],
    ["#N/D", "formulaError"],
    ["#VALOR!", "formulaError"],
    ["#VALORE!", "formulaError"],
    ["a\u000Bb", "invisible"],
    ["a\u0085b", "invisible"],
    ["MÃ¼nchen", "misread"],
    ["lâ€™Oréal", "misread"],
  ])("%s is not a Context ID", async (id, damage) => {
    expect((await read("a.csv", `Option,Context ID\nOne,${id}\n`)).rows).toEqual([damage]);
  });

  test.each([
    "SÃO PAULO",
    "n-a",
    "1.2.3",
    "'a",
    "Null",
    "100.200",
    "12E5",
    "1234.0",
    "Set-10",
    "AVR-10",
    "Mai-2026",
    "3-4",
    "-3",
    "-shoes",
    "#SALE!",
  ])("%s is a Context ID", async (id) => {
    const { rows, notes } = await read("a.csv", `Option,Context ID\nOne,${id}\n`);
    expect(rows).toEqual([["One", id]]);
    expect(notes).toBe("");
  });

  test.each(["4012345/4012346", "4012345 4012346", "4012345 & 4012346", "신발、모자", "a，b", "a；b"])(
    "signs between Context IDs are pointed out, and can be named: %s",
    async (cell) => {
      const content = `Option,Context IDs\nOne,${cell}\n`;
      const { rows, notes } = await read("a.csv", content);
      expect(rows).toEqual([["One", cell]]);
      const [, separator = ""] =
        /1 cell of Context IDs with ".", read as .*; separator "(.+)" splits/.exec(notes) ?? [];
      const split = await read("a.csv", content, { separator });
      expect(split.rows).toEqual([["One", ...cell.split(/ ?[/&、，；] ?| /)]]);
      expect(split.notes).not.toContain("read as part");
    },
  );

  test.each(["AC/DC", "1234-5678", "2026/03/04", "12 345", "1234"])("%s is one Context ID", async (cell) => {
    expect((await read("a.csv", `Option,Context IDs\nOne,${cell}\n`)).notes).not.toContain("read as part");
  });

  test("thousands separators and dates in Context IDs are pointed out, and are no lists", async () => {
    const { rows, notes } = await read("a.csv", 'Option;Context IDs\nOne;"1,234"\nTwo;4.012.345\nThree;04.03.2026\n');
    expect(rows).toEqual([
      ["One", "1,234"],
      ["Two", "4.012.345"],
      ["Three", "04.03.2026"],
    ]);
    expect(notes).toContain("2 Context IDs with thousands separators, which were read as part of the ID");
    expect(notes).toContain("1 Context ID that is a date (line 4): check whether");
    expect(notes).not.toContain("commas");
  });

  test.each([
    ...[
      "Total général",
      "Suma total",
      "Totale complessivo",
      "Total geral",
      "Eindtotaal",
      "合計",
      "总计",
      "총 합계",
      "Toplam",
      "Genel Toplam",
    ],
  ])("%s begins a row of totals", async (word) => {
    const { rows, notes } = await read("a.csv", `Option;Context IDs;Clicks\nOne;a;10\nTwo;b;20\n${word};;30\n`);
    expect(rows).toHaveLength(2);
    expect(notes).toContain("line 4 skipped as a row of totals");
  });

  test("an X is no yes, because people who mark with O and X mean no by it", async () => {
    const { rows } = await read("a.csv", "옵션명,그룹 여부,키워드\n신발,X,a\n모자,x,b\n");
    expect(rows).toEqual(["type", "type"]);
  });

  test("a list with signs before its entries is a problem of its row", async () => {
    const { rows } = await read("a.csv", 'Option,Context IDs\nOne,"- a\n- b"\nTwo,"• a\n• b"\nThree,"a\nb"\n');
    expect(rows).toEqual(["bullet", "bullet", ["Three", "a", "b"]]);
  });

  test.each(['[{"name":"One"}]', '{"name":"One"}\n', '\uFEFF[\n  {\n "name": "One" } ]'])(
    "JSON in a file with the name of a sheet is called that: %j",
    async (content) => {
      await expect(read("a.csv", content)).rejects.toMatchObject({
        message: expect.stringContaining("contains JSON"),
        remedy: expect.stringContaining("Name it .json"),
      });
    },
  );

  test("a lone carriage return separates Context IDs like a line feed", async () => {
    const { rows } = await read("a.csv", 'Option,Context IDs\nOne,"a\rb"\n');
    expect(rows).toEqual([["One", "a", "b"]]);
  });

  test.each(["✓", "oui", "WAHR", "sí", "evet", "はい"])("%s is a yes", async (yes) => {
    expect((await read("a.csv", `Option,Is Group,Context IDs\nOne,${yes},a\n`)).rows).toEqual([["One", "a"]]);
  });
});

describe("files whose name ends in .xls", () => {
  const sheet = "옵션명\t키워드\r\n신발\ta|b\r\n모자\tc\r\n";
  const words = "<html><head></head><body><table><tr><td>Option</td></tr></table></body></html>";

  test.each([
    ["UTF-16 with its mark", Buffer.from(`\uFEFF${sheet}`, "utf16le")],
    ["UTF-16", Buffer.from(sheet, "utf16le")],
    ["UTF-8", Buffer.from(sheet)],
    ["CP949", Buffer.from("bfc9bcc7b8ed09c5b0bff6b5e50abdc5b9df09617c620ab8f0c0da09630a", "hex")],
    ["UTF-8 with commas", Buffer.from(sheet.replaceAll("\t", ","))],
  ])("a text in %s is read", async (_, content) => {
    const { rows } = await read("a.xls", content);
    // A cell of a column of single Context IDs may hold a separator.
    expect(rows).toEqual([
      ["신발", "a|b"],
      ["모자", "c"],
    ]);
  });

  test("a new workbook is read", async () => {
    const content = rowsOf(row("Option", "Context ID"), row("One", "a"));
    expect((await read("a.xls", workbook(content))).rows).toEqual([["One", "a"]]);
  });

  test.each([
    ["is really a page of HTML or XML", Buffer.from(words)],
    ["is really a page of HTML or XML", Buffer.from(`<!-- Report -->\n${words}`)],
    ["is really a page of HTML or XML", Buffer.from(`\uFEFF${words}`, "utf16le")],
    ["is really a page of HTML or XML", Buffer.from('<?xml version="1.0"?><Workbook></Workbook>')],
    ["is really a page of HTML or XML", Buffer.from(`<style>td { }</style>${words}`)],
    ["is really a page of HTML or XML", Buffer.from(`MIME-Version: 1.0\nContent-Type: multipart/related\n\n${words}`)],
    ["is an old Excel workbook, which cannot be read", Buffer.from("d0cf11e0a1b11ae1".padEnd(1024, "0"), "hex")],
    ["is an old Excel workbook, which cannot be read", Buffer.from("0908080000001000".padEnd(1024, "0"), "hex")],
    ["is an old Excel workbook, which cannot be read", Buffer.from("0900040000001000".padEnd(1024, "0"), "hex")],
  ])("what cannot be read says how to save it: %s", async (message, content) => {
    await expect(read("a.xls", content)).rejects.toMatchObject({
      message: expect.stringContaining(message),
      remedy: "Open it in a spreadsheet program and save it as .xlsx or as CSV UTF-8.",
    });
  });
});

describe("workbooks of other programs", () => {
  test("an empty file is called that", async () => {
    await expect(read("a.xlsx", "")).rejects.toThrow("the file is empty");
  });

  test("relations and elements have any prefix", async () => {
    const content = rowsOf(row("Option", "Context ID"), row("One", "<c><v>4711</v></c>"));
    const { rows, notes } = await read(
      "a.xlsx",
      workbook(content, { prefix: "x:", relations: "d3p1", sheets: ["Data", "Other"] }),
    );
    expect(rows).toEqual([["One", "4711"]]);
    expect(notes).toContain('read from the sheet "Data" (the workbook has 1 other sheet: "Other")');
  });

  test("an error of a header names its sheet, and does not say that no sheet has a header", async () => {
    const content = rowsOf(row("Option", "Option", "Context IDs"), row("One", "Two", "a"));
    const reading = read("twice.xlsx", workbook(content, { sheets: ["Data", "Notes"] }));
    await expect(reading).rejects.toThrow(/all read as the column name; this is the sheet "Data"$/);
  });

  test("behind a cover, the error names the other sheets and maps nothing of the cover", async () => {
    const content = rowsOf(row("Please read"), row("This workbook lists our brands."));
    const reading = read("cover.xlsx", workbook(content, { sheets: ["Cover", "Brands"] }));
    await expect(reading).rejects.toMatchObject({
      message: expect.stringContaining('this is the sheet "Cover"'),
      remedy: expect.stringContaining('To read one of them: sheet "Brands".'),
    });
    await expect(reading).rejects.not.toMatchObject({ remedy: expect.stringContaining("Please read") });
  });

  test("a sheet that explains the columns is not read instead of the table", async () => {
    const table = rowsOf(row("Option", "Context ID"), row("One", "a"));
    for (const first of [
      rowsOf(
        row("Column", "Meaning"),
        row("Option", "Its name"),
        row("Context ID", "Its ID"),
        row("Group", "Its group"),
      ),
      rowsOf(row("Option", "Clicks"), row("One", "12")),
    ]) {
      const content = workbook(first, { sheets: ["Read me", "Data"], second: table });
      const { rows, notes } = await read("a.xlsx", content);
      expect(rows).toEqual([["One", "a"]]);
      expect(notes).toContain('read from the sheet "Data" (the workbook has 1 other sheet: "Read me")');
    }
    const alone = workbook(rowsOf(row("Option"), row("One")), {
      sheets: ["Names", "Notes"],
      second: rowsOf(row("Hello")),
    });
    expect((await read("a.xlsx", alone)).rows).toEqual([["One"]]);
  });

  test("numbers have no thousands separators, and dates of Strict workbooks the format of their cell", async () => {
    const content = rowsOf(
      row("Option", "Context ID"),
      row("One", '<c s="0"><v>1234567</v></c>'),
      row("Two", '<c s="1"><v>1234.5</v></c>'),
      row("Three", '<c s="2" t="d"><v>2026-03-04T00:00:00</v></c>'),
      row("Four", '<c t="d"><v>2026-03-04T12:30</v></c>'),
      row("Five", '<c t="d"><v>2026-03-04</v></c>'),
    );
    const { rows } = await read("a.xlsx", workbook(content, { formats: ["#,##0", "#,##0.00", "yyyymmdd"] }));
    const ids = ["1234567", "1234.50", "20260304", "2026-03-04 12:30", "2026-03-04"];
    expect(rows.map((one) => Array.isArray(one) && one[1])).toEqual(ids);
  });

  test.each([
    ["0.00E+00", "4012345000011", "4012345000011"],
    ["0.0,,", "4012345", "4012345"],
    ["General&quot; kg&quot;", "12", "12"],
    ["[DBNum1]0", "12", "12"],
    ["&quot;SKU-&quot;0000", "42", "SKU-0042"],
    ["[$-411]ggge&quot;年&quot;m&quot;月&quot;d&quot;日&quot;", "46085", "2026-03-04"],
    ["bbbb/mm/dd", "46085", "2026-03-04"],
    ["[$-407]d. mmmm yyyy h:mm", "46085.5", "2026-03-04 12:00"],
    ["[$-409]d mmm yyyy", "46085", "4 Mar 2026"],
    ["[$-412]yyyy&quot;년&quot; m&quot;월&quot; d&quot;일&quot;", "46085", "2026년 3월 4일"],
    ["[h]:mm", "1.5", "36:00"],
  ])("a number with the format %s is read as it is shown, or as it is stored", async (code, value, id) => {
    const content = rowsOf(row("Option", "Context ID"), row("One", `<c s="0"><v>${value}</v></c>`));
    const { rows, notes } = await read("a.xlsx", workbook(content, { formats: [code] }));
    expect(rows).toEqual([["One", id]]);
    expect(notes.includes("1 Context ID that is a date")).toBe(value.startsWith("46085"));
  });

  test("numbers of events are those that a cell stores, not those that it shows", async () => {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const { context } = await eventTools({ allowedDirs: [folder] });
    const cells = ["0000", "0", "&quot;$&quot;#,##0", "0%"].map((_, at) => `<c s="${at}"><v>12.5</v></c>`);
    const content = rowsOf(
      row("uid", "eventName", "item_id", "price", "quantity", "items.0.price"),
      row("u", "add_to_cart", ...cells),
    );
    await writeFile(
      join(folder, "events.xlsx"),
      workbook(content, { formats: ["0000", "0", "&quot;$&quot;#,##0", "0%"] }),
    );
    const { text: said } = await answerOf(trackEvents, { file: "events.xlsx", dryRun: true }, context);
    expect(said).toContain('item_id "0013", price 12.5, quantity 12.5');
    expect(said).toContain('price\\":12.5');
  });

  test.each([
    "2026. 3. 4.",
    "2026/03/04 9:31 AM",
    "令和8年3月4日",
    "4. März 2026",
    "Wednesday, March 4, 2026",
    "04-Mar-26",
  ])("a Context ID %s is a date, which is said", async (date) => {
    expect((await read("a.tsv", `Option\tContext ID\nOne\t${date}\n`)).notes).toContain("1 Context ID that is a date");
  });

  test.each(["4711/1/2", "Model 12, 2026", "1.2.3", "20-12345-6"])("a Context ID %s is no date", async (id) => {
    expect((await read("a.tsv", `Option\tContext ID\nOne\t${id}\n`)).notes).not.toContain("date");
  });

  test.each([
    ["No.,옵션명,키워드\n1,One,a\n2,Two,b\n합계,2건,\n※ 참고,,\n", 4],
    ["Group,Option,Context IDs\n,One,a\n,Two,b\nTotal,2,\n* approved,,\n", 4],
    ["option,context_ids\nOne,a\nTwo,b\n\n2 rows\n", 5],
    ["option,context_ids\nOne,a\nTwo,b\n(2 rows affected)\n", 4],
  ])("a row that counts the options is no option: %j", async (content, line) => {
    const { rows, notes } = await read("a.csv", content);
    expect(rows.slice(0, 2)).toEqual([
      ["One", "a"],
      ["Two", "b"],
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/2/);
    expect(notes).toContain(`line ${line} skipped as a row of totals`);
  });

  test.each([
    ["12,,78\n", 12],
    ["11,,78\n", 13],
    ["12,,77\n", 13],
    ["12,x,78\n", 13],
  ])("a number of the options below them, beside a sum, is no option: %j", async (last, count) => {
    const rows = Array.from({ length: 12 }, (_, at) => `Option ${at + 1},a${at + 1},${at + 1}\n`);
    expect((await read("a.csv", `Option,Context IDs,Clicks\n${rows.join("")}${last}`)).rows).toHaveLength(count);
  });

  test("a row of a workbook whose name is a formula that counts is no option", async () => {
    const total = row("<c><f>SUBTOTAL(103,A2:A3)</f><v>11</v></c>", "", "<c><f>SUBTOTAL(109,C2:C3)</f><v>9</v></c>");
    const own = row("<c><v>11</v></c>", "c", "<c><f>SUM(D4:F4)</f><v>9</v></c>");
    const table = [row("Option", "Context IDs", "Clicks"), row("One", "a", "4"), row("Two", "b", "6")];
    const { rows, notes } = await read("a.xlsx", workbook(rowsOf(...table, own, total)));
    expect(rows).toEqual([
      ["One", "a"],
      ["Two", "b"],
      ["11", "c"],
    ]);
    expect(notes).toContain("line 5 skipped as a row of totals");
  });

  test("an option named after a number that is no count is read", async () => {
    expect((await read("a.csv", "Option,Context IDs\nOne,a\nTwo,b\n5 items,\n")).rows).toHaveLength(3);
  });

  test("a heading that is repeated is refused with what to do for Context IDs and for tables side by side", async () => {
    const ids = read("a.csv", "Option,Context ID,Context ID\nOne,a,b\n");
    await expect(ids).rejects.toMatchObject({
      remedy: expect.stringContaining("under the heading Context IDs, separated by |"),
    });
    const tables = read("a.csv", "Option,Context ID,,Option,Context ID\nOne,a,,Two,b\n");
    await expect(tables).rejects.toMatchObject({ remedy: expect.stringContaining("save each as a file of its own") });
  });

  test("a column behind an empty one is read only if the caller says that it belongs to the table", async () => {
    const sheet = "Option,Context IDs,,Group,Members\nOne,a,,Alpha,5\nTwo,b,,,\n";
    const refused = read("a.csv", sheet);
    await expect(refused).rejects.toThrow('"Group" on line 1 of the file is to the right of an empty column');
    await expect(refused).rejects.toMatchObject({ remedy: expect.stringContaining('columns {"parentName":"Group"}') });
    expect((await read("a.csv", sheet, { columns: { parentName: "Group" } })).groups).toEqual(["Alpha", undefined]);
    expect((await read("a.csv", sheet, { columns: { parentName: "" } })).groups).toEqual([undefined, undefined]);
    const merged = await read("a.csv", "Option,,Context IDs,,Group,\nOne,,a,,Alpha,\n");
    expect(merged.groups).toEqual(["Alpha"]);
  });

  test("a sentence below an empty row at the end is a note, and one between options is an option", async () => {
    const { rows, notes } = await read(
      "a.csv",
      "Option,Context IDs\nOne,a\nTwo,b\n\nPrices in EUR,\nAsk Kim (sales) first,\n",
    );
    expect(rows).toHaveLength(2);
    expect(notes).toContain("lines 5 and 6 skipped as rows of hints or notes");
    const between = await read("a.csv", "Option,Context IDs\nOne,a\nTwo,b\n\nBig red shoes,\nThree,c\n");
    expect(between.rows).toEqual([["One", "a"], ["Two", "b"], ["Big red shoes"], ["Three", "c"]]);
    const short = await read("a.csv", "Option,Context IDs\nOne,a\nTwo,b\n\nBig shoes,\nHats,\n");
    expect(short.rows).toHaveLength(4);
    expect(short.notes).toContain(
      "line 5 read as an option, with only a name below an empty row or totals: if it is a note",
    );
    const full = await read("a.csv", "Option,Context IDs\nOne,a\nTwo,b\n\nBig shoes,c\n\nHats,d\n");
    expect(full.notes).not.toContain("read as an option");
    expect((await read("a.csv", "Option,Context IDs\nOne,a\nTwo,\n\nBig red shoes,\n")).rows).toHaveLength(3);
  });

  test("a note in a workbook is apart if its empty row is absent, or if a row of totals is above it", async () => {
    const table = [row("Option", "Context IDs", "Clicks"), row("One", "a", "1"), row("Two", "b", "2")];
    const apart = row("Prices in EUR").replace("<row>", '<row r="5">');
    expect((await read("a.xlsx", workbook(rowsOf(...table, apart)))).rows).toHaveLength(2);
    const below = await read("a.xlsx", workbook(rowsOf(...table, row("Total", "", "3"), row("Prices in EUR"))));
    expect(below.notes).toContain("line 5 skipped as a row of hints or notes");
    const title = await read(
      "a.csv",
      "Option,Context IDs\nOne,a\nTwo,b\n\nThe other shoes,\nOption,Context IDs\nThree,c\n",
    );
    expect(title.rows).toHaveLength(3);
    expect(title.notes).toContain("1 row skipped, as the title of another table");
  });

  test("line breaks between numbers are separators, which no note doubts", async () => {
    const { rows, notes } = await read("a.csv", 'Option,Context IDs\nOne,"1001\n1002"\n');
    expect(rows).toEqual([["One", "1001", "1002"]]);
    expect(notes).not.toContain("read as part of the ID");
  });

  test("a column of checkboxes under Expose Sub-options is no setting of regular options", async () => {
    const sheet = "Option,Is Group,Expose Sub-options,Context IDs\nOne,FALSE,FALSE,a\nTwo,,0,b\nThree,TRUE,FALSE,c\n";
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    await writeFile(join(folder, "a.csv"), sheet);
    const { file: unread, bytes } = await openFile("a.csv", {}, { allowedDirs: [folder], maxLineBytes: 1_048_576 });
    const items = await itemsIn(bytes, await withDetectedForm(bytes, unread, optionRows), optionRows);
    expect(items.map((one) => "item" in one && one.item.exposeChildren)).toEqual([undefined, undefined, false]);
  });

  test("a Context ID in curly quotation marks is a problem of its row", async () => {
    const { rows } = await read(
      "a.csv",
      "Option,Context IDs\nOne,“1001”|“1002”\nTwo,‘1003’\nFour,１００４\nThree,a “b” c\n",
    );
    expect(rows).toEqual(["quoted", "quoted", "wide", ["Three", "a “b” c"]]);
  });

  test.each([
    ["Opção;Grupo;Palavra-chave", "Portuguese"],
    ["Opzione;Gruppo;ID di contesto", "Italian"],
    ["Seçenek;Grup;Anahtar kelime", "Turkish"],
    ["オプション名;グループ;キーワード", "Japanese"],
  ])("%s are headings in %s", async (header) => {
    const { rows, groups } = await read("a.csv", `${header}\nOne;Alpha;a\n`);
    expect([rows, groups]).toEqual([[["One", "a"]], ["Alpha"]]);
  });

  test("a sheet with a column for each group is refused with how to write it", async () => {
    const wide = read("a.csv", "Shoes,Hats\nOne,Two\n");
    await expect(wide).rejects.toMatchObject({ remedy: expect.stringContaining("If each column is a group") });
    const single = read("a.csv", "Opsiyon,Group\nOne,Two\n");
    await expect(single).rejects.toMatchObject({ remedy: expect.stringMatching(/columns \{"name":"Opsiyon"\}/) });
  });

  test.each([
    ["이동", "edit"],
    ["Verschieben", "edit"],
    ["신규", "add"],
    ["Excluir", "remove"],
    ["削除", "remove"],
  ] as const)("the action %s is understood", (word, action) => {
    expect(actionIn(word)).toBe(action);
  });

  test("hidden rows are read, which is said, and cells beside the table are not", async () => {
    const hidden = row("Two", "b").replace("<row>", '<row hidden="1">');
    const content = rowsOf(row("Option", "Context ID"), row("One", "a", "", "ask Kim"), hidden);
    const { rows, notes } = await read("a.xlsx", workbook(content));
    expect(rows).toEqual([
      ["One", "a"],
      ["Two", "b"],
    ]);
    expect(notes).toContain("1 hidden row read like the others");
    expect(notes).toContain("1 cell ignored, in columns without a heading");
  });

  test("merged ranges may have other attributes", async () => {
    const content = `${rowsOf(row("Group", "Option"), row("Top", "One"), row("", "Two"))}<mergeCells><mergeCell xr:uid="{1}" ref="A2:A3"/></mergeCells>`;
    expect((await read("a.xlsx", workbook(content))).groups).toEqual(["Top", "Top"]);
  });
});

describe("files of events", () => {
  async function dryRun(content: string) {
    const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
    const { context } = await eventTools({ allowedDirs: [folder] });
    await writeFile(join(folder, "events.csv"), content);
    return answerOf(trackEvents, { file: "events.csv", dryRun: true }, context);
  }

  test("items have columns of their own", async () => {
    const { text: said } = await dryRun(
      "uid,eventName,tx_id,items.0.item_id,items.0.price,items[1].item_id\nu1,purchase,T-1,x,1.5,y\nu2,purchase,T-1,,,z\n",
    );
    expect(said).toContain('items "[{\\"item_id\\":\\"x\\",\\"price\\":1.5},{\\"item_id\\":\\"y\\"}]"');
    expect(said).toContain('items "[{\\"item_id\\":\\"z\\"}]"');
    expect(said).toContain("1 row with the tx_id of an earlier row: it counts as a purchase of its own");
    await expect(dryRun("uid,eventName,items,items.0.item_id\nu1,purchase,[],x\n")).rejects.toThrow(
      'both a column "items"',
    );
    await expect(dryRun("uid,eventName,items.0.colour\nu1,purchase,x\n")).rejects.toThrow("unknown column");
  });

  test("a cell of items that is no JSON is not sent", async () => {
    const { text: said } = await dryRun(
      'uid,eventName,tx_id,items\nu1,purchase,T-1,[{\'item_id\': \'A\'}]\nu2,purchase,T-2,"[{""item_id"":""A""}]"\n',
    );
    expect(said).toContain("line 2: the cell of items \"[{'item_id': 'A'}]\" is not a JSON array");
    expect(said).toContain("Would send 1 of 2 events; 1 would fail");
  });

  test("numbers of German sheets are numbers where they leave no doubt", async () => {
    const row = "u1;add_to_cart;x;PRICE;2\n";
    for (const [price, read] of [
      ["1,5", "1.5"],
      ["1.250,00", "1250"],
      ["1,250.00", "1250"],
      ["$1,299.00", "1299"],
      ["1 299,50\u202f€", "1299.5"],
      ["1’299’000.5", "1299000.5"],
      ["1,250원", "1250"],
      ["１２５", "125"],
      ["0.250", "0.25"],
    ] as const) {
      const { text: said } = await dryRun(`uid;eventName;item_id;price;quantity\n${row.replace("PRICE", price)}`);
      expect(said).toContain(`price ${read}, quantity 2`);
    }
  });

  test.each([
    ["undefined", "T-1", 'the uid "undefined" is a text that programs write for an empty cell'],
    ["u1", "null", 'the tx_id "null" is a text that programs write for an empty cell'],
    ["u1", "1.23457E+14", 'the tx_id "1.23457E+14" was turned into scientific notation'],
    ["12345.0", "T-1", 'the uid "12345.0" was turned into a decimal number'],
    ["u1", "#N/A", 'the tx_id "#N/A" is a formula error'],
  ])("a purchase of %s with the tx_id %s is not sent", async (uid, tx, words) => {
    const { structured, text: said } = await dryRun(`uid,eventName,tx_id,currency\n${uid},purchase,${tx},TRUE\n`);
    expect(structured).toMatchObject({ counts: { failed: 1 } });
    expect(said).toContain(words);
    expect(said).not.toContain("expected recorded");
  });
});

describe("hostile workbooks", () => {
  const header = row("Option", "Context IDs");
  const number = (at: number) => row(`Option ${at}`, '<c s="0"><v>3.14159265358</v></c>');

  test.each([
    ...[`0.${"0".repeat(60)}`, `0.${"0".repeat(100_000)}`, "#,".repeat(100_000), `# ?/${"?".repeat(15)}`],
    ...["#".repeat(65), "#".repeat(255), `0;${"#".repeat(65)}`],
  ])("a number whose format would take minutes is read as it is: %.20s", async (code) => {
    const { rows } = await read("a.xlsx", workbook(rowsOf(header, number(1)), { formats: [code] }));
    expect(rows).toEqual([["Option 1", "3.14159265358"]]);
  });

  test("a long number format with short sections is applied", async () => {
    const code = `0.00_-;-0.00_-;${"_x".repeat(20)}0;${"_y".repeat(20)}@`;
    const { rows } = await read("a.xlsx", workbook(rowsOf(header, number(1)), { formats: [code] }));
    expect(code.length).toBeGreaterThan(64);
    expect(rows).toEqual([["Option 1", expect.stringContaining("3.14")]]);
    expect(rows).not.toEqual([["Option 1", "3.14159265358"]]);
  });

  test.each([
    ["nested tags", "<a>".repeat(101), "more than 100 nested tags"],
    ["a long text", rowsOf(header, row("One", "x".repeat(2_000_000))), "text or tag in it has more than 1 MB"],
    ["a long tag", `<sheetData a="${"x".repeat(2_000_000)}">`, "text or tag in it has more than 1 MB"],
    ["many rows", rowsOf(header, '<row r="1048577"/>'), "more than 1,048,576 rows"],
    [
      "one text in many cells",
      `${rowsOf(header, row("One", "x".repeat(500_000)), "<row/>".repeat(600))}<mergeCells><mergeCell ref="B2:B999"/></mergeCells>`,
      "more than 256 MB of text",
    ],
  ])("%s: refused", async (_, content, words) => {
    await expect(read("a.xlsx", workbook(content))).rejects.toThrow(words);
  });

  test("an archive whose parts are unpacked again and again is refused", async () => {
    const { part } = await openArchive(Buffer.from(zipSync({ sheet: new Uint8Array(1_000_000) })), 2 * 1_048_576);
    const unpackAgain = async () => {
      for (let time = 0; time < 3; time += 1) for await (const _ of part("sheet", 1_048_576));
    };
    await expect(unpackAgain()).rejects.toThrow("the workbook has more than 2 MB");
  });
});
