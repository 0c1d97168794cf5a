import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { runCommand } from "./server-process.ts";

const FILES = { cursor: ".cursor/mcp.json", codex: ".codex/config.toml" } as const;

/** A home folder with or without the configuration file of a host. */
export type Home = ReturnType<typeof home>;

/** Creates a home folder with the configuration file of a host; without `content`, only the folder of that file. */
export function home(content?: string | Buffer, host: keyof typeof FILES = "cursor") {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-home-"));
  const file = join(folder, FILES[host]);
  mkdirSync(dirname(file));
  if (content !== undefined) writeFileSync(file, content);
  const beside = () => readdirSync(dirname(file)).filter((name) => name !== basename(file));
  return {
    host,
    file,
    environment: { HOME: folder, USERPROFILE: folder, TARGETING_MCP_STATE_DIR: "", TARGETING_MCP_SANDBOX_SEED: "" },
    text: () => readFileSync(file, "utf8"),
    entry: () => JSON.parse(readFileSync(file, "utf8")).mcpServers.targeting,
    beside,
    backup: () => {
      const [name] = beside().filter((one) => one.endsWith(".backup"));
      return name === undefined ? undefined : readFileSync(join(dirname(file), name), "utf8");
    },
  };
}

/** Where hosts keep their configuration files on Linux, relative to the home folder. */
const HOST_FILES: Readonly<Record<string, string>> = {
  "claude-desktop": ".config/Claude/claude_desktop_config.json",
  "claude-code": ".claude.json",
  claude: ".claude.json",
  gemini: ".gemini/settings.json",
  cursor: FILES.cursor,
  vscode: ".config/Code/User/mcp.json",
};

/** Creates a home folder for a host, with the folder of its configuration file, but not the file. Only for Linux. */
export function homeOf(host: string) {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-home-"));
  const file = join(folder, HOST_FILES[host] ?? "");
  mkdirSync(dirname(file), { recursive: true });
  return {
    file,
    environment: { HOME: folder, TARGETING_MCP_STATE_DIR: "", TARGETING_MCP_SANDBOX_SEED: "" },
    text: () => readFileSync(file, "utf8"),
    write: (content: string) => writeFileSync(file, content),
  };
}

/** Runs the built `setup --yes` for the host of a home folder. */
export async function runSetup({ host, environment }: Home, args: readonly string[] = [], more = {}) {
  const ended = await runCommand(["setup", host, "--yes", ...args], { ...environment, ...more });
  return { code: ended.code, said: ended.text, refused: ended.stderr };
}
