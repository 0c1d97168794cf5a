import packageJson from "../../package.json" with { type: "json" };
import { ASKED_SETTINGS, explained } from "./asked-settings.ts";

/** The bundle of a release, with the location of its download. */
export interface ReleasedBundle {
  /** The repository that releases it, as `owner/name`. */
  readonly repository: string;
  readonly file: string;
  /** The SHA-256 of its bytes, in hexadecimal. Clients compare it before they install. */
  readonly sha256: string;
}

/**
 * Returns the registry entry of a release: the entry of the repository, and the bundle in addition. The hash is known
 * only after the build. The repository with the download is known only to the workflow that makes the release.
 */
export function releasedServerJson({ repository, file, sha256 }: ReleasedBundle) {
  const entry = serverJson();
  const bundle = {
    registryType: "mcpb",
    identifier: `https://github.com/${repository}/releases/download/v${entry.version}/${file}`,
    fileSha256: sha256,
    transport: { type: "stdio" },
  };
  return { ...entry, packages: [...entry.packages, bundle] };
}

/** Returns the entry for the registry of MCP servers, generated from the package and the settings. */
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
