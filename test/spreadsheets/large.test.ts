import { execFile } from "node:child_process";
import { mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { Zip, ZipDeflate } from "fflate";
import { expect, test } from "vitest";
import * as z from "zod";
import { writtenSheet } from "../../src/files/save-file.ts";
import type { WrittenRow } from "../../src/files/written-rows.ts";

// Makes large workbooks, and checks that they are read or refused without using too much memory.

const report = z.object({ rows: z.number().optional(), refused: z.string().optional(), megabytes: z.number() });

/** Packages in CommonJS need `require`, which the bundle does not have by itself. */
const REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

async function read(folder: string, name: string) {
  const program = join(folder, "reads.mjs");
  await build({
    ...{ entryPoints: [join(import.meta.dirname, "reads.ts")], outfile: program, banner: { js: REQUIRE } },
    ...{ bundle: true, platform: "node", format: "esm", logLevel: "error" },
  });
  const { stdout } = await promisify(execFile)(process.execPath, [program, folder, name]);
  return report.parse(JSON.parse(stdout));
}

const newFolder = async () => realpath(await mkdtemp(join(tmpdir(), "targeting-large-")));

async function save(path: string, rows: AsyncIterable<WrittenRow>): Promise<void> {
  await writeFile(path, writtenSheet({ name: "Options", above: 0, rows }, { format: "xlsx" }));
}

test("100,000 rows of a workbook are read within 300 MB", async () => {
  const folder = await newFolder();
  const rows = async function* () {
    yield { cells: ["Option ID", "Option", "Group", "Context IDs", "Context Action", "Is Group"] };
    for (let at = 0; at < 100_000; at += 1) {
      yield { cells: ["", `Option ${at}`, "[]", `article-${at}|article-${at + 1}`, "Add", "no"] };
    }
  };
  await save(join(folder, "many.xlsx"), rows());
  const { rows: count, megabytes } = await read(folder, "many.xlsx");
  expect(count).toBe(100_000);
  expect(megabytes).toBeLessThan(300);
});

test("a sheet of a gigabyte is refused, whatever its archive says of its size", async () => {
  const folder = await newFolder();
  await writeFile(join(folder, "bomb.xlsx"), gigabyte());
  const { refused, megabytes } = await read(folder, "bomb.xlsx");
  expect(refused).toContain("more than 256 MB when it is unpacked");
  expect(megabytes).toBeLessThan(300);
});

/** Writes a workbook with a single cell, which contains a gigabyte of spaces. */
function* gigabyte(): Generator<Uint8Array> {
  const ready: Uint8Array[] = [];
  const zip = new Zip((thrown, chunk) => {
    if (thrown !== null) throw thrown;
    ready.push(chunk);
  });
  const main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
  const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
  const relations = (type: string, target: string) =>
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="${office}/${type}" Target="${target}"/></Relationships>`;
  const parts = {
    "_rels/.rels": relations("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": `<workbook xmlns="${main}" xmlns:r="${office}"><sheets><sheet name="A" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations("worksheet", "worksheets/sheet1.xml"),
  };
  for (const [name, text] of Object.entries(parts)) {
    const part = new ZipDeflate(name);
    zip.add(part);
    part.push(Buffer.from(text), true);
  }
  const sheet = new ZipDeflate("xl/worksheets/sheet1.xml", { level: 1 });
  zip.add(sheet);
  sheet.push(Buffer.from(`<worksheet xmlns="${main}"><sheetData>`));
  const spaces = Buffer.alloc(1_048_576, " ");
  for (let at = 0; at < 1024; at += 1) {
    sheet.push(spaces);
    yield* ready.splice(0);
  }
  sheet.push(Buffer.from("</sheetData></worksheet>"), true);
  zip.end();
  yield* ready.splice(0);
}
