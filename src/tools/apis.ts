import type { ManagementApi } from "../api/management.ts";
import type { ToolContext } from "./context.ts";
import { ToolError } from "./definition.ts";

/** The management API, for a tool that is listed only where it is configured. */
export function managementOf({ management }: ToolContext): ManagementApi {
  if (management !== undefined) return management;
  throw new ToolError("the management API is not configured", "Set TARGETING_API_URL and TARGETING_API_KEY.");
}
