import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fileAt } from "../../scripts/packaging/generated.ts";

const BUILT = readdirSync(fileAt("dist")).filter((file) => file.endsWith(".js"));
const textOf = (file: string) => readFileSync(fileAt(`dist/${file}`), "utf8");

/** Returns the files that are loaded together with a file, because it imports them directly and not with `import()`. */
function loadedWith(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, next = ""] of textOf(file).matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) loadedWith(next, seen);
  return seen;
}

/** Files that only some calls need. */
const LATER = {
  undici: /^dispatcher-/,
  "sheets and encodings": /^(?:lib|workbook|sheet-rows)-/,
  "the sandbox": /^sandbox-[A-Z0-9]/,
} as const;

test.each([
  ["main", 20_000, ["undici", "sheets and encodings", "the sandbox"]],
  ["setup", 200_000, ["undici", "sheets and encodings", "the sandbox"]],
  ["doctor", 600_000, ["undici", "sheets and encodings", "the sandbox"]],
  ["stdio", 440_000, ["undici", "sheets and encodings", "the sandbox"]],
  ["http", 850_000, ["undici", "sheets and encodings", "the sandbox"]],
  // What every call that writes loads in addition to stdio. The server of the page is not part of it.
  ["decision-page", 12_000, ["undici", "sheets and encodings", "the sandbox"]],
  ["sandbox-line", 450_000, ["undici", "sheets and encodings"]],
] as const)("%s loads no more than it needs", (command, most, later) => {
  const [file = ""] = BUILT.filter((one) => new RegExp(`^${command}(?:-[A-Z0-9]{8})?\\.js$`).test(one));
  const loaded = [...loadedWith(file)];
  expect(loaded.reduce((sum, one) => sum + textOf(one).length, 0)).toBeLessThan(most);
  for (const what of later) {
    expect(BUILT.filter((one) => LATER[what].test(one)).length, what).toBeGreaterThan(0);
    expect(
      loaded.filter((one) => LATER[what].test(one)),
      what,
    ).toEqual([]);
  }
});
