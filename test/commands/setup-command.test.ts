import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { COMMAND, runCommand } from "../support/server-process.ts";
import { type Home, home, runSetup as run } from "../support/setup-home.ts";
import { CTRL_C, startInTerminal } from "../support/terminal.ts";

const ADDRESS = { TARGETING_API_URL: "https://api.example.com" };
const KEY = { TARGETING_API_KEY: 'the-"secret"-key' };
const ON_POSIX = process.platform !== "win32";

function ask(place: Home, environment: Readonly<Record<string, string>> = {}) {
  return startInTerminal(["setup", "cursor"], { ...place.environment, ...environment });
}

const REFERENCE = "$" + "{env:TARGETING_API_KEY}";

describe("questions", () => {
  test("what the host writes meanwhile stays: the new change is shown, and asked about", async () => {
    const place = home('{"mcpServers":{}}');
    const command = ask(place);
    await command.answer("Write this?", "");
    expect(await command.exited).toBe(1);
    expect(command.said()).toMatch(/Nothing was written\.\s*$/);

    const again = ask(place);
    await again.until("Write this?");
    const meanwhile = '{"account":"signed in","mcpServers":{"targeting":{"command":"old"}}}';
    writeFileSync(place.file, meanwhile);
    expect(await again.answer("Write this?", "y")).not.toContain('"old"');
    const shown = await again.answer("Write this?", "y");
    expect(shown).toContain("Another program has changed");
    expect(shown).toContain('-       "command": "old"');
    expect(await again.exited).toBe(0);
    expect(JSON.parse(place.text())).toMatchObject({ account: "signed in" });
    expect(place.entry().command).toBe(process.execPath);
    expect(place.backup()).toBe(meanwhile);
    expect(place.beside()).toHaveLength(1);
  });

  test.each([
    [[], "Nothing was written: there is no terminal for the question. --yes writes without asking, and without keys."],
    [["--remove"], "Nothing was removed: there is no terminal for the question. --yes removes it without asking."],
  ])("without a terminal nobody is asked, which is said: setup cursor %j", async (args, sentence) => {
    const before = '{"mcpServers":{"targeting":{"command":"old"}}}';
    const place = home(before);
    const { code, text } = await runCommand(["setup", "cursor", ...args], place.environment);
    expect({ code, last: text.split("\n").at(-1) }).toEqual({ code: 1, last: sentence });
    expect({ text: place.text(), beside: place.beside() }).toEqual({ text: before, beside: [] });
  });

  test.each(["Write the value", "Write this"])("Ctrl-C at %j ends it, and writes nothing", async (question) => {
    const place = home("{}");
    const command = ask(place, { ...ADDRESS, ...KEY });
    if (question === "Write this") await command.answer("Write the value", "y");
    await command.answer(question, CTRL_C);
    expect(await command.exited).toBe(130);
    expect({ text: place.text(), beside: place.beside() }).toEqual({ text: "{}", beside: [] });
  });

  test("a key is asked about when the settings have been shown; it is shown nowhere", async () => {
    const place = home("{}");
    const command = ask(place, { ...ADDRESS, ...KEY });
    expect(await command.answer("Write the value", "y")).toContain('"TARGETING_API_URL": "https://api.example.com"');
    await command.answer("Write this, with the value of TARGETING_API_KEY?", "yes");
    expect(await command.exited).toBe(0);
    expect(place.entry().env).toEqual({ ...ADDRESS, ...KEY });
    expect(command.said()).toContain("now contains TARGETING_API_KEY as plain text");

    const same = ask(place, { ...ADDRESS, ...KEY });
    expect(await same.exited).toBe(0);
    expect(same.said()).toContain("has this entry already");
    expect(command.said() + same.said()).not.toContain("secret");
  });

  test.each([
    ["n", 'old"secret'],
    ["y", KEY.TARGETING_API_KEY],
  ])("a key that the file holds: %s to another leaves %s there, and that is said", async (answer, expected) => {
    const env = { TARGETING_API_KEY: 'old"secret' };
    const place = home(JSON.stringify({ mcpServers: { targeting: { command: "old", env } } }));
    const command = ask(place, { ...ADDRESS, ...KEY });
    await command.answer("has a different value for TARGETING_API_KEY", answer);
    await command.answer("Write this", "y");
    expect(await command.exited).toBe(0);
    expect(place.entry().env).toEqual({ ...ADDRESS, TARGETING_API_KEY: expected });
    const words = answer === "y" ? "now contains TARGETING_API_KEY" : "still contains TARGETING_API_KEY, as before";
    expect(command.said()).toContain(words);
    expect(command.said()).not.toContain("secret");
  });

  test("no to a key that the file does not hold: the file refers to it", async () => {
    const place = home();
    const command = ask(place, { ...ADDRESS, ...KEY });
    await command.answer("Write the value", "n");
    await command.answer("Write this?", "y");
    expect(await command.exited).toBe(0);
    expect(place.entry().env.TARGETING_API_KEY).toBe(REFERENCE);
    expect(command.said()).toContain("Cursor takes TARGETING_API_KEY from the environment");
  });
});

describe("an entry that is there", () => {
  test("one over HTTP loses its address and headers, and shows no secret", async () => {
    const old = { type: "http", url: "https://x.example/secret-path", headers: { Authorization: "Bearer secret" } };
    const place = home(JSON.stringify({ mcpServers: { targeting: { ...old, disabled: true } } }));
    const { code, said } = await run(place);
    expect(code).toBe(0);
    expect(place.entry()).toEqual({ disabled: true, command: process.execPath, args: [COMMAND] });
    for (const line of ['-       "type": "http"', '-       "url": ', '-         "Authorization": "[redacted]"']) {
      expect(said).toContain(line);
    }
    expect(said).not.toContain("secret");
  });

  test("what is no text in its env stays, and unknown values are not shown", async () => {
    const env = '{"N": 12345678901234567890, "L": [1.0], "MY_TOKEN": "secret", "TARGETING_MCP_READ_ONLY": "on"}';
    const args = '["--header", "secret", "--max-deletes", "3"]';
    const place = home(`{"mcpServers": {"targeting": {"command": "old", "args": ${args}, "env": ${env}}}}`);
    const { code, said } = await run(place, ["--mode", "sandbox"]);
    expect(code).toBe(0);
    expect(place.text()).toContain(env.slice(0, -1));
    expect(place.entry().env).toMatchObject({ TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_READ_ONLY: "on" });
    for (const shown of ['"--max-deletes",', '"3"', '"--header",']) expect(said).toContain(shown);
    expect(said).not.toContain("secret");
  });

  test("a flag without a value removes its setting, and only that", async () => {
    const place = home();
    await run(place, ["--mode", "sandbox", "--read-only", "--allowed-targetings", "01J8ZQ4N3V0000000000000001"]);
    const { code, said } = await run(place, ["--read-only=off", "--allowed-targetings="]);
    expect(code).toBe(0);
    expect(place.entry().env).toEqual({ TARGETING_MCP_MODE: "sandbox", TARGETING_MCP_READ_ONLY: "off" });
    expect(said).toMatch(/^- .*"TARGETING_MCP_ALLOWED_TARGETINGS": /m);
  });

  test("other entries are never shown, however the file is laid out", async () => {
    const place = home('{"mcpServers":{"other":{"command":"x","env":{"TOKEN":"secret"}}},"account":"secret"}');
    const { said } = await run(place);
    expect(said).toContain('+     "targeting": {');
    expect(said).not.toMatch(/secret|other/);
  });
});

describe("settings", () => {
  test.each([
    [["--allowed-targetings", "foo"], "must be a comma list of ULIDs"],
    [["--routes", "nowhere.json"], "cannot be read as JSON"],
    [["--mode", "live"], "neither pair is set"],
    [["--wait-ms", "12x"], "TARGETING_MCP_WAIT_MS (--wait-ms) must be a whole number"],
  ])("%j is refused as the server does", async (args, sentence) => {
    const place = home("{}");
    expect(await run(place, args)).toMatchObject({ code: 2, refused: expect.stringContaining(sentence) });
    expect(place.text()).toBe("{}");
  });

  test("with what stays in the entry, too", async () => {
    const place = home(
      JSON.stringify({ mcpServers: { targeting: { command: "x", env: { EVENT_APP_KEY: "secret" } } } }),
    );
    expect(await run(place)).toMatchObject({ code: 2, refused: expect.stringContaining("EVENT_API_URL is missing") });
  });

  test("the line with doctor checks what was written", async () => {
    const { said } = await run(home(), ["--read-only", "--project", "my project", "--mode", "sandbox"]);
    const last = said.split("\n").find((line) => line.includes(" doctor ")) ?? "";
    const quote = ON_POSIX ? "'" : '"';
    const flags = `--mode=sandbox ${quote}--project=my project${quote} --read-only=on`;
    expect(last).toContain(`${COMMAND} doctor`);
    for (const flag of flags.match(/--[^ ]+/g) ?? []) expect(last).toContain(flag);
  });
});
