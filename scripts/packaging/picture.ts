import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { fileAt } from "./generated.ts";

/** Where the picture of a session is, from the root of the repository. */
export const PICTURE = "docs/session.svg";

const COLUMNS = 112;
const LINE_HEIGHT = 19;
const MARGIN = 24;
const WIDTH = 980;

/** Runs the demo; gives what it printed. Throws where it ends with a complaint. */
export async function demoOutput(): Promise<string> {
  const child = spawn(process.execPath, ["--import", "tsx", fileURLToPath(fileAt("scripts/demo.ts"))], {
    cwd: fileURLToPath(fileAt(".")),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`the demo ended with ${code}:\n${output}`);
  return output;
}

/** What a demo printed as a picture of a terminal. What differs from run to run is left out: IDs and times. */
export function pictureOf(output: string): string {
  const lines = output
    .replaceAll(/\b01[0-9A-HJKMNP-TV-Z]{24}\b/g, "01\u2026")
    .replaceAll(/, \d+ ms waited/g, "")
    .replaceAll(/^[\d.]+ seconds\n/gm, "")
    .trimEnd()
    .split("\n")
    .flatMap(wrapped);
  const height = lines.length * LINE_HEIGHT + 2 * MARGIN;
  const texts = lines.map((line, at) => {
    const y = MARGIN + (at + 0.75) * LINE_HEIGHT;
    return `<text x="${MARGIN}" y="${y}" fill="${colourOf(line)}" xml:space="preserve">${escaped(line)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    "<title>A session of the demo: what an agent calls, and what comes back</title>",
    `<rect width="${WIDTH}" height="${height}" rx="10" fill="#10151c"/>`,
    '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13.5">',
    ...texts,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/** A line in pieces that fit; what goes on stands as far in as the line began, and two more. */
function wrapped(line: string): readonly string[] {
  if (line.length <= COLUMNS) return [line];
  const begins = line.length - line.trimStart().length;
  const space = line.lastIndexOf(" ", COLUMNS);
  // A word that fits no line is cut.
  const [end, next] = space > begins ? [space, space + 1] : [COLUMNS, COLUMNS];
  const indent = " ".repeat(line.startsWith("    ") ? begins : begins + 2);
  return [line.slice(0, end), ...wrapped(indent + line.slice(next))];
}

function colourOf(line: string): string {
  if (line.startsWith("\u25b8")) return "#7cc4ff";
  return line.startsWith(" ") ? "#c9d4e0" : "#8fd694";
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
