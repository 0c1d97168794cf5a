import packageJson from "../../package.json" with { type: "json" };

/** Returns the manifest of this repository as a plugin for Claude Code: its skills, and this server. */
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
