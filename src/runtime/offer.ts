import type { ToolAvailability } from "../mcp/tool-list.ts";
import type { Settings } from "../settings/settings.ts";

/** What the settings offer to clients. */
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
 * Whether a sandbox inside this process has to run before the first call: one with a fixed port may be looked at by then,
 * while the address of any other is in an answer; an error of its file of seeds is logged at once.
 */
export function startsSandbox({ environment }: Pick<Settings, "environment">): boolean {
  if (environment.kind !== "sandbox" || environment.url !== undefined) return false;
  return environment.port !== 0 || typeof environment.seed === "object";
}
