import type { ManagementApi } from "../../api/management.ts";
import type { WriteCall } from "../../changes/call.ts";
import { changeOf } from "../../changes/change-kinds.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { findOptions } from "../../reads/option-contents.ts";
import { isUlid } from "../../spec/ulid.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { ToolError } from "../define-tool.ts";

interface NotAllowed {
  readonly message: string;
  readonly remedy: string;
}

const SETTING = "TARGETING_MCP_ALLOWED_TARGETINGS lists the targetings that may change.";
const MOST_NAMED = 5;
/** Options whose targetings are remembered: an option stays in its targeting. */
const MOST_KNOWN = 100_000;

/** By list of allowed targetings: the options that are known to be in one of them, so that they are read once. */
const known = new WeakMap<readonly string[], Set<string>>();

/**
 * Lets a write pass only if every targeting that it would change is allowed. `bytes` is the content of the call's file,
 * where it has one. Throws a ToolError before anything is written.
 */
export async function checkAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  context: ToolContext,
): Promise<void> {
  const { allowedTargetings, signal } = context;
  const refused = await notAllowed(call, bytes, { allowedTargetings, management: () => managementOf(context), signal });
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was changed`, refused.remedy);
}

interface Allowed {
  readonly allowedTargetings: readonly string[] | undefined;
  readonly management: () => ManagementApi;
  readonly signal: AbortSignal;
}

/**
 * Why a write may not pass: it would change a targeting that is not allowed. An option's targeting is read from the
 * service; what does not exist passes, since nothing can happen to it. Throws an ApiError where a read fails.
 */
export async function notAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  { allowedTargetings, management, signal }: Allowed,
): Promise<NotAllowed | undefined> {
  if (allowedTargetings === undefined) return undefined;
  const targets = await changeOf(call).targets(bytes);
  if (targets === undefined) {
    return { message: "no targeting may be created here: only listed ones may change", remedy: SETTING };
  }
  const allowed = new Set(allowedTargetings);
  const targetings = [...new Set(targets.targetings)].filter((id) => !allowed.has(id));
  if (targetings.length > 0) return refusal("targeting", targetings);
  const inside = known.get(allowedTargetings) ?? new Set();
  known.set(allowedTargetings, inside);
  const unknown = [...new Set(targets.options)].filter((id) => isUlid(id) && !inside.has(id));
  if (unknown.length === 0) return undefined;
  const { found } = await findOptions(management(), unknown, signal);
  const foreign: string[] = [];
  for (const [id, { targeting }] of found) {
    if (targeting === undefined || !allowed.has(targeting)) foreign.push(id);
    else if (inside.size < MOST_KNOWN) inside.add(id);
  }
  return foreign.length > 0 ? refusal("option", foreign) : undefined;
}

function refusal(kind: "targeting" | "option", ids: readonly string[]): NotAllowed {
  const named = ids.slice(0, MOST_NAMED).join(", ");
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : "";
  const why = kind === "targeting" ? "may not be changed here" : "belong to targetings that may not be changed here";
  return { message: `${ids.length} ${kind}(s) ${why}: ${named}${more}`, remedy: SETTING };
}

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
