// Reads a workbook like an import. Prints the number of rows or the reason for a refusal, and the most memory that was
// used.
import { optionRows } from "../../src/changes/rows/input-rows.ts";
import { openFile } from "../../src/files/open-file.ts";
import { rowsOf } from "../../src/files/rows.ts";

const [folder = "", name = ""] = process.argv.slice(2);
const report = (found: object) => {
  process.stdout.write(JSON.stringify({ ...found, megabytes: Math.round(process.resourceUsage().maxRSS / 1024) }));
};
try {
  const { file, bytes } = await openFile(name, {}, { allowedDirs: [folder], maxLineBytes: 16_777_216 });
  let rows = 0;
  for await (const batch of rowsOf(bytes, file, optionRows)) rows += batch.length;
  report({ rows });
} catch (thrown) {
  report({ refused: thrown instanceof Error ? thrown.message : String(thrown) });
}
