import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { SettingsError } from "../../src/settings/value-types.ts";
import { launchOf, publishedLaunch } from "../../src/setup/config-file.ts";
import { HOSTS, programFound } from "../../src/setup/hosts.ts";
import { setUp } from "../../src/setup/setup.ts";
import { runCommand } from "../support/server-process.ts";

/**
 * Where hosts keep their configuration on Linux, below the home folder. Written by hand from the hosts' documentation.
 */
const FILES = {
  "claude-desktop": ".config/Claude/claude_desktop_config.json",
  "claude-code": ".claude.json",
  vscode: ".config/Code/User/mcp.json",
  cursor: ".cursor/mcp.json",
  codex: ".codex/config.toml",
  gemini: ".gemini/settings.json",
} as const satisfies Record<string, string>;

const KEYS = { TARGETING_API_KEY: "the-secret-key", EVENT_APP_KEY: "the-secret-app-key" };
const ADDRESS = { TARGETING_API_URL: "https://api.example.com" };
const ADDRESSES = { ...ADDRESS, EVENT_API_URL: "https://events.example.com" };

interface Case {
  readonly host: keyof typeof FILES;
  /** The content of the configuration file before the command runs; absent: no file. */
  readonly before?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
  /** The person's answers, in order; absent: nobody can answer. */
  readonly answers?: readonly boolean[];
  readonly agreed?: boolean;
  /** Other folders that exist in the home folder. */
  readonly folders?: readonly string[];
}

async function setup({ host, before, environment = {}, flags = {}, answers, agreed = false, folders = [] }: Case) {
  const home = mkdtempSync(join(tmpdir(), "targeting-mcp-home-"));
  for (const folder of folders) mkdirSync(join(home, folder));
  const file = join(home, FILES[host]);
  mkdirSync(dirname(file), { recursive: true });
  if (before !== undefined) writeFileSync(file, before);
  const said: string[] = [];
  const asked: string[] = [];
  const ask = async (question: string): Promise<boolean> => {
    asked.push(question);
    return answers?.[asked.length - 1] ?? false;
  };
  const input = { flags: new Map(Object.entries(flags)), environment, platform: "linux", home } as const;
  const person = { say: (text: string) => void said.push(text), ask: answers && ask, agreed, launch: PLAIN };
  const code = await setUp(host, input, person);
  const files = readdirSync(dirname(file));
  const text = files.includes(file.slice(dirname(file).length + 1)) ? readFileSync(file, "utf8") : undefined;
  const backup = files.find((name) => name.endsWith(".backup"));
  const kept = backup === undefined ? undefined : readFileSync(join(dirname(file), backup), "utf8");
  return { code, text, json: () => JSON.parse(text ?? ""), kept, said: said.join("\n"), asked, file, home };
}

const PLAIN = { command: "npx", args: ["-y", "targeting-mcp"] };

describe("where each host looks, and in its form", () => {
  test.each([
    ["claude-desktop", { mcpServers: { targeting: PLAIN } }],
    ["claude-code", { mcpServers: { targeting: { type: "stdio", ...PLAIN } } }],
    ["vscode", { servers: { targeting: { type: "stdio", ...PLAIN } } }],
    ["cursor", { mcpServers: { targeting: PLAIN } }],
    ["gemini", { mcpServers: { targeting: PLAIN } }],
  ] as const)("%s", async (host, expected) => {
    const { code, json, file } = await setup({ host, agreed: true });
    expect({ code, written: json() }).toEqual({ code: 0, written: expected });
    expect(statSync(file).mode & 0o077).toBe(0);
  });
});

describe("where each host looks on other platforms", () => {
  test.each([
    ["claude-desktop", "darwin", "/Users/a/Library/Application Support/Claude/claude_desktop_config.json"],
    ["claude-desktop", "win32", "C:\\Users\\a\\AppData\\Roaming\\Claude\\claude_desktop_config.json"],
    ["claude-code", "win32", "C:\\Users\\a\\.claude.json"],
    ["vscode", "darwin", "/Users/a/Library/Application Support/Code/User/mcp.json"],
    ["vscode", "win32", "C:\\Users\\a\\AppData\\Roaming\\Code\\User\\mcp.json"],
    ["cursor", "win32", "C:\\Users\\a\\.cursor\\mcp.json"],
    ["codex", "win32", "C:\\Users\\a\\.codex\\config.toml"],
    ["gemini", "win32", "C:\\Users\\a\\.gemini\\settings.json"],
  ] as const)("%s, %s", (host, platform, file) => {
    const home = platform === "win32" ? "C:\\Users\\a" : "/Users/a";
    expect(HOSTS[host]?.file({ platform, home, environment: {} })).toBe(file);
  });

  test("Claude Desktop from the Windows store keeps a copy of its own", () => {
    const windows = { platform: "win32", home: "C:\\Users\\a", environment: {} } as const;
    expect(HOSTS["claude-desktop"]?.instead?.(windows)).toBe(
      "C:\\Users\\a\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json",
    );
    expect(HOSTS["claude-desktop"]?.instead?.({ ...windows, platform: "linux" })).toBeUndefined();
  });

  test.each([
    ["claude-code", "CLAUDE_CONFIG_DIR", "/elsewhere/.claude.json"],
    ["codex", "CODEX_HOME", "/elsewhere/config.toml"],
  ] as const)("%s moves with %s", (host, variable, file) => {
    const environment = { [variable]: "/elsewhere" };
    expect(HOSTS[host]?.file({ platform: "linux", home: "/home/a", environment })).toBe(file);
  });

  test.each([
    ["^0.1.0", true],
    ["latest", true],
    ["file:../../../targeting-mcp-0.1.0.tgz", false],
    ["https://example.com/targeting-mcp-0.1.0.tgz", false],
    ["github:someone/targeting-mcp", false],
    [undefined, false],
  ])("in the cache of npx, asked for as %j: fetched again %s", async (asked, isFetched) => {
    const cache = join(mkdtempSync(join(tmpdir(), "targeting-mcp-cache-")), "_npx", "30ec5365116b323c");
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, "package.json"), JSON.stringify({ dependencies: { "targeting-mcp": asked } }));
    const dist = join(cache, "node_modules", "targeting-mcp", "dist");
    const launch = await launchOf(join(dist, "setup-ABC.js"), "linux", "/usr/bin/node");
    expect(launch).toEqual(isFetched ? PLAIN : { command: "/usr/bin/node", args: [join(dist, "main.js")] });
  });

  test.each([
    ["win32", { Path: "C:\\a;C:\\tools", PATHEXT: ".EXE;.CMD" }, "C:\\tools\\claude.CMD"],
    ["win32", { PATH: "C:\\tools" }, "C:\\tools\\claude.EXE"],
    ["linux", { PATH: "/a:/tools" }, "/tools/claude"],
  ] as const)("a host's command is looked for as the system does: %s, %j", async (platform, environment, file) => {
    const there = async (path: string) => path === file;
    expect(await programFound("claude", { platform, home: "", environment }, there)).toBe(true);
    expect(await programFound("codex", { platform, home: "", environment }, there)).toBe(false);
  });

  test("Windows starts npx through a shell, since it is a script there", () => {
    expect(publishedLaunch("win32")).toEqual({ command: "cmd", args: ["/c", "npx", "-y", "targeting-mcp"] });
  });
});

describe("keys", () => {
  test("a yes to one writes that one, and shows it nowhere", async () => {
    const answers = [true, false, true];
    const { json, said, asked } = await setup({ host: "gemini", environment: { ...ADDRESSES, ...KEYS }, answers });
    expect(asked).toEqual([
      expect.stringContaining("TARGETING_API_KEY"),
      expect.stringContaining("EVENT_APP_KEY"),
      "Write this, with the value of TARGETING_API_KEY?",
    ]);
    expect(json().mcpServers.targeting.env).toMatchObject({
      TARGETING_API_KEY: "the-secret-key",
      EVENT_APP_KEY: "$" + "{EVENT_APP_KEY}",
    });
    expect(said).not.toContain("the-secret");
  });

  test("a host that fills in no references: the person is told to", async () => {
    const { said } = await setup({ host: "claude-desktop", environment: ADDRESS, agreed: true });
    expect(said).toContain("Now write TARGETING_API_KEY into");
  });

  test("a host that asks for keys gets its questions, each once", async () => {
    const before = '{"inputs":[{"id":"mine","type":"promptString","description":"Mine"}]}';
    const { text, said } = await setup({ host: "vscode", before, environment: ADDRESS, agreed: true });
    const again = await setup({
      host: "vscode",
      before: text ?? "",
      environment: { ...ADDRESSES, ...KEYS },
      agreed: true,
    });
    const asked = (id: string, description: string) => ({ type: "promptString", id, description, password: true });
    expect(again.json()).toEqual({
      inputs: [
        { id: "mine", type: "promptString", description: "Mine" },
        asked("targeting-api-key", "TARGETING_API_KEY"),
        asked("event-app-key", "EVENT_APP_KEY"),
      ],
      servers: {
        targeting: {
          type: "stdio",
          ...PLAIN,
          env: {
            ...ADDRESSES,
            TARGETING_API_KEY: "$" + "{input:targeting-api-key}",
            EVENT_APP_KEY: "$" + "{input:event-app-key}",
          },
        },
      },
    });
    expect(said).toContain("VS Code asks for TARGETING_API_KEY");
    expect(`${again.said}${again.text}`).not.toContain("the-secret");
  });
});

describe("what is there already", () => {
  test.each([
    ["vscode", '{ "servers": {} ', "not valid JSON"],
    ["cursor", "[]", "one JSON object"],
    ["cursor", '{"mcpServers": 5}', "is not an object"],
    ["vscode", '{"inputs": {}}', "not a list of objects"],
  ] as const)("%s with %j is left alone, and the entry is shown", async (host, content, why) => {
    const refused = setup({ host, before: content, environment: { ...ADDRESSES, ...KEYS }, agreed: true });
    await expect(refused).rejects.toThrow(SettingsError);
    await expect(refused).rejects.toThrow(why);
    await expect(refused).rejects.toThrow("targeting-mcp");
    await expect(refused).rejects.not.toThrow("the-secret");
  });
});

test("paths are written as they are understood here; what the server would not take is refused", async () => {
  const { json } = await setup({ host: "cursor", flags: { "allowed-dirs": "some-folder" }, agreed: true });
  expect(json().mcpServers.targeting.env).toEqual({ TARGETING_MCP_ALLOWED_DIRS: resolve("some-folder") });
  await expect(setup({ host: "cursor", flags: { mode: "lively" }, agreed: true })).rejects.toThrow("must be one of");
});

describe("the command", () => {
  test.each([
    [[], "setup needs a host. The hosts are claude-desktop, claude-code, vscode, cursor, codex, gemini; "],
    [["emacs"], 'there is no host "emacs"'],
    [["cursor", "more"], "unexpected argument"],
  ])("%j", async (args, sentence) => {
    const refused = { code: 2, stderr: expect.stringContaining(sentence) };
    expect(await runCommand(["setup", ...args])).toMatchObject(refused);
  });
});

describe("what is told at the end", () => {
  test("hosts of which something is on this machine", async () => {
    const home = mkdtempSync(join(tmpdir(), "targeting-mcp-home-"));
    const said = async () => (await runCommand(["setup"], { HOME: home, USERPROFILE: home, PATH: "" })).stderr;
    expect(await said()).toContain("none was found on this machine");
    mkdirSync(join(home, ".cursor"));
    writeFileSync(join(home, ".claude.json"), "{}");
    expect(await said()).toContain("found on this machine: claude-code, cursor");
    const fresh = mkdtempSync(join(tmpdir(), "targeting-mcp-home-"));
    expect(await runCommand(["setup", "cursor", "--yes"], { HOME: fresh, USERPROFILE: fresh })).toMatchObject({
      code: 0,
      text: expect.stringContaining("Cursor was not found on this machine"),
    });
  });

  test("nothing set: nothing is missing to try it, and what to ask", async () => {
    const { said } = await setup({ host: "gemini", agreed: true });
    expect(said).toContain("You can try the server now: it uses a sandbox with the data of a small shop");
    expect(said).toContain('Then ask: "Which targetings are there, and what is in them?"');
    expect(said).toContain("starts no server in a folder that it does not trust");
  });

  test("an address whose key is nowhere: what is missing, and where", async () => {
    const { said } = await setup({ host: "cursor", environment: ADDRESS, agreed: true });
    expect(said).toContain("Not set in this terminal: TARGETING_API_KEY. Calls report each key that Cursor lacks.");
    expect(said).toContain('Then ask: "What is in the targeting 01…?"');
    const given = await setup({ host: "cursor", environment: { ...ADDRESSES, ...KEYS }, agreed: true });
    expect(given.said).not.toContain("Missing");
  });

  test("only events: what to ask then", async () => {
    const environment = { EVENT_API_URL: "https://events.example.com", EVENT_APP_KEY: KEYS.EVENT_APP_KEY };
    const { said } = await setup({ host: "cursor", environment, agreed: true });
    expect(said).toContain('Then ask: "Which events can I send');
  });

  test.skipIf(process.platform === "win32")("a host's own command, where it is found", async () => {
    const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-path-"));
    writeFileSync(join(folder, "claude"), "#!/bin/sh\n", { mode: 0o755 });
    const found = await setup({ host: "claude-code", environment: { PATH: folder, ...ADDRESS }, agreed: true });
    expect(found.said).toContain(
      "claude mcp add --scope user targeting --env 'TARGETING_API_KEY=$" +
        "{TARGETING_API_KEY:-}' " +
        "--env TARGETING_API_URL=https://api.example.com -- npx -y targeting-mcp",
    );
    const absent = await setup({ host: "claude-code", environment: { PATH: "" }, agreed: true });
    expect(absent.said).not.toContain("claude mcp add");
  });

  test("VS Code: its questions go with the entry that asked them, and others stay", async () => {
    const mine = { id: "mine", type: "promptString", description: "Mine" };
    const { text } = await setup({
      host: "vscode",
      before: JSON.stringify({ inputs: [mine], servers: { other: {} } }),
      environment: { ...ADDRESSES, ...KEYS },
      agreed: true,
    });
    const after: unknown = JSON.parse(HOSTS.vscode?.list.without(text ?? "") ?? "");
    expect(after).toEqual({ inputs: [mine], servers: { other: {} } });
  });
});

describe("folders that may be read", () => {
  const folders = ["Downloads", "Documents"];

  test("are asked for: those of the platform that are there", async () => {
    const made = await setup({ host: "cursor", folders, answers: [true, false, true] });
    const { home, asked } = made;
    expect(asked).toEqual([
      `May files in ${join(home, "Downloads")} be read, and new ones be saved there?`,
      `May files in ${join(home, "Documents")} be read, and new ones be saved there?`,
      "Write this?",
    ]);
    expect(made.json().mcpServers.targeting.env).toEqual({ TARGETING_MCP_ALLOWED_DIRS: join(home, "Downloads") });
    expect(made.said).not.toContain("No folder is allowed");
    const none = await setup({ host: "cursor", folders: ["Downloads"], answers: [false, true] });
    expect(none.said).toContain(`targeting-mcp setup cursor --allowed-dirs="${join(none.home, "Downloads")}"`);
  });

  test("are not asked for where they are given, in the entry already, or nobody can answer", async () => {
    const given = await setup({ host: "cursor", folders, flags: { "allowed-dirs": "/srv/sheets" }, answers: [true] });
    expect(given.asked).toEqual(["Write this?"]);
    expect(given.json().mcpServers.targeting.env).toEqual({ TARGETING_MCP_ALLOWED_DIRS: resolve("/srv/sheets") });
    const env = { TARGETING_MCP_ALLOWED_DIRS: "/srv/old" };
    const before = JSON.stringify({ mcpServers: { targeting: { ...PLAIN, env } } });
    const held = await setup({ host: "cursor", folders, before, answers: [true] });
    expect(held.asked).toEqual([]);
    expect(held.json().mcpServers.targeting.env).toEqual(env);
    const alone = await setup({ host: "cursor", folders, agreed: true });
    expect(alone.said).toContain("No folder is allowed, so files cannot be read or saved.");
  });
});
