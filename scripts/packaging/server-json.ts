import packageJson from "../../package.json" with { type: "json" };
import { ASKED_SETTINGS, explained } from "./asked-settings.ts";

/** The entry for the registry of MCP servers, made from the package and the settings. */
export function serverJson() {
  const { name, version, mcpName } = packageJson;
  return {
    $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    name: mcpName,
    title: "Targetings and events",
    description: "Context targetings and conversion events of an ad platform, in bulk, with nothing lost.",
    version,
    packages: [
      {
        registryType: "npm",
        identifier: name,
        version,
        runtimeHint: "npx",
        transport: { type: "stdio" },
        environmentVariables: ASKED_SETTINGS.map(({ setting, kind }) => ({
          name: setting.variable,
          description: explained(setting),
          isRequired: false,
          isSecret: setting.secret,
          format: kind === "switch" ? "boolean" : "string",
          ...(setting.form.choices && {
            choices: setting.form.choices,
            default: setting.otherwise.replaceAll("`", ""),
          }),
        })),
      },
    ],
  };
}
