import { describe, expect, test } from "vitest";
import { sheetNotes } from "../../src/answers/sheets.ts";
import { optionRows } from "../../src/changes/rows/input-rows.ts";
import { openBytes } from "../../src/files/open-file.ts";
import { itemsIn } from "../../src/files/rows.ts";

/** Reads a sheet with these cells in the column Is Group. A row is a group (`true`), an option, unset, or a problem. */
async function isGroup(cells: readonly string[], heading = "Is Group") {
  const rows = cells.map((cell, at) => `Option ${at},${cell},c-${at}\n`);
  return readSheet(`Option,${heading},Context IDs\n${rows.join("")}`);
}

async function readSheet(content: string) {
  const source = async function* () {
    yield Buffer.from(content);
  };
  const named = { path: "a.csv", format: "csv", maxLineBytes: undefined } as const;
  const { file, bytes } = await openBytes(source, named, {}, optionRows);
  const items = await itemsIn(bytes, file, optionRows);
  const kinds = items.map((one) => {
    if ("reason" in one) return one.reason.detail?.problem;
    const { type } = one.item;
    return type === undefined ? undefined : type === "collection";
  });
  return { kinds, notes: sheetNotes(file).join("\n") };
}

describe("a column of yes and no", () => {
  test.each([
    "O/X",
    "o/x",
    "○/×",
    "Ｏ/Ｘ",
    "ㅇ/X",
    "✓/✗",
    "✔/X",
    "V/X",
    "●/X",
    "✅/❌",
    "☑/☐",
    "☒/☐",
    "X/no",
    "是/否",
    "예/아니오",
    "네/아니요",
    "Ja/Nein",
    "J/N",
    "Oui/Non",
    "O/N",
    "Sí/No",
    "S/N",
    "はい/いいえ",
    "1/0",
    "T/F",
  ])("%s are yes and no", async (pair) => {
    const [yes = "", no = ""] = pair.split("/");
    expect((await isGroup([yes, no, "", yes])).kinds).toEqual([true, false, undefined, true]);
  });

  test.each(["X", "x", "×", "✗", "☒", "O", "✓", "V", "●", "•", "是"])("%s among empty cells is a yes", async (yes) => {
    expect((await isGroup([yes, "", ` ${yes} `])).kinds).toEqual([true, undefined, true]);
  });

  test("what an X is read as is said, and nothing is said without one", async () => {
    expect((await isGroup(["X", ""])).notes).toContain("X in Is Group read as yes");
    expect((await isGroup(["X", "O"], "그룹 여부")).notes).toContain("X in Is Group read as no");
    expect((await isGroup(["O", ""])).notes).not.toContain("Is Group read");
  });

  test.each([[["X", "X"]], [["X", "yes"]], [["X", "yes", ""]], [["X", "O", "no"]]])(
    "an X that may mean both is a problem of its row: %j",
    async (cells) => {
      expect((await isGroup(cells)).kinds[0]).toBe("type");
    },
  );

  test("a circle is no yes beside a filled one, because it may mean an empty one", async () => {
    expect((await isGroup(["●", "○"])).kinds).toEqual([true, "type"]);
  });

  test("rows that continue an option are no empty cells beside an X", async () => {
    const sheet = "Option,Is Group,Context ID\nOne,X,a\n,,b\nTwo,X,c\nTwo,,d\n";
    expect((await readSheet(sheet)).kinds).toContain("type");
  });

  test("a heading may be a question", async () => {
    expect((await isGroup(["yes", "no"], "Is Group?")).kinds).toEqual([true, false]);
    expect((await isGroup(["sí", "no"], "¿Es grupo?")).kinds).toEqual([true, false]);
  });
});
