import { changesOf } from "../../plans/diff/plan.ts";
import { shown } from "../fence.ts";
import type { ShownPlan } from "./plan-text.ts";
import { changeLine, count, KIND_WORDS, linesOf, planCounts } from "./words.ts";

/** So many changes of a plan stand in a comment of a pull request, which has its own limit. */
const MOST_ROWS = 500;

/** A plan as Markdown for a pull request: what changes as a table, what stops it above. */
export function planMarkdown({ plan, file, digest, groupName }: ShownPlan): string {
  const changes = changesOf(plan, groupName);
  const { targeting } = plan;
  const lines = linesOf(plan, file);
  const rows = changes
    .slice(0, MOST_ROWS)
    .map((change) => `| ${KIND_WORDS[change.kind]} | ${cell(changeLine(change))} |`);
  const more = changes.length - rows.length;
  return `${[
    `### Plan of ${cell(shown(targeting.name))}: ${planCounts(changes, plan)}`,
    ...list("Problems", lines.problems),
    ...list("Conflicts", lines.conflicts),
    ...list("Limits", lines.limits),
    ...(rows.length === 0 ? [] : ["", "| change | of |", "|---|---|", ...rows]),
    ...(more > 0 ? ["", `And ${count(more)} more.`] : []),
    ...list("Changed by others since the base, and kept", lines.drift),
    ...list("Only there", lines.onlyThere),
    "",
    `Plan \`${digest}\``,
  ].join("\n")}\n`;
}

function list(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return [];
  const shownLines = lines.slice(0, MOST_ROWS).map((line) => `- ${cell(line)}`);
  const more = lines.length - shownLines.length;
  return [
    "",
    `**${title}** (${count(lines.length)})`,
    "",
    ...shownLines,
    ...(more > 0 ? [`- and ${count(more)} more`] : []),
  ];
}

/** Names come from others: nothing in them is Markdown, HTML, a mention or a new cell. */
function cell(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>~@&-]/g, (sign) =>
    sign === "@" ? "&#64;" : sign === "&" ? "&amp;" : sign === "<" ? "&lt;" : `\\${sign}`,
  );
}
