// Checks with real hosts (Claude Code, Codex and Gemini CLI) that they accept the configuration that `setup` writes:
// `npm run test:hosts`. The hosts come from the package registry, each with its own home folder. The server is tested
// from this clone and from the published archive. A host that cannot be installed here is reported as skipped. Nothing
// is sent to a model, and no account is needed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { HOSTS } from "../../src/setup/hosts.ts";
import { entryOf } from "../../src/setup/settings.ts";
import { npm, packPublished } from "../packaging/published.ts";
import { codexServers } from "./codex.ts";
import { inFolder } from "./node24.ts";

const LONGEST_MS = 120_000;

/** A host as these checks use it. */
interface RealHost {
  readonly word: keyof typeof PACKAGES;
  /** Returns the state of the server as the host prints it. Throws if it is not connected. */
  readonly check: (at: Place) => Promise<string>;
}

/** A host's command, with a home folder and the folder in which it is started. */
interface Place {
  readonly program: string;
  readonly home: string;
  readonly work: string;
}

const PACKAGES = {
  "claude-code": { spec: "@anthropic-ai/claude-code@2.1.330", program: "claude" },
  codex: { spec: "@openai/codex@0.169.0", program: "codex" },
  gemini: { spec: "@google/gemini-cli@0.61.0", program: "gemini" },
} as const;

const REAL_HOSTS: readonly RealHost[] = [
  { word: "claude-code", check: (at) => serverLine(at, /^targeting: .*Connected$/m) },
  {
    word: "codex",
    check: async (at) => {
      await serverLine(at, /^targeting .*enabled/m);
      return codexServers(at.program, environmentOf(at), "targeting");
    },
  },
  {
    word: "gemini",
    check: async (at) => {
      // Until the folder is trusted, the host must show the server as disabled, as `setup` says. The next lines trust
      // the folder.
      await serverLine(at, /targeting: .*Disabled/);
      writeFileSync(join(at.home, ".gemini", "trustedFolders.json"), JSON.stringify({ [at.work]: "TRUST_FOLDER" }));
      return serverLine(at, /targeting: .*Connected$/m);
    },
  },
];

/** Settings with a value, and settings with a key from the environment. */
const SETTINGS = ["--targeting-api-url", "https://api.example.com", "--read-only"];
const FLAGS = new Map([
  ["targeting-api-url", "https://api.example.com"],
  ["read-only", "on"],
]);

function environmentOf({ home }: Place): Record<string, string> {
  const { PATH = "" } = process.env;
  return { PATH, HOME: home, USERPROFILE: home, NO_COLOR: "1" };
}

/** Runs a program to its end. Returns what it printed on both streams. Throws if it fails. */
async function run(program: string, args: readonly string[], at: Place): Promise<string> {
  const child = spawn(program, [...args], {
    cwd: at.work,
    env: environmentOf(at),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LONGEST_MS,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${String(code)}:\n${said}`);
  return said;
}

/** Returns the line of the host's own list of servers that matches. Throws if there is none. */
async function serverLine(at: Place, expected: RegExp): Promise<string> {
  const said = await run(at.program, ["mcp", "list"], at);
  const [line] = expected.exec(said) ?? [];
  if (line === undefined) throw new Error(`the host does not list the server as expected:\n${said}`);
  return line.trim();
}

function placeIn(folder: string, name: string, program: string): Place {
  const home = join(folder, name);
  const work = join(home, "work");
  for (const made of [work, join(home, ".codex"), join(home, ".gemini")]) mkdirSync(made, { recursive: true });
  return { program, home, work };
}

/** Returns this server's entry in a host's configuration file. */
function entryAt(word: RealHost["word"], home: string) {
  const host = HOSTS[word];
  const file = host?.file({ platform: process.platform, home, environment: {} }) ?? "";
  return host?.list.entryIn(readFileSync(file, "utf8"));
}

/** Fields that only `setup` writes: a host's own command has no arguments for them. */
const ONLY_OURS = ["startup_timeout_sec", "env_vars"];

/** Throws if the host's own command writes a different entry than `setup` does. */
async function compare({ word }: RealHost, ours: Place, theirs: Place, main: string): Promise<void> {
  await run(process.execPath, [main, "setup", word, "--yes", ...SETTINGS], ours);
  const host = HOSTS[word];
  const input = { flags: FLAGS, environment: {}, platform: process.platform, home: theirs.home };
  if (host?.own === undefined) throw new Error(`the host ${word} has no command that adds a server`);
  const entry = entryOf(host, input, { command: process.execPath, args: [main] });
  // If the host's own command has no arguments for keys, compares everything else.
  const args = host.own.add(entry) ?? host.own.add({ ...entry, references: {} }) ?? [];
  await run(theirs.program, args, theirs);
  const [mine, other] = [entryAt(word, ours.home), entryAt(word, theirs.home)];
  const comparable = Object.fromEntries(Object.entries(mine ?? {}).filter(([name]) => !ONLY_OURS.includes(name)));
  if (!isDeepStrictEqual(structuredClone(comparable), structuredClone({ ...other }))) {
    throw new Error(`setup writes ${JSON.stringify(mine)}, and the host's own command ${JSON.stringify(other)}`);
  }
}

/** Installs a host. Returns its command, or why it is not available here. */
async function install({ word }: RealHost, folder: string): Promise<{ program: string } | { absent: string }> {
  const { spec, program } = PACKAGES[word];
  const prefix = join(folder, word);
  mkdirSync(prefix, { recursive: true });
  const { code } = await npm(
    ["install", "--prefix", prefix, "--no-audit", "--no-fund", "--loglevel=error", spec],
    prefix,
  );
  if (code !== 0) return { absent: `${spec} cannot be installed here` };
  const path = join(prefix, "node_modules", ".bin", program);
  try {
    await run(path, ["--version"], placeIn(prefix, "first", path));
    return { program: path };
  } catch {
    return { absent: `${spec} does not start on this machine` };
  }
}

await inFolder(async (folder) => {
  const { filename } = await packPublished(folder);
  const prefix = join(folder, "installed");
  mkdirSync(prefix);
  await npm(["install", "--prefix", prefix, "--no-audit", "--no-fund", join(folder, filename)], folder);
  const mains = {
    clone: join(import.meta.dirname, "..", "..", "dist", "main.js"),
    archive: join(prefix, "node_modules", "targeting-mcp", "dist", "main.js"),
  };
  let passed = 0;
  let skipped = 0;
  for (const host of REAL_HOSTS) {
    const found = await install(host, folder);
    if ("absent" in found) {
      console.log(`skipped  ${host.word}: ${found.absent}`);
      skipped += 1;
      continue;
    }
    for (const [origin, main] of Object.entries(mains)) {
      const at = placeIn(folder, `${host.word}-${origin}`, found.program);
      await run(process.execPath, [main, "setup", host.word, "--yes"], at);
      const said = await host.check(at);
      await run(process.execPath, [main, "setup", host.word, "--remove", "--yes"], at);
      if (entryAt(host.word, at.home) !== undefined) throw new Error(`${host.word} still has the entry`);
      console.log(`ok       ${host.word}, from the ${origin}: ${said.replaceAll(dirname(main), "…")}`);
      passed += 1;
    }
    const [ours, theirs] = ["ours", "theirs"].map((name) => placeIn(folder, `${host.word}-${name}`, found.program));
    if (ours !== undefined && theirs !== undefined) await compare(host, ours, theirs, mains.clone);
    console.log(`ok       ${host.word}: its own command writes the same entry`);
    passed += 1;
    if (host.word === "claude-code") {
      const root = join(import.meta.dirname, "..", "..");
      await run(found.program, ["plugin", "validate", root], placeIn(folder, "claude-code-plugin", found.program));
      console.log("ok       claude-code: this repository is a plugin, by the host's own validation");
      passed += 1;
    }
  }
  console.log(`${passed} passed, 0 failed, ${skipped} skipped`);
});
