import type { WriteCall } from "../../changes/call.ts";
import { changeOf } from "../../changes/change-kinds.ts";

/** Why a call may not delete as much as it names; undefined where it may. */
export function tooManyDeletes(
  call: WriteCall,
  maxDeletes: number,
): { readonly message: string; readonly remedy: string } | undefined {
  const { deletions } = changeOf(call);
  if (deletions <= maxDeletes) return undefined;
  return {
    message: `${deletions} deletions in one call are more than the ${maxDeletes} that are allowed`,
    remedy: "Delete fewer at a time; TARGETING_MCP_MAX_DELETES sets the limit.",
  };
}
