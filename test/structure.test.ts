import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOMS } from "../scripts/house/rooms.ts";

// What the linter cannot say of the source: which rooms may print, and which words the strict types rule out.

const SOURCE = join(import.meta.dirname, "..", "src");
const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => ({ file: file.replaceAll("\\", "/"), text: readFileSync(join(SOURCE, file), "utf8") }));

/** The lines of files for which something holds, as `file: line`. */
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
  const mayPrint = (file: string): boolean => file.startsWith("commands/") || file.startsWith("server/stdio");
  expect(found(/process\.stdout/, (file) => !mayPrint(file))).toEqual([]);
});

test("only the settings and the commands read the environment", () => {
  // What is emitted for others reads their environment.
  const mayRead = (file: string): boolean => /^(?:commands|settings)\/|^events\/suites\/emit-/.test(file);
  expect(found(/process\.env/, (file) => !mayRead(file))).toEqual([]);
});

test("no type is asserted, and no check is switched off", () => {
  const asserted = /\bas (?:any|unknown|[A-Z]\w*(?:<|\[\]|[;,)\s]*$))/;
  const isCode = (line: string): boolean => !/^\S+: (?:import|export|\/?\*|\/\/)|"[^"]*\bas \w+[^"]*"/.test(line);
  expect(found(asserted).filter(isCode)).toEqual([]);
  expect(found(/@ts-(?:ignore|expect-error|nocheck)|biome-ignore|eslint-disable/)).toEqual([]);
});

test("every folder is a room of the list, and no room uses one above it, but for one that it lies in", () => {
  const folders = new Set(files.map(({ file }) => file.split("/").slice(0, -1).join("/")));
  folders.delete("");
  expect([...folders].sort()).toEqual(ROOMS.map(({ path }) => path).sort());
  const places = new Map(ROOMS.map(({ path }, place) => [path, place]));
  const isUp = (path: string, other: string): boolean => (places.get(other) ?? -1) < (places.get(path) ?? -1);
  const sharesSubject = (path: string, other: string): boolean => path.split("/")[0] === other.split("/")[0];
  const upward = ROOMS.flatMap(({ path, uses }) =>
    uses
      .filter((other) => other !== path && isUp(path, other) && !sharesSubject(path, other))
      .map((other) => `${path} > ${other}`),
  );
  expect(upward).toEqual([]);
});
