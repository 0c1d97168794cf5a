import type { ProjectKeys } from "./access.ts";
import type { SettingsInput } from "./settings.ts";

/** Settings that belong to the configured keys, and to no others. */
const OF_THE_CONFIGURED_KEYS = ["TARGETING_MCP_PROJECT", "TARGETING_MCP_SANDBOX_PORT"];

/**
 * What settings are read from when a caller's keys stand in place of the configured ones. `sandbox` keeps a server
 * that talks to the sandbox from talking to anything else.
 */
export function withKeys(input: SettingsInput, keys: ProjectKeys, sandbox: boolean): SettingsInput {
  const environment: Record<string, string | undefined> = { ...input.environment };
  const flags = new Map(input.flags);
  for (const variable of OF_THE_CONFIGURED_KEYS) environment[variable] = undefined;
  for (const flag of ["project", "sandbox-port"]) flags.delete(flag);
  environment.TARGETING_API_KEY = keys.targetingApiKey;
  environment.EVENT_APP_KEY = keys.eventAppKey;
  if (sandbox) flags.set("mode", "sandbox");
  return { ...input, environment, flags };
}
