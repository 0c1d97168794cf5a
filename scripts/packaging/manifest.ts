import packageJson from "../../package.json" with { type: "json" };
import { PROMPTS, promptText } from "../../src/mcp/prompts.ts";
import { everyTool } from "../../src/tools/registry.ts";
import { ASKED_SETTINGS, type AskedSetting, explained } from "./asked-settings.ts";

const TOOLS = await everyTool();

/** The prompts with their texts, with placeholders for the arguments. */
const MANIFEST_PROMPTS = await Promise.all(
  PROMPTS.map(async (prompt) => {
    const names = Object.keys(prompt.arguments ?? {});
    const placeholders = Object.fromEntries(names.map((one) => [one, `\${arguments.${one}}`]));
    return {
      name: prompt.name,
      description: prompt.description,
      arguments: names,
      text: await promptText(prompt, placeholders),
    };
  }),
);

/** Returns the manifest of the bundle (MCPB, manifest_version 0.3), generated from the tools and the settings. */
export function manifest() {
  const { name, version, description, license, engines } = packageJson;
  return {
    manifest_version: "0.3",
    name,
    display_name: "Targetings and events",
    version,
    description,
    author: { name: "The targeting-mcp authors" },
    license,
    keywords: ["advertising", "targeting", "conversion events", "bulk"],
    server: {
      type: "node",
      entry_point: "dist/main.js",
      mcp_config: {
        command: "node",
        // Settings with several values are arguments instead of variables: hosts replace a placeholder by a list of
        // values only if it is a whole argument.
        args: [`\${__dirname}/dist/main.js`, "stdio", ...ASKED_SETTINGS.filter(isList).map(placeholder)],
        env: Object.fromEntries(
          ASKED_SETTINGS.filter((asked) => !isList(asked)).map((asked) => [asked.setting.variable, placeholder(asked)]),
        ),
      },
    },
    tools: TOOLS.map((tool) => ({ name: tool.name, description: tool.description })),
    prompts: MANIFEST_PROMPTS,
    compatibility: { platforms: ["darwin", "win32", "linux"], runtimes: { node: engines.node } },
    user_config: Object.fromEntries(ASKED_SETTINGS.map((asked) => [fieldOf(asked), fieldSchema(asked)])),
  };
}

function fieldOf({ setting }: AskedSetting): string {
  return setting.variable.toLowerCase();
}

function placeholder(asked: AskedSetting): string {
  return `\${user_config.${fieldOf(asked)}}`;
}

function isList({ kind }: AskedSetting): boolean {
  return kind === "folders";
}

function fieldSchema({ title, setting, kind }: AskedSetting) {
  const { fallback, secret } = setting;
  const common = { title, description: explained(setting), required: false };
  if (kind === "switch") return { type: "boolean", ...common, default: fallback === true };
  if (kind === "folders") return { type: "directory", ...common, multiple: true };
  const fixed = typeof fallback === "string" ? { default: fallback } : {};
  return { type: "string", ...common, ...fixed, ...(secret && { sensitive: true }) };
}
