import { posix, win32 } from "node:path";
import type { Platform } from "../settings/state-folder.ts";
import { type Entry, jsonConfiguration, tomlConfiguration } from "./setup-entry.ts";

/** A program that starts MCP servers, and where it keeps the list of them. */
export interface Host {
  readonly title: string;
  readonly file: (platform: Platform) => string;
  /** What stands in the file for the value of a variable of the person's own environment. */
  readonly reference: (variable: string) => string;
  /** Whether the host puts the value in place of a reference; where not, the person has to fill it in. */
  readonly fillsReferences: boolean;
  /** The content of the file with the entry in it. Throws a SettingsError where that cannot be done safely. */
  readonly withEntry: (content: string, entry: Entry) => string;
}

/** Every host that `setup` knows, by the word for it. */
export const HOSTS: Readonly<Record<string, Host>> = {
  "claude-desktop": {
    title: "Claude Desktop",
    file: (platform) => inApplicationFolder(platform, ["Claude", "claude_desktop_config.json"]),
    reference: (variable) => `\${${variable}}`,
    fillsReferences: false,
    withEntry: jsonConfiguration("mcpServers"),
  },
  "claude-code": {
    title: "Claude Code",
    file: (platform) => inHome(platform, [".claude.json"]),
    // An empty text counts as not set; a reference without a default to fall back on would be an error there.
    reference: (variable) => `\${${variable}:-}`,
    fillsReferences: true,
    withEntry: jsonConfiguration("mcpServers", { type: "stdio" }),
  },
  vscode: {
    title: "VS Code",
    file: (platform) => inApplicationFolder(platform, ["Code", "User", "mcp.json"]),
    reference: (variable) => `\${env:${variable}}`,
    fillsReferences: true,
    withEntry: jsonConfiguration("servers", { type: "stdio" }),
  },
  cursor: {
    title: "Cursor",
    file: (platform) => inHome(platform, [".cursor", "mcp.json"]),
    reference: (variable) => `\${env:${variable}}`,
    fillsReferences: true,
    withEntry: jsonConfiguration("mcpServers"),
  },
  codex: {
    title: "Codex",
    file: (platform) => {
      const folder = platform.environment.CODEX_HOME;
      return folder ? pathsOf(platform).join(folder, "config.toml") : inHome(platform, [".codex", "config.toml"]);
    },
    // The entry names these variables, and Codex hands their values on.
    reference: (variable) => `\${${variable}}`,
    fillsReferences: true,
    withEntry: tomlConfiguration,
  },
  gemini: {
    title: "Gemini CLI",
    file: (platform) => inHome(platform, [".gemini", "settings.json"]),
    reference: (variable) => `\${${variable}}`,
    fillsReferences: true,
    withEntry: jsonConfiguration("mcpServers"),
  },
};

function pathsOf({ platform }: Platform) {
  return platform === "win32" ? win32 : posix;
}

function inHome(platform: Platform, parts: readonly string[]): string {
  return pathsOf(platform).join(platform.home, ...parts);
}

/** The folder in which desktop programs of a platform keep their configuration. */
function inApplicationFolder(platform: Platform, parts: readonly string[]): string {
  const { environment } = platform;
  const { join } = pathsOf(platform);
  if (platform.platform === "win32")
    return join(environment.APPDATA ?? join(platform.home, "AppData", "Roaming"), ...parts);
  if (platform.platform === "darwin") return inHome(platform, ["Library", "Application Support", ...parts]);
  const given = environment.XDG_CONFIG_HOME;
  return join(given !== undefined && posix.isAbsolute(given) ? given : join(platform.home, ".config"), ...parts);
}
