import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { home, runSetup as run } from "../support/setup-home.ts";
import { startInTerminal } from "../support/terminal.ts";

const SETTINGS = { TARGETING_API_URL: "https://api.example.com", TARGETING_API_KEY: "the-secret-key" };

describe("what setup put in, --remove takes out, and nothing else", () => {
  test.each([
    '{"mcpServers":{}}',
    '{\n  // mine\n  "mcpServers": {\n    "a": {"n":  1.0}, // the a\n    "b": {}\n  },\n  "x": 1\n}\n',
    '\uFEFF{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t},\r\n\t"big": 12345678901234567890\r\n}\r\n',
  ])("JSON: %j", async (before) => {
    const place = home(before);
    expect((await run(place, [], SETTINGS)).code).toBe(0);
    const { code, said } = await run(place, ["--remove"], SETTINGS);
    expect(code).toBe(0);
    expect(JSON.parse(withoutComments(place.text()))).toEqual(JSON.parse(withoutComments(before)));
    expect(place.text().replaceAll(/[\s\uFEFF]/g, "")).toBe(before.replaceAll(/[\s\uFEFF]/g, ""));
    expect(said).toContain('-     "targeting": {');
    expect(said).not.toContain("secret");
    expect(await run(place, ["--remove"])).toMatchObject({ code: 0, said: expect.stringContaining("has no entry") });
  });

  test.each([
    "",
    '# mine\nmodel = "o3" # why\n\n[mcp_servers.other]\ncommand = "x"\n',
    '\uFEFFmodel = "o3"\r\n[a]\r\nb = 1979-05-27\r\n',
    '# [mcp_servers.targeting]\n[mcp_servers."other"]\ncommand = "x"\n# the end\n',
  ])("TOML: %j", async (before) => {
    const place = home(before, "codex");
    expect((await run(place, [], SETTINGS)).code).toBe(0);
    expect((await run(place, ["--remove"])).code).toBe(0);
    expect(place.text()).toBe(before);
  });

  test("TOML: an entry between others, with comments, and one in quotes", async () => {
    const place = home(
      '[a]\nb = 1\n\n["mcp_servers".\'targeting\']\n# ours\ncommand = "x"\n\n# of c\n[c]\nd = 2\n',
      "codex",
    );
    expect((await run(place, ["--remove"])).code).toBe(0);
    expect(place.text()).toBe("[a]\nb = 1\n\n# of c\n[c]\nd = 2\n");
  });

  test.each([
    '[mcp_servers]\ntargeting = { command = "x" }\n',
    'mcp_servers.targeting.command = "x"\n',
    'note = """\n[mcp_servers.targeting]\n"""\n[mcp_servers.targeting]\ncommand = "x"\n',
  ])("TOML in another form is left alone: %j", async (before) => {
    const place = home(before, "codex");
    expect(await run(place, ["--remove"])).toMatchObject({
      code: 2,
      refused: expect.stringContaining("must be written as a separate table. Remove the entry by hand"),
    });
    expect(place.text()).toBe(before);
  });

  test("a file that is not there has no entry", async () => {
    expect(await run(home(), ["--remove"])).toMatchObject({ code: 0, said: expect.stringContaining("has no entry") });
  });
});

test("it asks first, shows no key, and says that the copy still holds one", async () => {
  const env = { TARGETING_API_KEY: "the-secret-key" };
  const before = JSON.stringify({ mcpServers: { other: {}, targeting: { command: "node", env } } });
  const place = home(before);
  expect((await run({ ...place, environment: place.environment }, [])).code).toBe(2);
  const no = startInTerminal(["setup", "cursor", "--remove"], place.environment);
  await no.answer("Remove this?", "n");
  expect(await no.exited).toBe(1);
  expect(place.text()).toBe(before);

  const yes = startInTerminal(["setup", "cursor", "--remove"], place.environment);
  await yes.until("Remove this?");
  writeFileSync(place.file, before.replace("other", "another"));
  await yes.answer("Remove this?", "y");
  await yes.answer("Remove this?", "y");
  expect(await yes.exited).toBe(0);
  expect(yes.said()).toContain("Another program has changed");
  expect(yes.said()).toContain("which still contains TARGETING_API_KEY");
  expect(yes.said()).not.toContain("secret");
  expect(JSON.parse(readFileSync(place.file, "utf8"))).toEqual({ mcpServers: { another: {} } });
  expect(place.backup()).toContain("the-secret-key");
});

function withoutComments(text: string): string {
  return text.replace(/^\uFEFF/, "").replaceAll(/\/\/.*$/gm, "");
}
