// Runs benchmarks one after another and prints one table of their results: `npm run bench`, or with names `npm run
// bench -- startup http`. Exits with 1 if a figure misses its target.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

/** One line of the table. */
interface Figure {
  readonly what: string;
  readonly measured: string;
  readonly target: string;
  readonly met: boolean;
}

/** The benchmarks, and how to parse figures from their output. */
const BENCHMARKS: Readonly<Record<string, (output: string) => readonly Figure[]>> = {
  startup: statedFigures,
  call: statedFigures,
  http: statedFigures,
  load: statedFigures,
  reading: statedFigures,
  plan: statedFigures,
  undo: statedFigures,
  tokens: statedFigures,
  packing: (output) => [worstPacking(output), ...statedFigures(output)],
  sandbox: statedFigures,
  page: statedFigures,
  "kept-runs": statedFigures,
  store: statedFigures,
  events: (output) => [
    ...found(output, "validating 100,000 events, compared with parsing them", /: ([\d.]+) times/, "at most", 3),
    ...found(
      output,
      "track_events of 10,000 events, compared with a bare loop",
      /runs at ([\d.]+) of/,
      "at least",
      0.8,
    ),
  ],
  import: (output) =>
    statedFigures(output).map((figure) => ({ ...figure, what: `import of 100,000 options: ${figure.what}` })),
};

/**
 * Parses figures in the form of most benchmarks: `what: 1.23 (at most 2)`, with an optional unit; a line may contain
 * several.
 */
function statedFigures(output: string): readonly Figure[] {
  return output.split("\n").flatMap((line) => {
    const [, what = "", said = ""] = /^(.+?): (.*\(at (?:most|least) .*)$/.exec(line) ?? [];
    const stated = said.matchAll(/([\d.]+)([^(\d]*) \((at most|at least) ([\d.]+)\)/g);
    return [...stated].map(([, number = "", unit = "", bound = "", target = ""]) =>
      figure(what, number + unit, bound, Number(number), Number(target)),
    );
  });
}

function found(output: string, what: string, pattern: RegExp, bound: string, target: number): readonly Figure[] {
  const [, number] = pattern.exec(output) ?? [];
  return number === undefined ? [] : [figure(what, number, bound, Number(number), target)];
}

function figure(what: string, measured: string, bound: string, value: number, target: number): Figure {
  return { what, measured, target: `${bound} ${target}`, met: bound === "at most" ? value <= target : value >= target };
}

/**
 * Returns the row that exceeds its lower bound the most. Reads the rows `family | requests | lower bound | ms` with at
 * least 50 requests.
 */
function worstPacking(output: string): Figure {
  const rows = [...output.matchAll(/\| (\d+) \| (\d+) \| \d+/g)].map(
    (row) => [Number(row[1]), Number(row[2])] as const,
  );
  const ratios = rows.filter(([, bound]) => bound >= 50).map(([requests, bound]) => requests / bound);
  const worst = Math.max(...ratios);
  return figure(
    "requests, compared with the fewest that any packing could need",
    worst.toFixed(3),
    "at most",
    worst,
    1.3,
  );
}

/**
 * Benchmarks that run our code in their own process. They are built like the command. With tsx, a tenth of the measured
 * time would be lost, because tsx sets the name of every function each time it is created.
 */
const IN_PROCESS = new Set(["events", "http", "sandbox"]);

/** Returns a benchmark as a program for Node, and a function that removes the files made for it. */
async function programOf(name: string) {
  const source = join(import.meta.dirname, `${name}.ts`);
  if (!IN_PROCESS.has(name)) return { args: ["--import", "tsx", source], remove: async () => {} };
  // The program must be in this folder to find the built command.
  const outfile = join(import.meta.dirname, `${name}.built.mjs`);
  await build({ entryPoints: [source], outfile, bundle: true, packages: "external", platform: "node", format: "esm" });
  return { args: [outfile], remove: () => rm(outfile) };
}

async function outputOf(name: string): Promise<string> {
  const { args, remove } = await programOf(name);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    process.stderr.write(text);
  });
  const [code] = await once(child, "close");
  await remove();
  if (code !== 0) failed.push(name);
  return output;
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  throw new Error(`there is no ${unknown.join(", ")}; the benchmarks are ${Object.keys(BENCHMARKS).join(", ")}`);
}
const failed: string[] = [];
const figures: Figure[] = [];
for (const [name, read] of Object.entries(BENCHMARKS)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  process.stderr.write(`\n${name}\n`);
  const measured = read(await outputOf(name));
  if (measured.length === 0) failed.push(name);
  figures.push(...measured);
}
console.log("\n| measure | measured | target | |\n|---|---:|---:|---|");
for (const { what, measured, target, met } of figures) {
  console.log(`| ${what} | ${measured} | ${target} | ${met ? "ok" : "MISSED"} |`);
}
if (failed.length > 0) console.log(`\nNot finished as they should: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || figures.some(({ met }) => !met) ? 1 : 0;
