import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RULES, type Rule } from "./rules.ts";

const HERE = new URL("./", import.meta.url);

/** The file that contains the table of rules. */
export const FIDELITY_DOC = fileURLToPath(new URL("../../docs/reference/sandbox-rules.md", HERE));

const INTRODUCTION = `# The rules of the sandbox, each with its test

Generated from the list of rules and their tests by \`npx tsx scripts/sandbox-fidelity.ts\`; do not edit.
A rule without a test fails the build. _documented_: the API documents state the rule. _assumed_: they do not state it,
and this is the most likely behaviour. Sections are those of the management API document; "event" means the event API.
`;

/** Returns the file of the test for each rule, by the rule's name. Throws if two tests are for the same rule. */
export function heldRules(): ReadonlyMap<string, string> {
  const held = new Map<string, string>();
  const files = readdirSync(HERE).filter((file) => file.endsWith(".test.ts"));
  for (const file of files.toSorted()) {
    const text = readFileSync(new URL(file, HERE), "utf8");
    for (const [, id = ""] of text.matchAll(/^rule\(\s*"([^"]+)"/gm)) {
      if (held.has(id)) throw new RangeError(`rule "${id}" is held by ${held.get(id)} and by ${file}`);
      held.set(id, file);
    }
  }
  return held;
}

/** Returns the table of rules as Markdown. */
export function fidelityTable(): string {
  const held = heldRules();
  const count = (basis: Rule["basis"]) => RULES.filter((rule) => rule.basis === basis).length;
  const rows = RULES.map(({ id, section, basis, says }) => [
    section,
    says,
    basis,
    `\`${held.get(id) ?? "none"}\`: ${id}`,
  ]);
  return `${INTRODUCTION}
${RULES.length} rules: ${count("documented")} documented, ${count("assumed")} assumed.

${markdownTable(["section", "rule", "basis", "test (in test/sandbox)"], rows)}
`;
}

/** Returns a Markdown table with aligned columns, as the formatter writes it. */
function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
