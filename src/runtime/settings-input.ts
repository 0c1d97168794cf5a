import { homedir } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import type { ToolAvailability } from "../mcp/server-parts.ts";
import { type CommandLine, optionOf } from "../settings/command-line.ts";
import { readSettings, type Settings, type SettingsInput } from "../settings/settings.ts";
import { SettingsError, toggle } from "../settings/value-types.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { type RouteTable, routesWith } from "../spec/routes.ts";

export function inputOf({ flags }: CommandLine): SettingsInput {
  return { flags, environment: process.env, platform: process.platform, home: homedir() };
}

/** Returns whether a flag is on. A flag without a value is. Throws a SettingsError for values that `toggle` refuses. */
export function isOn(line: CommandLine, flag: string): boolean {
  return optionOf(line, flag, toggle) ?? false;
}

/** Reads the settings. Throws a SettingsError if a setting is invalid, or does not agree with the API documents. */
export function settingsFrom(input: SettingsInput): Settings {
  const settings = readSettings(input);
  const foreign = settings.allowedTargetings?.find((id) => !isUlid(id));
  if (foreign !== undefined) {
    throw new SettingsError(
      `TARGETING_MCP_ALLOWED_TARGETINGS (--allowed-targetings) must be a comma list of ULIDs; ${JSON.stringify(foreign)} is not a ULID`,
      "TARGETING_MCP_ALLOWED_TARGETINGS",
    );
  }
  routesOf(settings);
  return settings;
}

export function routesOf({ routes }: Settings): RouteTable {
  try {
    return routesWith(routes);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new SettingsError(`TARGETING_MCP_ROUTES (--routes): ${thrown.message}`, "TARGETING_MCP_ROUTES");
  }
}

export function availabilityOf({ environment, readOnly, toolsets, sandboxUrl }: Settings): ToolAvailability {
  if (environment.kind === "sandbox") {
    return { readOnly, toolsets, configured: ["targeting", "events"], hasSandbox: true };
  }
  const { management, events, half } = environment;
  return {
    readOnly,
    toolsets,
    configured: [
      ...((management ?? half?.management) ? ["targeting" as const] : []),
      ...((events ?? half?.events) ? ["events" as const] : []),
    ],
    hasSandbox: sandboxUrl !== undefined,
  };
}

/**
 * Returns whether the sandbox must start together with the server, and not only with the first call. Apps may send
 * events to its fixed port, or its seed file may have an error that a person should see.
 */
export function startsSandbox({ environment }: Pick<Settings, "environment">): boolean {
  if (environment.kind !== "sandbox" || environment.url !== undefined) return false;
  return environment.port !== 0 || typeof environment.seed === "object";
}

export const VERSION = packageJson.version;
