import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { SETTING_LIST } from "../../src/settings/registry.ts";
import { openBrowser } from "../../src/web/open-browser.ts";

test("the program that opens the browser gets the environment without any secret setting", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-browser-"));
  const [program, shown] = [join(folder, "browser.mjs"), join(folder, "environment.json")];
  await writeFile(
    program,
    'import { writeFileSync as w } from "node:fs"; w(process.argv[2], JSON.stringify(process.env));',
  );
  const secrets = SETTING_LIST.filter(({ secret }) => secret).flatMap(({ variable }) => [
    variable,
    variable.toLowerCase(),
  ]);
  expect(secrets).toContain("TARGETING_API_KEY");
  const environment = {
    ...Object.fromEntries(secrets.map((variable) => [variable, "hidden"])),
    BROWSER: `${process.execPath} ${program} ${shown}`,
    DISPLAY: ":7",
    TARGETING_API_URL: "https://api.example",
  };
  expect(await openBrowser("http://127.0.0.1:1/", environment)).toBe(true);
  const given = z.record(z.string(), z.string()).parse(JSON.parse(await readFile(shown, "utf8")));
  expect(given).toMatchObject({ DISPLAY: ":7", TARGETING_API_URL: "https://api.example" });
  expect(Object.keys(given).filter((variable) => secrets.includes(variable))).toEqual([]);
});
