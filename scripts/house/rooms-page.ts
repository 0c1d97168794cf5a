import { readFileSync } from "node:fs";
import { tableOf } from "../packaging/markdown.ts";
import { ROOMS } from "./rooms.ts";

const BEGIN = "<!-- rooms: made by npm run docs -->";
const END = "<!-- end of rooms -->";

/**
 * The page about the layout, with its picture and its table of rooms made anew. Throws a RangeError where the page has no place for it.
 */
export function architecturePage(): string {
  const page = readFileSync(new URL("../../docs/architecture.md", import.meta.url), "utf8");
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new RangeError("docs/architecture.md has no place for the rooms");
  return [before, BEGIN, "\n\n", picture(), "\n\n", table(), "\n\n", END, after].join("");
}

/** The house from the top down: one line for each subject, with the rooms inside of it. */
function picture(): string {
  const subjects = [...new Set(ROOMS.map(({ path }) => path.split("/")[0] ?? ""))];
  const width = Math.max(...subjects.map((subject) => subject.length));
  const lines = subjects.map((subject) => {
    const inside = ROOMS.flatMap(({ path }) => (path.startsWith(`${subject}/`) ? path.slice(subject.length + 1) : []));
    return `${subject.padEnd(width)}  ${inside.join("  ")}`.trimEnd();
  });
  return ["```text", ...lines, "```"].join("\n");
}

function table(): string {
  const rows = ROOMS.map(({ path, holds, uses }) => {
    const others = [...new Set(uses)].map((other) => `\`${other}\``);
    return [`\`${path}/\``, holds, others.length === 0 ? "nothing" : others.join(" ")];
  });
  return tableOf(["room", "holds", "may import from"], rows);
}
