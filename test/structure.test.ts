import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

// Rules for the source that the linter cannot check: which folders may print, which folders they may import, and which
// words the strict types forbid.

const SOURCE = join(import.meta.dirname, "..", "src");
const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => ({ file: file.replaceAll("\\", "/"), text: readFileSync(join(SOURCE, file), "utf8") }));

/** Returns the lines in which a pattern is found, as `file: line`. */
function found(test: RegExp, isConcerned: (file: string) => boolean = () => true): readonly string[] {
  return files
    .filter(({ file }) => isConcerned(file))
    .flatMap(({ file, text }) =>
      text.split("\n").flatMap((line) => (test.test(line) ? [`${file}: ${line.trim()}`] : [])),
    );
}

test("there is source to look at", () => {
  expect(files.length).toBeGreaterThan(100);
});

test("only the commands and the serving over stdio touch standard output", () => {
  const mayPrint = (file: string): boolean => /^(?:commands|runtime|setup)\/|^(?:main|mcp\/stdio)\b/.test(file);
  expect(found(/process\.stdout/, (file) => !mayPrint(file))).toEqual([]);
});

test("only the settings and the commands read the environment", () => {
  // Generated programs contain code that reads the environment.
  const mayRead = (file: string): boolean => /^(?:commands|runtime|settings|setup)\/|^events\/suites\/emit-/.test(file);
  expect(found(/process\.env/, (file) => !mayRead(file))).toEqual([]);
});

test("only the opening of a browser starts other programs, without the keys", () => {
  expect(found(/^import .*"node:(?:child_process|cluster)"/)).toEqual([
    'web/open-browser.ts: import { spawn } from "node:child_process";',
  ]);
});

test("no type is asserted, and no check is switched off", () => {
  const asserted = /\bas (?:any|unknown|[A-Z]\w*(?:<|\[\]|[;,)\s]*$))/;
  const isCode = (line: string): boolean => !/^\S+: (?:import|export|\/?\*|\/\/)|"[^"]*\bas \w+[^"]*"/.test(line);
  expect(found(asserted).filter(isCode)).toEqual([]);
  expect(found(/@ts-(?:ignore|expect-error|nocheck)|biome-ignore|eslint-disable/)).toEqual([]);
});

/** The folders of `src/`, the highest first: an import may stay in its folder or go down. */
const LAYERS = [
  ...["web/app", "commands", "setup", "http", "runtime", "mcp", "web", "observe", "sandbox", "tools"],
  ...["answers", "events", "saves", "changes", "plans", "model", "reads", "api", "files", "runs", "settings"],
  ...["platform", "spec"],
];

/** The sandbox is independent of the server. Of the server's code, it may use only the facts of the API documents. */
const SANDBOX_MAY_USE = ["platform", "sandbox", "spec"];

function layerOf(file: string): string {
  return file.startsWith("web/app/") ? "web/app" : (file.split("/")[0] ?? file);
}

const imports = files
  .filter(({ file }) => file.includes("/"))
  .flatMap(({ file, text }) =>
    [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.tsx?)"/g)].map(([, specifier = ""]) => ({
      file,
      from: layerOf(file),
      to: layerOf(join(file, "..", specifier).replaceAll("\\", "/")),
    })),
  );

test("each folder of the source is a layer", () => {
  const folders = files.filter(({ file }) => file.includes("/")).map(({ file }) => layerOf(file));
  expect([...new Set(folders)].sort()).toEqual([...LAYERS].sort());
});

test("imports stay in their folder or go down", () => {
  expect(imports.length).toBeGreaterThan(1_000);
  expect(imports.filter(({ from, to }) => LAYERS.indexOf(to) < LAYERS.indexOf(from))).toEqual([]);
});

test("the sandbox shares nothing with the server but the documents' facts", () => {
  const shared = imports.filter(({ from, to }) => from === "sandbox" && !SANDBOX_MAY_USE.includes(to));
  expect(shared).toEqual([]);
});

/**
 * The most files below 40 lines that are not tools, and the most function names that more than two files have. Both may
 * only shrink.
 */
const MAX_FRAGMENTS = 22;
const MAX_DOUBLED_NAMES = 92;

test("folders have folders, which have none", () => {
  expect(files.filter(({ file }) => file.split("/").length > 3)).toEqual([]);
});

test("a file holds a whole idea: few are short, and none is new among them", () => {
  const isTool = (file: string): boolean => /^tools\/[a-z-]+\.ts$/.test(file);
  const fragments = files.filter(({ file, text }) => !isTool(file) && text.split("\n").length <= 40);
  expect(fragments.length, fragments.map(({ file }) => file).join(" ")).toBeLessThanOrEqual(MAX_FRAGMENTS);
});

test("a function's name stands for one thing", () => {
  const where = new Map<string, Set<string>>();
  for (const { file, text } of files) {
    for (const [, name = ""] of text.matchAll(/^(?:export )?(?:async )?function\*? (\w+)/gm)) {
      where.set(name, (where.get(name) ?? new Set()).add(file));
    }
  }
  const doubled = [...where].filter(([, its]) => its.size > 2).map(([name]) => name);
  expect(doubled.length, doubled.join(" ")).toBeLessThanOrEqual(MAX_DOUBLED_NAMES);
});
