import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parse } from "smol-toml";
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { packPublished } from "../../scripts/packaging/published.ts";
import { startRegistry } from "../support/registry.ts";
import { OPENING, startProgram } from "../support/server-process.ts";

// Installs the package as people do. `setup` then writes a command, and exactly that command is started.

const ON_WINDOWS = process.platform === "win32";

/** Where each host keeps its configuration on Linux, below the home folder. */
const FILES = {
  "claude-desktop": ".config/Claude/claude_desktop_config.json",
  "claude-code": ".claude.json",
  vscode: ".config/Code/User/mcp.json",
  cursor: ".cursor/mcp.json",
  codex: ".codex/config.toml",
  gemini: ".gemini/settings.json",
} as const;
type HostName = keyof typeof FILES;
const HOSTS = ["claude-desktop", "claude-code", "vscode", "cursor", "codex", "gemini"] as const satisfies HostName[];

const entry = z.looseObject({ command: z.string(), args: z.array(z.string()) });
const lists = z.looseObject({
  mcpServers: z.looseObject({ targeting: entry }).optional(),
  servers: z.looseObject({ targeting: entry }).optional(),
  mcp_servers: z.looseObject({ targeting: entry }).optional(),
});

const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-installed-"));
const cache = join(folder, "cache");
const archive = { path: "" };

/** Runs a program until it ends, without any settings of this machine. Returns what it printed. */
async function run(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const env = { PATH: process.env.PATH ?? "", HOME: folder, USERPROFILE: folder, npm_config_cache: cache };
  const child = spawn(program, [...args], { env: { ...env, ...environment }, cwd: folder, shell: ON_WINDOWS });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${code}: ${said}`);
  return said;
}

const QUIET = ["--offline", "--no-audit", "--no-fund", "--ignore-scripts"] as const;

beforeAll(async () => {
  archive.path = join(folder, (await packPublished(folder)).filename);
});

/** Returns our entry in a host's configuration file. */
function entryIn(home: string, host: HostName) {
  const text = readFileSync(join(home, FILES[host]), "utf8");
  const { mcpServers, servers, mcp_servers } = lists.parse(host === "codex" ? parse(text) : JSON.parse(text));
  const found = (mcpServers ?? servers ?? mcp_servers)?.targeting;
  if (found === undefined) throw new Error(`no entry in ${text}`);
  return found;
}

/** Creates a home folder with a folder for each host. */
async function home(): Promise<string> {
  const made = mkdtempSync(join(folder, "home-"));
  for (const file of Object.values(FILES)) await mkdir(dirname(join(made, file)), { recursive: true });
  return made;
}

/** Starts a command as a host does. Returns the names of its tools. */
async function toolsOf({ command, args }: z.infer<typeof entry>, environment: Readonly<Record<string, string>>) {
  // In this repository's folder, npx would use and build the package from there.
  const server = startProgram(command, args, environment, folder);
  for (const message of OPENING) server.send(message);
  expect(await server.answer("open")).toMatchObject({ result: { serverInfo: { name: "targeting-mcp" } } });
  server.send({ jsonrpc: "2.0", id: "tools", method: "tools/list" });
  const { result } = z
    .looseObject({ result: z.object({ tools: z.array(z.object({ name: z.string() })) }) })
    .parse(await server.answer("tools"));
  server.child.stdin.end();
  expect((await server.exited).code).toBe(0);
  return result.tools.map(({ name }) => name);
}

/** Hosts that were started from a desktop may have a PATH without Node. */
const WITHOUT_NODE = { PATH: join(folder, "nothing-here") };

describe.skipIf(ON_WINDOWS)("the command that setup writes starts the server", { timeout: 300_000 }, () => {
  test("installed from the archive into an empty folder", async () => {
    const prefix = join(folder, "local");
    await run("npm", ["install", "--prefix", prefix, ...QUIET, archive.path]);
    await checkHosts(join(prefix, "node_modules", ".bin", "targeting-mcp"));
  });

  test("installed from the archive for everybody", async () => {
    const prefix = join(folder, "global");
    await run("npm", ["install", "--global", "--prefix", prefix, ...QUIET, archive.path]);
    await checkHosts(join(prefix, "bin", "targeting-mcp"));
  });

  async function checkHosts(program: string): Promise<void> {
    const HOME = await home();
    for (const host of HOSTS) {
      await run(program, ["setup", host, "--yes"], { HOME });
      const written = entryIn(HOME, host);
      expect(written, host).toMatchObject({ command: process.execPath });
      expect(await toolsOf(written, WITHOUT_NODE), host).toContain("bulk_add_options");
    }
  }

  test("its pages link to files that it holds, and name the others as those of the repository", async () => {
    const prefix = join(folder, "pages");
    await run("npm", ["install", "--prefix", prefix, ...QUIET, archive.path]);
    const root = join(prefix, "node_modules", "targeting-mcp");
    const pages = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md"));
    const links = pages.flatMap((page) =>
      [...readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, link = ""]) => {
        return { page, link };
      }),
    );
    const own = links.filter(({ link }) => !link.startsWith("https://"));
    expect(own.length).toBeGreaterThan(25);
    expect(own.filter(({ page, link }) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
    const readme = readFileSync(join(root, "README.md"), "utf8");
    expect(readme).toContain("architecture (in the repository)");
  });

  test("run by npx from the archive", async () => {
    const HOME = await home();
    await run("npx", ["-y", "--offline", `--package=${archive.path}`, "targeting-mcp", "setup", "cursor", "--yes"], {
      HOME,
    });
    expect(await toolsOf(entryIn(HOME, "cursor"), WITHOUT_NODE)).toContain("bulk_add_options");
  });

  test("run by npx from a registry that has it", async () => {
    const HOME = await home();
    const registry = await startRegistry(archive.path);
    const environment = { HOME, npm_config_registry: registry, npm_config_cache: join(folder, "other-cache") };
    await run("npx", ["-y", "targeting-mcp", "setup", "cursor", "--yes"], environment);
    const written = entryIn(HOME, "cursor");
    expect(written).toMatchObject({ command: "npx", args: ["-y", "targeting-mcp"] });
    expect(await toolsOf(written, environment)).toContain("bulk_add_options");
  });
});
