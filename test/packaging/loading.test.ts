import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { fileAt } from "../../scripts/packaging/generated.ts";

const BUILT = readdirSync(fileAt("dist")).filter((file) => file.endsWith(".js"));
const textOf = (file: string) => readFileSync(fileAt(`dist/${file}`), "utf8");

/** The files that loading one loads with it: what it imports at once, and not by a call of `import()`. */
function loadedWith(file: string, seen: Set<string> = new Set()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, next = ""] of textOf(file).matchAll(/(?:from|import)\s*"\.\/([^"]+\.js)"/g)) loadedWith(next, seen);
  return seen;
}

/** What only some calls need, each in a file of its own. */
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
  // What each call that writes loads beside stdio: no server of a page.
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
