// Rules for words that a test can check: comments name only files that exist, and call things by their names.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import packageJson from "../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "..");
const FOLDERS = ["src", "scripts", "bench", "test", "docs"];
const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];

const paths = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map(
    (file) => `${folder}/${file.replaceAll("\\", "/")}`,
  ),
);
const sources = paths.filter((path) => /\.(?:ts|mjs)$/.test(path));
const pages = [...PAGES, ...paths.filter((path) => path.startsWith("docs/") && path.endsWith(".md"))];
const textOf = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Returns the comments of a source, each as one line. A `//` in quotes does not count. */
function commentsOf(text: string): readonly string[] {
  const lines = text.match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm) ?? [];
  return lines.map((line) => line.replaceAll(/\s*\n\s*\*\s?/g, " "));
}

const comments = sources.map((path) => ({ path, lines: commentsOf(textOf(path)) }));

/** Returns the files and folders that a text names: from the root, or in backticks from `src/`. */
function namedIn(text: string): readonly string[] {
  const fromRoot = text.match(/(?<![\w./-])(?:src|test|docs|scripts|bench)\/[\w./-]*\w/g) ?? [];
  const fromSource = [...text.matchAll(/`((?:[\w-]+\/)+(?:[\w-]+\.ts)?)`/g)].map(([, path = ""]) => path);
  return [...fromRoot, ...fromSource];
}

/** Files that the build or a test creates, and names that are only examples. */
const IS_NO_FILE = /^(?:dist|release|docs\/en)\b|your-tool|^https?:/;

function isThere(named: string, page: string): boolean {
  const places = [
    join(ROOT, named),
    join(ROOT, "src", named),
    join(ROOT, dirname(page), named),
    join(ROOT, "test", named),
  ];
  return IS_NO_FILE.test(named) || places.some((place) => existsSync(place));
}

test("files and folders that comments name exist", () => {
  const cited = comments.flatMap(({ path, lines }) => lines.flatMap(namedIn).map((named) => ({ path, named })));
  expect(cited.length).toBeGreaterThan(10);
  expect(cited.filter(({ path, named }) => !isThere(named, path))).toEqual([]);
});

test("files and folders that documents name exist", () => {
  const cited = pages.flatMap((path) => {
    const text = textOf(path).replaceAll(/https?:\/\/\S+/g, "");
    return namedIn(text).map((named) => ({ path, named }));
  });
  expect(cited.length).toBeGreaterThan(50);
  expect(cited.filter(({ path, named }) => !isThere(named, path))).toEqual([]);
});

test("npm scripts that comments and documents name exist", () => {
  const { scripts } = packageJson;
  const texts = [...comments.flatMap(({ lines }) => lines), ...pages.map(textOf)];
  const named = texts.flatMap((text) => [...text.matchAll(/npm run ([\w:]*\w)/g)].map(([, name = ""]) => name));
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});

test("the check sees a file, a folder and a path below src that do not exist", () => {
  const text =
    "See src/missing/file.ts, test/missing and `changes/missing.ts`, but not `changes/plan/requests.ts` or src/api.";
  const missing = namedIn(text).filter((named) => !isThere(named, "docs/architecture.md"));
  expect(missing).toEqual(["src/missing/file.ts", "test/missing", "changes/missing.ts"]);
  expect(commentsOf('/** One. */ const a = "// none"; // Two.\n/*\n * Three.\n */')).toEqual([
    "/** One. */",
    "// Two.",
    "/* Three. /",
  ]);
});

test("sections of documents that comments cite exist", () => {
  const cited = comments.flatMap(({ path, lines }) =>
    lines.flatMap((line) =>
      [...line.matchAll(/(docs\/[\w/-]+\.md), "([^"]+)"/g)].map(([, page = "", section = ""]) => ({
        path,
        page,
        section,
      })),
    ),
  );
  expect(cited.length).toBeGreaterThan(0);
  const isHeading = (page: string, section: string) => textOf(page).includes(`# ${section}\n`);
  expect(cited.filter(({ page, section }) => !isHeading(page, section))).toEqual([]);
});

/** Returns the files of src/ in which a pattern is found. */
function filesWith(pattern: RegExp): readonly string[] {
  return sources.filter((path) => path.startsWith("src/") && textOf(path).search(pattern) >= 0);
}

test("the thing is named: no whoever, somebody, what there is", () => {
  const vague = /whoever|\b(?:somebody|someone|anybody|everybody|what there is|lies? there)\b/gi;
  expect(filesWith(vague)).toEqual([]);
  const outside = [...pages, ...sources.filter((path) => /^(?:scripts|bench|test\/support)\//.test(path))];
  expect(outside.filter((path) => textOf(path).search(vague) >= 0)).toEqual([]);
});

test("nothing is cited that is not in this repository, but for the API's documents", () => {
  const elsewhere =
    /\(contract\b|\bcontract, [A-Z`"]|wire[- ]assumptions|\(architecture, step|\.\.\/shared|\bpostgres\.md/g;
  expect(filesWith(elsewhere)).toEqual([]);
  const outside = comments.filter(({ path }) => /^(?:scripts|bench|test\/support)\//.test(path));
  expect(
    outside.filter(({ lines }) => lines.some((line) => line.search(elsewhere) >= 0)).map(({ path }) => path),
  ).toEqual([]);
});

const PRIVATE_ENGLISH =
  /\b(?:mend(?:s|ed)?|told|a yes|a no|way back|to the letter|stands for|passed over|taken up|thrown away|anew|whoever|what is there|1 items)\b/gi;

test("documents avoid private English", () => {
  const skills = readdirSync(join(ROOT, "skills")).map((skill) => `skills/${skill}/SKILL.md`);
  const read = [...pages, ...skills];
  const found = read.flatMap((path) => [...textOf(path).matchAll(PRIVATE_ENGLISH)].map(([word]) => ({ path, word })));
  expect(found).toEqual([]);
});

/** Returns the texts in a source that people or agents may read: in quotes, in templates and between tags. */
function stringsOf(text: string): readonly string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
  const strings = code.match(/"(?:[^"\\\n]|\\.)+"|`(?:[^`\\\n]|\\.)*`|(?<=>)[^<>{}=();]+(?=<\/)/g) ?? [];
  // A single word is a name. Values that a template inserts are code.
  return strings.map((one) => one.replaceAll(/\$\{[^}]*\}/g, "")).filter((one) => one.trim().includes(" "));
}

test("texts of answers, pages and terminal avoid private English", () => {
  const found = sources
    .filter((path) => path.startsWith("src/") && path !== "src/events/suites/emit-scripts.ts")
    .flatMap((path) => stringsOf(textOf(path)).map((one) => ({ path, words: one.match(PRIVATE_ENGLISH) ?? [], one })))
    .filter(({ words }) => words.length > 0);
  expect(found).toEqual([]);
});

test("recorded answers and messages avoid private English", () => {
  const recorded = paths.filter((path) => /^test\/(?:tools\/answers|render)\/.*\.txt$/.test(path));
  expect(recorded.length).toBeGreaterThan(20);
  expect(
    recorded.flatMap((path) => [...textOf(path).matchAll(PRIVATE_ENGLISH)].map(([word]) => ({ path, word }))),
  ).toEqual([]);
});

test("comments and names of what makes answers avoid private English", () => {
  const found = sources
    .filter((path) => /^src\/(?:render|tools)\//.test(path))
    .flatMap((path) => [...textOf(path).matchAll(PRIVATE_ENGLISH)].map(([word]) => ({ path, word })))
    // The name of a field in stored rows, and of an argument in earlier versions.
    .filter(({ word }) => !/^mend(?:ed)?$/.test(word));
  expect(found).toEqual([]);
});
