import { access, constants } from "node:fs/promises";
import { dirname, posix, win32 } from "node:path";
import { undefinedIf } from "../platform/files.ts";
import type { Platform } from "../settings/settings.ts";
import { ENTRY_NAME, type Entry, inputId, isFileError, isThere, type ServerList } from "./config-file.ts";
import { jsonList, tomlList } from "./edit-files.ts";

export interface Host {
  readonly title: string;
  readonly file: (platform: Platform) => string;
  readonly instead?: (platform: Platform) => string | undefined;
  readonly reference: (variable: string) => string;
  /** Where the host gets keys: from its environment, from a question, or from the file, which the person edits. */
  readonly keysFrom: "environment" | "question" | "file";
  readonly list: ServerList;
  readonly own?: OwnCommand;
  /** For hosts that start servers only in trusted folders: what the person must do. */
  readonly trust?: string;
}

/** The host's own program. `add` returns the arguments that add an entry; undefined if it cannot. */
interface OwnCommand {
  readonly program: string;
  readonly add: (entry: Entry) => readonly string[] | undefined;
}

const variables = (flag: string, values: Entry["values"]): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) => [flag, `${name}=${value}`]);

/** For hosts that read only plain JSON. Most of them accept no byte order mark either. */
const JSON_ALONE = { comments: false, trailingCommas: false } as const;
const WITH_COMMENTS = { comments: true, trailingCommas: false } as const;

const CLAUDE_DESKTOP = ["Claude", "claude_desktop_config.json"];

export const OTHER_WORDS: Readonly<Record<string, string>> = { claude: "claude-code", code: "vscode" };

export const HOSTS: Readonly<Record<string, Host>> = {
  "claude-desktop": {
    title: "Claude Desktop",
    file: (platform) => inApplicationFolder(platform, CLAUDE_DESKTOP),
    instead: (platform) => (platform.platform === "win32" ? inStoreFolder(platform, CLAUDE_DESKTOP) : undefined),
    reference: (variable) => `\${${variable}}`,
    keysFrom: "file",
    list: jsonList("mcpServers", { title: "Claude Desktop", reads: JSON_ALONE }),
  },
  "claude-code": {
    title: "Claude Code",
    file: (platform) => inOwnFolder(platform, "CLAUDE_CONFIG_DIR", [], ".claude.json"),
    // With the empty default in the reference, a variable may be unset. Without it, that would be an error.
    reference: (variable) => `\${${variable}:-}`,
    keysFrom: "environment",
    list: jsonList("mcpServers", { title: "Claude Code", reads: JSON_ALONE, more: { type: "stdio" } }),
    own: {
      program: "claude",
      add: ({ command, args, values, references }) => {
        const settings = variables("--env", { ...references, ...values });
        return ["mcp", "add", "--scope", "user", ENTRY_NAME, ...settings, "--", command, ...args];
      },
    },
  },
  vscode: {
    title: "VS Code",
    file: (platform) => inApplicationFolder(platform, ["Code", "User", "mcp.json"]),
    reference: (variable) => `\${input:${inputId(variable)}}`,
    keysFrom: "question",
    list: jsonList("servers", {
      title: "VS Code",
      reads: { comments: true, trailingCommas: true },
      more: { type: "stdio" },
      asks: true,
    }),
    trust: "VS Code asks whether you trust the server at its first start, and starts no server in Restricted Mode.",
  },
  cursor: {
    title: "Cursor",
    file: (platform) => inHome(platform, [".cursor", "mcp.json"]),
    reference: (variable) => `\${env:${variable}}`,
    keysFrom: "environment",
    list: jsonList("mcpServers", { title: "Cursor", reads: WITH_COMMENTS }),
  },
  codex: {
    title: "Codex",
    file: (platform) => inOwnFolder(platform, "CODEX_HOME", [".codex"], "config.toml"),
    // Codex does not read this reference: the entry lists the variable's name, and Codex passes its value on.
    reference: (variable) => `\${${variable}}`,
    keysFrom: "environment",
    list: tomlList,
    own: {
      program: "codex",
      add: ({ command, args, values, references }) => {
        // This command cannot pass variables on, so it cannot add an entry that refers to variables.
        if (Object.keys(references).length > 0) return undefined;
        return ["mcp", "add", ENTRY_NAME, ...variables("--env", values), "--", command, ...args];
      },
    },
  },
  gemini: {
    title: "Gemini CLI",
    file: (platform) => inHome(platform, [".gemini", "settings.json"]),
    reference: (variable) => `\${${variable}}`,
    keysFrom: "environment",
    list: jsonList("mcpServers", { title: "Gemini CLI", reads: WITH_COMMENTS }),
    own: {
      program: "gemini",
      add: ({ command, args, values, references }) => {
        const settings = variables("--env", { ...references, ...values });
        return ["mcp", "add", "--scope", "user", ...settings, ENTRY_NAME, command, "--", ...args];
      },
    },
    trust:
      "Gemini CLI starts no server in a folder that it does not trust: it asks when you first start it there, and " +
      "`gemini mcp list` says Disabled until then.",
  },
};

function pathsOf({ platform }: Platform) {
  return platform === "win32" ? win32 : posix;
}

function inHome(platform: Platform, parts: readonly string[]): string {
  return pathsOf(platform).join(platform.home, ...parts);
}

/** Returns the path of a file in the host's folder: in the home folder, unless `variable` names another. */
function inOwnFolder(platform: Platform, variable: string, parts: readonly string[], file: string): string {
  const folder = platform.environment[variable]?.trim();
  return folder ? pathsOf(platform).join(folder, file) : inHome(platform, [...parts, file]);
}

/** Returns the path of a file of Claude Desktop from the Microsoft Store (MSIX), in the folder of the package. */
function inStoreFolder({ environment, home }: Platform, parts: readonly string[]): string {
  const local = environment.LOCALAPPDATA ?? win32.join(home, "AppData", "Local");
  return win32.join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", ...parts);
}

function inApplicationFolder(platform: Platform, parts: readonly string[]): string {
  const { environment } = platform;
  const { join } = pathsOf(platform);
  if (platform.platform === "win32")
    return join(environment.APPDATA ?? join(platform.home, "AppData", "Roaming"), ...parts);
  if (platform.platform === "darwin") return inHome(platform, ["Library", "Application Support", ...parts]);
  const given = environment.XDG_CONFIG_HOME;
  return join(given !== undefined && posix.isAbsolute(given) ? given : join(platform.home, ".config"), ...parts);
}

export async function hostsFound(platform: Platform): Promise<readonly string[]> {
  const found = await Promise.all(
    Object.entries(HOSTS).map(async ([word, host]) => ((await isHere(host, platform)) ? [word] : [])),
  );
  return found.flat();
}

export async function isHere(host: Host, platform: Platform): Promise<boolean> {
  const file = host.file(platform);
  const folder = dirname(file);
  if ((await isSeen(file)) || (folder !== platform.home && (await isSeen(folder)))) return true;
  return host.own !== undefined && (await programFound(host.own.program, platform));
}

async function isSeen(path: string): Promise<boolean> {
  return (await undefinedIf(isFileError, isThere(path))) ?? false;
}

export async function programFound(
  program: string,
  { platform, environment }: Platform,
  canStart: (file: string) => Promise<boolean> = isStartable,
): Promise<boolean> {
  const isWindows = platform === "win32";
  const { delimiter, join } = isWindows ? win32 : posix;
  const folders = (environment.PATH ?? environment.Path ?? "").split(delimiter).filter((folder) => folder !== "");
  const endings = isWindows ? (environment.PATHEXT ?? ".COM;.EXE;.BAT;.CMD").split(";") : [""];
  const files = folders.flatMap((folder) => endings.map((ending) => join(folder, program + ending)));
  const there = await Promise.all(files.map((file) => canStart(file)));
  return there.includes(true);
}

function isStartable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}
