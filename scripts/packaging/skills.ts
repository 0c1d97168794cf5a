import { readdirSync, readFileSync } from "node:fs";
import packageJson from "../../package.json" with { type: "json" };

const FOLDER = new URL("../../skills/", import.meta.url);

/** Every skill of the repository by its name: the text of its SKILL.md. */
function skillFiles(): ReadonlyMap<string, string> {
  const names = readdirSync(FOLDER).sort();
  return new Map(names.map((name) => [name, readFileSync(new URL(`${name}/SKILL.md`, FOLDER), "utf8")]));
}

/** The text of a skill without its head. Throws a RangeError where there is no such skill. */
export function skillBody(name: string): string {
  const text = skillFiles().get(name);
  if (text === undefined) throw new RangeError(`there is no skill ${name}`);
  return text.replace(/^---\n[\s\S]*?\n---\n+/, "");
}

/** The module with the text of every skill, from which the server serves them. */
export function skillsModule(): string {
  const entries = [...skillFiles()].map(([name, text]) => {
    const literal = text.replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
    return `  ${JSON.stringify(name)}: \`${literal}\`,\n`;
  });
  return [
    "/** The skills by name. Made from the files of `skills/` by `npm run docs`. */\n",
    `export const SKILL_TEXTS: Readonly<Record<string, string>> = {\n${entries.join("")}};\n`,
  ].join("");
}

/** The manifest of the plugin for Claude Code, which this repository is: its skills, and this server. */
export function pluginJson(): Readonly<Record<string, unknown>> {
  const { name, version, author, license, keywords } = packageJson;
  return {
    name,
    version,
    description:
      "Edits context targetings and sends conversion events through the MCP server targeting-mcp, with skills for " +
      "imports, cleaning up and tracking.",
    author: { name: author },
    license,
    keywords,
    skills: "./skills/",
    mcpServers: { targeting: { command: "npx", args: ["-y", name] } },
  };
}
