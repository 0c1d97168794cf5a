import { FileError } from "../platform/files.ts";
import { amount, thousands } from "../platform/text.ts";
import type { WriteCall } from "./call.ts";
import { changeOf } from "./change-kinds.ts";
import type { Loss } from "./plan/plan.ts";

interface TooMany {
  readonly message: string;
  readonly remedy: string;
}

/** Returns why a call may not delete as many objects as it names. `maxDeletes`: the limit of the settings. */
export function tooManyDeletes(call: WriteCall, maxDeletes: number): TooMany | undefined {
  const { deletions } = changeOf(call);
  return deletions > maxDeletes ? tooMany(deletions, "", maxDeletes) : undefined;
}

/** Throws a FileError if the planned deletion of targetings, with the options in them, is larger than allowed. */
export function checkDeletions(losses: readonly Loss[], maxDeletes: number): void {
  const targetings = losses.filter(({ kind }) => kind === "targeting");
  const options = targetings.reduce((sum, { count }) => sum + count, 0);
  const deletions = targetings.length + options;
  if (options === 0 || deletions <= maxDeletes) return;
  const parts = ` (${amount(targetings.length, "targeting")} with ${amount(options, "option")})`;
  const { message, remedy } = tooMany(deletions, parts, maxDeletes);
  throw new FileError(`${message}; nothing was deleted`, remedy);
}

function tooMany(deletions: number, parts: string, maxDeletes: number): TooMany {
  return {
    message: `${amount(deletions, "deletion")}${parts} in one call ${deletions === 1 ? "is" : "are"} more than the ${thousands(maxDeletes)} that are allowed`,
    remedy: "Delete fewer at a time. A person can raise the limit with TARGETING_MCP_MAX_DELETES.",
  };
}
