import { dirname, isAbsolute } from "node:path";

/** Hosts by the names that their clients give, as `setup` and people know them. */
const HOSTS: Readonly<Record<string, readonly [word: string, title: string]>> = {
  "claude-ai": ["claude-desktop", "Claude Desktop"],
  "claude-code": ["claude-code", "Claude Code"],
  "Visual Studio Code": ["vscode", "VS Code"],
  "cursor-vscode": ["cursor", "Cursor"],
  "codex-mcp-client": ["codex", "Codex"],
  "gemini-cli-mcp-client": ["gemini", "Gemini CLI"],
};

/** Who asked for a file outside of the allowed folders, and how. */
export interface FolderAsked {
  /** The name that the client gave; undefined over HTTP, where folders belong to a token. */
  readonly client: string | undefined;
  /** The path that was asked for. */
  readonly path: string;
  readonly allowedDirs: readonly string[];
}

/** What a person does so that a file may be used, for the host that asked. */
export function allowingWords({ client, path, allowedDirs }: FolderAsked, delimiter: string): string {
  if (client === undefined) {
    return "Over HTTP each token has its folders: `folders` of its entry in TARGETING_MCP_ACCESS_FILE. Or give the data in the call.";
  }
  const folder = isAbsolute(path) ? dirname(path) : "FOLDER";
  const folders = [...allowedDirs, folder].join(delimiter);
  const host = Object.hasOwn(HOSTS, client) ? HOSTS[client] : undefined;
  if (host === undefined) {
    return `A person allows a folder by TARGETING_MCP_ALLOWED_DIRS=${folders} in this server's entry of the host. Or give the data in the call.`;
  }
  const [word, title] = host;
  const field = word === "claude-desktop" ? " (of the extension: Settings, Extensions, Allowed folders)" : "";
  return `A person allows it by: targeting-mcp setup ${word} --allowed-dirs="${folders}"${field}, and restarts ${title}. Or give the data in the call.`;
}
