import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type ParseError, parse, stripComments } from "jsonc-parser";
import { describe, expect, test } from "vitest";
import { COMMAND, runCommand } from "../support/server-process.ts";
import { home, homeOf, runSetup as run } from "../support/setup-home.ts";
import { startInTerminal } from "../support/terminal.ts";

const ADDRESS = { TARGETING_API_URL: "https://api.example.com" };
const KEY = { TARGETING_API_KEY: 'the-"secret"-key' };
const ON_POSIX = process.platform !== "win32";

const REFERENCE = "$" + "{env:TARGETING_API_KEY}";

describe("the rest of the file stays to the letter", () => {
  /** `ENTRY` is replaced by our entry, with the indentation and line ends of the file. */
  test.each([
    {
      before:
        '{\n    // mine\n    "mcpServers": {\n        "a": {"n":  1.0}, // the a\n    }, /* end */\n    "x":[1,  2]\n}\n',
      after:
        '{\n    // mine\n    "mcpServers": {\n        "a": {"n":  1.0}, // the a\n        ENTRY\n    }, /* end */\n    "x":[1,  2]\n}\n',
      unit: "    ",
    },
    {
      before: '\uFEFF{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t},\r\n\t"big": 12345678901234567890\r\n}\r\n',
      after: '{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\tENTRY\r\n\t},\r\n\t"big": 12345678901234567890\r\n}\r\n',
      unit: "\t",
      eol: "\r\n",
    },
    {
      before: '{"mcpServers":{"a":{"command":"x"}},"twice":1,"twice":2,"__proto__":{"a":1}}',
      after: '{"mcpServers":{"a":{"command":"x"},\n    ENTRY\n  },"twice":1,"twice":2,"__proto__":{"a":1}}',
      unit: "  ",
    },
    {
      before: '{\n   "theme": "dark" // mine\n}',
      after: '{\n   "theme": "dark", // mine\n   "mcpServers": {\n      ENTRY\n   }\n}',
      unit: "   ",
    },
    { before: "\n", after: '{\n  "mcpServers": {\n    ENTRY\n  }\n}\n', unit: "  " },
  ])("$before", async ({ before, after, unit, eol = "\n" }) => {
    const place = home(before);
    expect((await run(place)).code).toBe(0);
    const fields = JSON.stringify({ command: process.execPath, args: [COMMAND] }, null, unit);
    const lines = `"targeting": ${fields}`.split("\n");
    expect(place.text()).toBe(after.replace("ENTRY", () => lines.join(eol + unit + unit)));
    expect(place.backup()).toBe(before);
    expect((await run(place)).said).toContain("has this entry already");
  });

  test("in our entry, too", async () => {
    const place = home(
      '{\n  "mcpServers": {\n    "targeting": {\n      "url": "x", // gone\n      "n":  1.0 // mine\n    }\n  }\n}',
    );
    expect((await run(place)).code).toBe(0);
    const args = `"args": [\n        ${JSON.stringify(COMMAND)}\n      ]`;
    expect(place.text()).toBe(
      `{\n  "mcpServers": {\n    "targeting": {\n      "n":  1.0, // mine\n      "command": ${JSON.stringify(process.execPath)},\n      ${args}\n    }\n  }\n}`,
    );
  });

  test.each([
    ["UTF-16", Buffer.from('{"mcpServers":{}}', "utf16le"), "not valid JSON"],
    ["another encoding", Buffer.from([0x7b, 0x22, 0xb0, 0xa1, 0x22, 0x3a, 0x31, 0x7d]), "not encoded in UTF-8"],
    ["half a file", '{"mcpServers": {', "not valid JSON"],
    ["servers twice", '{"mcpServers": {}, "mcpServers": {}}', '"mcpServers" more than once'],
    ["the entry twice", '{"mcpServers": {"targeting": {}, "targeting": {}}}', '"targeting" more than once'],
    ["a variable twice", '{"mcpServers": {"targeting": {"env": {"A": "1", "A": "2"}}}}', '"A" more than once'],
    ["no table of variables", '{"mcpServers": {"targeting": {"env": []}}}', '"env" is not an object'],
  ])("%s is refused, with the block", async (_, before, why) => {
    const place = home(before);
    const { code, refused } = await run(place, [], { ...ADDRESS, ...KEY });
    expect(code).toBe(2);
    expect(refused).toContain(why);
    expect(refused).toContain(`"TARGETING_API_KEY": "${REFERENCE}"`);
    expect(readFileSync(place.file)).toEqual(Buffer.from(before));
    expect(place.beside()).toEqual([]);
  });
});

describe("each host can read what is left, by its own parser", () => {
  const plain = (text: string): unknown => JSON.parse(text);
  const withComments = (text: string): unknown => JSON.parse(stripComments(text));
  const tolerant = (text: string): unknown => {
    const errors: ParseError[] = [];
    const value: unknown = parse(text, errors, { allowTrailingComma: true });
    expect(errors).toEqual([]);
    return value;
  };
  const MARK = "\uFEFF";
  const commas = (section: string) => `{\n  "${section}": {"a": {"args": ["x, ]", "y",],},},\n  "more": [1, 2,],\n}\n`;
  const comments = (section: string) => commas(section).replace("{\n", "{\n  // mine, and more, }\n");

  test.each([
    ["claude-desktop", "mcpServers", plain, false],
    ["claude-code", "mcpServers", plain, false],
    ["claude", "mcpServers", plain, false],
    ["gemini", "mcpServers", withComments, true],
    ["cursor", "mcpServers", withComments, true],
    ["vscode", "servers", tolerant, true],
  ] as const)("%s", async (host, section, read, readsComments) => {
    const place = homeOf(host);
    for (const content of [MARK + commas(section), MARK + comments(section)]) {
      const hasComments = content.includes("//");
      place.write(content);
      const { code, stderr } = await runCommand(["setup", host, "--yes"], place.environment);
      if (hasComments && !readsComments) {
        expect({ code, text: place.text() }).toEqual({ code: 2, text: content });
        expect(stderr).toMatch(/it has a comment \(line 2\), but Claude (Desktop|Code) cannot read files with/);
        continue;
      }
      expect({ code, said: stderr }).toEqual({ code: 0, said: "" });
      const servers = { a: { args: ["x, ]", "y"] }, targeting: expect.objectContaining({ args: [COMMAND] }) };
      expect(read(place.text())).toEqual({ [section]: servers, more: [1, 2] });
      expect(place.text().includes("// mine, and more, }")).toBe(hasComments);
    }
  });
});

test("a comment that a host cannot read is named with its line in the file of the person", async () => {
  const place = homeOf("claude-desktop");
  const entry = (key: string) => `"targeting": {"command": "node",\n\n\n "args": [],\n\n "env": {"A": "${key}"}}`;
  place.write(`{"mcpServers": {${entry("1")},\n"b": {}},\n  // mine\n  "more": 1}\n`);
  const { code, stderr } = await runCommand(["setup", "claude-desktop", "--yes"], place.environment);
  expect(code).toBe(2);
  const line =
    place
      .text()
      .split("\n")
      .findIndex((one) => one.includes("// mine")) + 1;
  expect(stderr).toContain(`it has a comment (line ${line}), but`);
});

test.each(["TARGETING_MCP_STORE", "TARGETING_MCP_STORE_LISTEN"])(
  "an entry whose %s only the host knows is changed",
  async (variable) => {
    const place = homeOf("claude-code");
    const store = variable === "TARGETING_MCP_STORE_LISTEN" ? { TARGETING_MCP_STORE: "postgres://localhost/a" } : {};
    const env = { ...store, [variable]: `\${${variable}}` };
    place.write(JSON.stringify({ mcpServers: { targeting: { command: "node", args: [], env } } }));
    const { code, stderr } = await runCommand(["setup", "claude-code", "--yes"], place.environment);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(place.text()).toContain(`"${variable}":"\${${variable}}"`);
  },
);

test.runIf(ON_POSIX)("a key in a file that others can read is reported, with the command that ends that", async () => {
  const entry = {
    command: "x",
    args: [],
    env: { TARGETING_API_KEY: "a-real-key", TARGETING_API_URL: "https://a.test" },
  };
  const place = home(JSON.stringify({ mcpServers: { targeting: entry } }));
  chmodSync(place.file, 0o644);
  const asked = await runCommand(["setup", "cursor"], place.environment);
  const line = `${place.file} contains TARGETING_API_KEY, and other users can read it (mode 644): chmod 600 ${place.file}`;
  expect(asked).toMatchObject({ code: 1, text: expect.stringContaining(line) });
  const doctor = () =>
    runCommand(["doctor", "--json"], { ...place.environment, TARGETING_MCP_STATE_DIR: `${place.file}-no` });
  const { code, text } = await doctor();
  expect(code).toBe(1);
  expect(JSON.parse(text).checks).toContainEqual({
    about: "Cursor",
    state: "problem",
    found: `${place.file} contains TARGETING_API_KEY, and other users can read it (mode 644)`,
    remedy: `chmod 600 ${place.file}`,
  });
  chmodSync(place.file, 0o600);
  expect((await doctor()).text).not.toContain("Cursor");
});

describe("files that are not plain files", () => {
  test("a folder in its place, or a file in the place of its folder", async () => {
    const place = home();
    mkdirSync(place.file);
    expect(await run(place)).toMatchObject({
      code: 2,
      refused: expect.stringMatching(/mcp\.json.*\n(?:.|\n)*"targeting": \{/),
    });
    const other = home();
    const environment = { ...other.environment, HOME: other.file, USERPROFILE: other.file };
    writeFileSync(other.file, "");
    const { code, stderr } = await runCommand(["setup", "cursor", "--yes"], environment);
    expect(code).toBe(2);
    expect(stderr).toMatch(/cannot be changed safely: E(?:.|\n)*"targeting": \{/);
    expect(stderr).not.toContain("    at ");
  });

  test("a file that is read-only", async () => {
    const place = home("{}");
    chmodSync(place.file, 0o444);
    expect(await run(place)).toMatchObject({ code: 2, refused: expect.stringContaining("it is read-only") });
    expect({ text: place.text(), beside: place.beside() }).toEqual({ text: "{}", beside: [] });
  });

  test.runIf(ON_POSIX)("links: through to the file, or refused where that is not there", async () => {
    const place = home();
    const target = join(dirname(place.file), "..", "real.json");
    symlinkSync(target, place.file);
    expect(await run(place)).toMatchObject({
      code: 2,
      refused: expect.stringContaining("a link to a file that does not exist"),
    });
    expect(existsSync(target)).toBe(false);
    writeFileSync(target, "{}");
    expect((await run(place)).code).toBe(0);
    expect(lstatSync(place.file).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, "utf8")).toContain('"targeting"');
  });

  test.runIf(ON_POSIX)(
    "the file keeps its mode, whatever an earlier attempt left; its copy is nobody else's",
    async () => {
      for (const mode of [0o600, 0o664]) {
        const place = home("{}");
        chmodSync(place.file, mode);
        writeFileSync(`${place.file}.new`, "junk", { mode: 0o644 });
        expect((await run(place)).code).toBe(0);
        const [backup = ""] = place.beside().filter((name) => name.endsWith(".backup"));
        expect(statSync(place.file).mode & 0o777).toBe(mode);
        expect(statSync(join(dirname(place.file), backup)).mode & 0o777).toBe(0o600);
        expect(place.beside()).toHaveLength(2);
      }
    },
  );
});

describe.runIf(ON_POSIX)("a file that holds a key is its owner's alone", () => {
  const modeOf = (path: string) => statSync(path).mode & 0o777;
  const entryWith = (env: Readonly<Record<string, string>>) =>
    JSON.stringify({ mcpServers: { targeting: { command: "old", env } } });
  /** Returns the permissions of the copies that `setup` saved in the same folder. */
  const copies = (place: ReturnType<typeof home>) =>
    place.beside().map((name) => modeOf(join(dirname(place.file), name)));

  test("when the key is written, and that is said before", async () => {
    const place = home("{}");
    chmodSync(place.file, 0o644);
    const command = startInTerminal(["setup", "cursor"], { ...place.environment, ...ADDRESS, ...KEY });
    await command.answer("Write the value", "y");
    const said = await command.answer("Write this, with the value of TARGETING_API_KEY?", "y");
    expect(said).toContain(
      "will contain TARGETING_API_KEY. Others can read it now (mode 644); afterwards, only you can.",
    );
    expect(await command.exited).toBe(0);
    expect(place.entry().env).toMatchObject(KEY);
    expect({ file: modeOf(place.file), copies: copies(place) }).toEqual({ file: 0o600, copies: [0o600] });
  });

  test.each([
    ["a key", KEY.TARGETING_API_KEY],
    ["a key to fall back on", "$" + "{TARGETING_API_KEY:-some-key-of-mine}"],
  ])("when %s that was there stays, and so is the copy", async (_, key) => {
    const place = home(entryWith({ ...ADDRESS, TARGETING_API_KEY: key }));
    chmodSync(place.file, 0o664);
    const { code, said } = await run(place, ["--read-only"], ADDRESS);
    expect(code).toBe(0);
    expect(said).toContain("will contain TARGETING_API_KEY. Others can read it now (mode 664)");
    expect(place.entry().env.TARGETING_API_KEY).toBe(key);
    expect({ file: modeOf(place.file), copies: copies(place) }).toEqual({ file: 0o600, copies: [0o600] });
  });

  test("when nothing else is to be changed: after a yes", async () => {
    const place = home(entryWith({ ...ADDRESS, ...KEY }));
    expect((await run(place, [], ADDRESS)).code).toBe(0);
    chmodSync(place.file, 0o644);
    const command = startInTerminal(["setup", "cursor"], { ...place.environment, ...ADDRESS });
    const said = await command.answer("Make it readable by you only?", "n");
    expect(said).toContain("contains TARGETING_API_KEY, and other users can read it (mode 644)");
    expect({ code: await command.exited, mode: modeOf(place.file) }).toEqual({ code: 1, mode: 0o644 });
    const again = await run(place, [], ADDRESS);
    expect(again).toMatchObject({ code: 0, said: expect.stringContaining("can now be read by you only") });
    expect(modeOf(place.file)).toBe(0o600);
  });

  test("a file that only refers to keys keeps its mode, and its copy is private all the same", async () => {
    const place = home(entryWith({ ...ADDRESS, TARGETING_API_KEY: REFERENCE }));
    chmodSync(place.file, 0o644);
    expect((await run(place, ["--read-only"], ADDRESS)).said).not.toContain("open to others");
    expect({ file: modeOf(place.file), copies: copies(place) }).toEqual({ file: 0o644, copies: [0o600] });
  });
});
