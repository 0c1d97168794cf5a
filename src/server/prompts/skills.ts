import type { McpServer } from "@modelcontextprotocol/server";

/** The skills of this server, ready to be served. */
export interface Skills {
  /** Serves them on a server that is not connected yet. */
  readonly attach: (server: McpServer) => void;
}

/**
 * Loads the skills: the files of `skills/` at the root of the repository, served through the SDK's extension (SEP-2640).
 * Both are loaded here alone, so that commands that serve no MCP do without them.
 */
export async function loadSkills(): Promise<Skills> {
  const [{ memorySkillFiles, SkillsExtension }, { SKILL_TEXTS }] = await Promise.all([
    import("@modelcontextprotocol/server/ext/skills"),
    import("./skill-texts.ts"),
  ]);
  const files = Object.entries(SKILL_TEXTS).map(([name, text]) => [`${name}/SKILL.md`, text] as const);
  return SkillsExtension.load(memorySkillFiles(Object.fromEntries(files)), { strict: true });
}

/** What a person who chooses a skill as a prompt says to the model: its text without the head. */
export async function skillPrompt(name: string): Promise<string> {
  const { SKILL_TEXTS } = await import("./skill-texts.ts");
  return (SKILL_TEXTS[name] ?? "").replace(/^---\n[\s\S]*?\n---\n+/, "");
}
