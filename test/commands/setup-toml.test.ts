import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { COMMAND } from "../support/server-process.ts";
import { home, runSetup as run } from "../support/setup-home.ts";

const SETTINGS = { TARGETING_API_URL: "https://api.example.com", TARGETING_API_KEY: "the-secret-key" };

const BLOCK = [
  "[mcp_servers.targeting]",
  `command = ${JSON.stringify(process.execPath)}`,
  `args = [ ${JSON.stringify(COMMAND)} ]`,
  "startup_timeout_sec = 60",
  'env_vars = [ "TARGETING_API_KEY" ]',
  "",
  "[mcp_servers.targeting.env]",
  'TARGETING_API_URL = "https://api.example.com"',
  "",
];

describe("the block is put at the end, and the rest stays to the letter", () => {
  test.each([
    ["", ""],
    ['# mine\nmodel = "o3" # why\n\n[mcp_servers.other]\ncommand = "x"\n', "\n"],
    ['\uFEFFmodel = "o3"\r\n[a]\r\nb = 1979-05-27\r\n', "\r\n"],
    ['note = """\n[mcp_servers.targeting]\n"""', "\n\n"],
    ["# [mcp_servers.targeting]\n", "\n"],
    ['mcp_servers.other.command = "x"\nbig = 9007199254740993\n', "\n"],
    ["[mcp_servers]\n[mcp_servers.'other']\ncommand = 'x'\n", "\n"],
  ])("%j", async (before, between) => {
    const place = home(before, "codex");
    const { code, said } = await run(place, [], SETTINGS);
    const eol = before.includes("\r") ? "\r\n" : "\n";
    expect({ code, text: place.text() }).toEqual({ code: 0, text: before + between + BLOCK.join(eol) });
    expect(said).not.toMatch(/secret|\bo3\b|other/);
    const again = await run(place, [], SETTINGS);
    expect(again.code).toBe(0);
    expect(again.said).toContain("has this entry already");
    expect(place.beside()).toHaveLength(1);
  });
});

test.each([
  '["mcp_servers"."targeting"]\ncommand = "x"\n',
  "['mcp_servers'.targeting]\ncommand = 'x'\n\n[mcp_servers.targeting.env]\n\n# of b\n[b]\nc = 1\n",
  '[mcp_servers.targeting]\nurl = "https://x.example"\nhttp_headers = { a = "secret" }\n',
])("another entry is replaced, what a person added to it stays: %j", async (before) => {
  const place = home(`${before.replace("\n", "\ntool_timeout_sec = 5\n")}`, "codex");
  const { code, said } = await run(place, [], SETTINGS);
  expect(code).toBe(0);
  expect(said).toMatch(/^- (command = "x"|url = )/m);
  expect(said).not.toContain("secret");
  const after = parse(place.text());
  expect(after).toMatchObject({
    mcp_servers: { targeting: { command: process.execPath, args: [COMMAND], tool_timeout_sec: 5 } },
  });
  expect(place.text()).not.toMatch(/url =|http_headers/);
  expect(place.text().includes("# of b\n[b]\nc = 1\n")).toBe(before.includes("[b]"));
  expect(place.backup()).toContain("x");
});

test.each([
  ['[mcp_servers]\ntargeting = { command = "x" }\n', "must be written as a separate table"],
  ['[mcp_servers]\n"targeting".command = "x"\n', "must be written as a separate table"],
  ['"mcp_servers" = { other = { command = "x" } }\n', "must be written as tables"],
  ["mcp_servers = 5\n", "is not an object"],
  ["[[mcp_servers]]\n", "is not an object"],
  ["broken = [\n", "not valid TOML"],
  ['open = """\n', "not valid TOML"],
])("%j is refused, with the block", async (before, why) => {
  const place = home(before, "codex");
  const { code, refused } = await run(place, [], SETTINGS);
  expect(code).toBe(2);
  expect(refused).toContain(why);
  expect(refused).toContain(BLOCK.join("\n"));
  expect({ text: place.text(), beside: place.beside() }).toEqual({ text: before, beside: [] });
});

test("an entry that a person added to, or wrote in another form, is the same one", async () => {
  const [program, file] = [process.execPath, COMMAND].map((path) => JSON.stringify(path));
  const inline = `{ command = ${program}, args = [${file}], startup_timeout_sec = 90, enabled = false }`;
  const place = home(`[mcp_servers]\n"targeting" = ${inline}\n`, "codex");
  expect(await run(place)).toMatchObject({ code: 0, said: expect.stringContaining("has this entry already") });
});
