import { strToU8, zipSync } from "fflate";
import { expect, test } from "vitest";
import { listedContextIds } from "../../src/files/detect-sheet.ts";
import { contentOf } from "./content.ts";

// Lists of Context IDs in workbooks.

interface Sheet {
  readonly state: "visible" | "hidden" | "veryHidden";
  readonly rows: readonly (readonly string[])[];
}

function workbook(sheets: readonly Sheet[]): Uint8Array {
  const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
  const cell = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
  const named = sheets.map(({ state }, at) => `<sheet name="${at + 1} of all" state="${state}" r:id="r${at}"/>`);
  const parts = sheets.map((_, at) => `<Relationship Id="r${at}" Type="${office}/worksheet" Target="${at}.xml"/>`);
  const contents = sheets.map(({ rows }, at) => {
    const xml = rows.map((cells) => `<row>${cells.map(cell).join("")}</row>`).join("");
    return [`xl/${at}.xml`, strToU8(`<worksheet><sheetData>${xml}</sheetData></worksheet>`)] as const;
  });
  return zipSync({
    "xl/workbook.xml": strToU8(`<workbook><sheets>${named.join("")}</sheets></workbook>`),
    "xl/_rels/workbook.xml.rels": strToU8(`<Relationships>${parts.join("")}</Relationships>`),
    ...Object.fromEntries(contents),
  });
}

async function idsIn(...sheets: readonly Sheet[]): Promise<readonly string[]> {
  const { ids } = await listedContextIds("ids.xlsx", contentOf(workbook(sheets)), undefined);
  return ids.map(({ id }) => id);
}

test.each(["hidden", "veryHidden"] as const)("a list is read from the first sheet that is not %s", async (state) => {
  const old: Sheet = { state, rows: [["old-1"], ["old-2"]] };
  const list: Sheet = { state: "visible", rows: [["a"], ["b"]] };
  expect(await idsIn(old, list, { state: "visible", rows: [["later"]] })).toEqual(["a", "b"]);
  const columns = (id: string) => [
    ["Name", "Context ID"],
    ["One", id],
  ];
  const oldColumns: Sheet = { state, rows: columns("old") };
  expect(await idsIn(oldColumns, { state: "visible", rows: columns("a") })).toEqual(["a"]);
  expect(await idsIn(old, { state: "visible", rows: columns("a") })).toEqual(["a"]);
  expect(await idsIn(oldColumns, list)).toEqual(["a", "b"]);
  // Another sheet has more known columns, but is not the first.
  const notes: Sheet = {
    state: "visible",
    rows: [
      ["Note", "Context ID"],
      ["x", "a"],
    ],
  };
  expect(await idsIn(oldColumns, notes, { state: "visible", rows: columns("later") })).toEqual(["a"]);
  // A workbook of which all sheets are hidden.
  expect(await idsIn(old, oldColumns)).toEqual(["old-1", "old-2"]);
});
