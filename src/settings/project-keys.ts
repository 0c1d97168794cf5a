import type { ProjectKeys } from "./access.ts";
import { readSettings, type Settings, type SettingsInput } from "./settings.ts";

/** Settings that are about the configured keys only. */
const OF_THE_CONFIGURED_KEYS = ["TARGETING_MCP_PROJECT", "TARGETING_MCP_SANDBOX_PORT"];

/** The settings of a caller's keys, which replace the configured ones; a server in sandbox mode stays in it. */
export function settingsOfKeys(input: SettingsInput, keys: ProjectKeys, { kind }: Settings["environment"]): Settings {
  const environment: Record<string, string | undefined> = { ...input.environment };
  const flags = new Map(input.flags);
  for (const variable of OF_THE_CONFIGURED_KEYS) environment[variable] = undefined;
  for (const flag of ["project", "sandbox-port"]) flags.delete(flag);
  environment.TARGETING_API_KEY = keys.targetingApiKey;
  environment.EVENT_APP_KEY = keys.eventAppKey;
  if (kind === "sandbox") flags.set("mode", "sandbox");
  return readSettings({ ...input, environment, flags });
}
