import { readFileSync } from "node:fs";
import { TOOLS } from "../../src/tools/registry.ts";

const HEADING = "\n## Tools\n";

/**
 * The README, with a row in its table for every tool that it does not name yet. Throws a RangeError where it has no
 * table.
 */
export function readmePage(): string {
  const page = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const from = page.indexOf(HEADING);
  const table = /(?:^\|.*\n)+/m.exec(page.slice(from))?.[0];
  if (from < 0 || table === undefined) throw new RangeError("README.md has no table of tools");
  const rows = TOOLS.filter(({ name }) => !table.includes(`\`${name}\``)).map(
    ({ name, title }) => `| \`${name}\` | ${title.charAt(0).toLowerCase()}${title.slice(1)} |\n`,
  );
  return page.replace(table, () => table + rows.join(""));
}
