import type { McpServer } from "@modelcontextprotocol/server";
import type { Skill, SkillSource } from "@modelcontextprotocol/server/ext/skills";
import { once } from "../tools/define-tool.ts";

export interface Skills {
  readonly attach: (server: McpServer) => void;
}

/** Serves `skills/` through an extension of the SDK (SEP-2640), which is imported only here. */
export async function loadSkills(): Promise<Skills> {
  const { SkillsExtension, skillEntry } = await import("@modelcontextprotocol/server/ext/skills");
  return new SkillsExtension({ source: sourceOf(skillEntry), strict: true });
}

interface ServedSkill {
  readonly skill: Skill;
  readonly text: string;
}

const FILE = "SKILL.md";
const MARKDOWN = "text/markdown";

/** Returns the source of the skills. Digests are computed on request, so that the server starts fast. */
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

function fileOf({ skill, text }: ServedSkill) {
  return { uri: skill.uri, mimeType: MARKDOWN, size: Buffer.byteLength(text) };
}
