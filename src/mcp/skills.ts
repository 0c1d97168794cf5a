import type { McpServer } from "@modelcontextprotocol/server";
import type { Skill, SkillSource } from "@modelcontextprotocol/server/ext/skills";
import { once } from "../tools/define-tool.ts";

/** The skills of this server, ready to be served. */
export interface Skills {
  /** Serves them on a server that is not connected yet. */
  readonly attach: (server: McpServer) => void;
}

/**
 * Loads the skills: the files of `skills/` at the root of the repository, served through the SDK's extension (SEP-2640).
 * It is loaded here alone, so that commands that serve no MCP do without it.
 */
export async function loadSkills(): Promise<Skills> {
  const { SkillsExtension, skillEntry } = await import("@modelcontextprotocol/server/ext/skills");
  return new SkillsExtension({ source: sourceOf(skillEntry), strict: true });
}

/** A skill with the text of its file. */
interface ServedSkill {
  readonly skill: Skill;
  readonly text: string;
}

const FILE = "SKILL.md";
const MARKDOWN = "text/markdown";

/** The skills as they are asked for. Made at the start, their digests would take a twentieth of the start. */
function sourceOf(entryOf: (name: string, files: Record<string, string>) => Promise<Skill>): SkillSource {
  const all = once(async (): Promise<readonly ServedSkill[]> => {
    const { SKILL_TEXTS } = await import("./skill-texts.ts");
    const texts = Object.entries(SKILL_TEXTS);
    return Promise.all(texts.map(async ([name, text]) => ({ skill: await entryOf(name, { [FILE]: text }), text })));
  });
  const at = async (uri: string): Promise<ServedSkill | undefined> =>
    (await all()).find(({ skill }) => skill.uri === uri);
  return {
    list: async () => ({ skills: (await all()).map(({ skill }) => skill) }),
    get: async (uri) => (await at(uri))?.skill,
    async read(uri) {
      const found = await at(uri);
      return found === undefined ? undefined : { text: found.text, mimeType: MARKDOWN };
    },
    async readDirectory(uri) {
      const found = await at(`${uri}/${FILE}`);
      return found === undefined ? undefined : { resources: [{ ...fileOf(found), name: FILE }] };
    },
    listResources: async () =>
      (await all()).map((one) => {
        const { name, description } = one.skill.frontmatter;
        return { ...fileOf(one), name, description };
      }),
  };
}

/** The file of a skill as a resource without a name. */
function fileOf({ skill, text }: ServedSkill) {
  return { uri: skill.uri, mimeType: MARKDOWN, size: Buffer.byteLength(text) };
}
