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

/** The rooms that one may import from; a subject that is open with all its rooms is named once, as `subject/**`. */
function grouped(path: string, uses: ReadonlySet<string>): readonly string[] {
  const subjectOf = (room: string): string => room.split("/")[0] ?? "";
  const isWhole = (subject: string): boolean => {
    const rooms = ROOMS.filter((room) => subjectOf(room.path) === subject && room.path !== path);
    return rooms.length > 1 && rooms.every((room) => uses.has(room.path));
  };
  const named = [...uses].filter((room) => room !== path);
  return [...new Set(named.map((room) => (isWhole(subjectOf(room)) ? `${subjectOf(room)}/**` : room)))];
}

function table(): string {
  const rows = ROOMS.map(({ path, holds, uses }) => {
    const others = grouped(path, new Set(uses)).map((other) => `\`${other}\``);
    return [`\`${path}/\``, holds, others.length === 0 ? "nothing" : others.join(" ")];
  });
  return tableOf(["room", "holds", "may import from"], rows);
}
