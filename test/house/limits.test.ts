import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import biome from "../../biome.rooms.json" with { type: "json" };
import { EXCEPTIONS, LIMITS } from "../../scripts/house/limits.ts";
import { ROOMS } from "../../scripts/house/rooms.ts";
import { TOOLS } from "../../src/tools/registry.ts";

// The limits, by hand from docs/architecture.md: scripts/house/limits.ts must say the same.
const MOST = { fileLines: 300, functionLines: 60, folderFiles: 12 };

const SOURCE = join(import.meta.dirname, "..", "..", "src");
const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll("\\", "/"))
  .filter((file) => /\.tsx?$/.test(file));

const lines = new Map(
  files.map((file) => [file, readFileSync(join(SOURCE, file), "utf8").trimEnd().split("\n").length]),
);
/** Whether a file holds one tool of the registry: a toolset is a catalogue, which may grow. */
const isTool = (file: string): boolean =>
  file.startsWith("tools/") && TOOLS.some(({ name }) => file.endsWith(`/${name.replaceAll("_", "-")}.ts`));
const filesIn = new Map(
  ROOMS.map(({ path }) => {
    const own = files.filter((file) => file.slice(0, file.lastIndexOf("/")) === path && !isTool(file));
    return [path, own.length];
  }),
);

/** What exceeds a limit, beyond its ceiling where it has one, as `path: figure, at most ceiling`. */
function above(figures: ReadonlyMap<string, number>, most: number, ceilings: Readonly<Record<string, number>>) {
  return [...figures].flatMap(([path, figure]) => {
    const ceiling = Object.hasOwn(ceilings, path) ? (ceilings[path] ?? most) : most;
    return figure > ceiling ? [`${path}: ${figure}, at most ${ceiling}`] : [];
  });
}

/** The exceptions that are none any more, or whose path does not exist. */
function needless(figures: ReadonlyMap<string, number>, most: number, ceilings: Readonly<Record<string, number>>) {
  return Object.keys(ceilings).filter((path) => (figures.get(path) ?? 0) <= most);
}

test("the limits are those of the document", () => {
  expect(LIMITS).toEqual(MOST);
});

test("no file is longer than the limit: else split it by subject", () => {
  expect(above(lines, MOST.fileLines, EXCEPTIONS.fileLines)).toEqual([]);
});

test("no folder holds more files than the limit: else give a subject a room of its own (scripts/house/rooms.ts)", () => {
  expect(above(filesIn, MOST.folderFiles, EXCEPTIONS.folderFiles)).toEqual([]);
});

test("an exception that fits is taken out of scripts/house/limits.ts", () => {
  expect(needless(lines, MOST.fileLines, EXCEPTIONS.fileLines)).toEqual([]);
  expect(needless(filesIn, MOST.folderFiles, EXCEPTIONS.folderFiles)).toEqual([]);
  expect(Object.keys(EXCEPTIONS.functionLines).filter((file) => !lines.has(file))).toEqual([]);
});

test("the check sees what is too long, and what is no exception any more", () => {
  const figures = new Map(Object.entries({ long: 301, short: 300, known: 310, grown: 311 }));
  expect(above(figures, 300, { known: 310, grown: 310 })).toEqual([
    "long: 301, at most 300",
    "grown: 311, at most 310",
  ]);
  expect(needless(figures, 300, { short: 310, known: 310, gone: 310 })).toEqual(["short", "gone"]);
});

test("the linter holds the lines of files and functions in all of src", () => {
  const everywhere = biome.overrides.find(({ includes }) => includes.includes("src/**"));
  expect(everywhere?.linter.rules).toEqual({
    style: { noExcessiveLinesPerFile: { level: "error", options: { maxLines: 300 } } },
    complexity: { noExcessiveLinesPerFunction: { level: "error", options: { maxLines: 60 } } },
  });
});
