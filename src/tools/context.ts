import type { EventApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";

/** What tools use of the rest of the server. */
export interface ToolContext {
  readonly environment: "live" | "sandbox";
  /** Absent where the management API is not configured; its tools are then not listed. */
  readonly management?: ManagementApi;
  /** Absent where the event API is not configured; its tools are then not listed. */
  readonly events?: EventApi;
  /** Aborted when the caller gives up. */
  readonly signal: AbortSignal;
}
