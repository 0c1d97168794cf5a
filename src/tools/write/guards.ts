import type { ManagementApi } from "../../api/management.ts";
import type { WriteCall } from "../../changes/call.ts";
import { changeOf } from "../../changes/change-kinds.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { amount } from "../../platform/text.ts";
import { findOptions } from "../../reads/option-contents.ts";
import type { Refusal } from "../../runs/kind.ts";
import { isUlid } from "../../spec/ulid.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { ToolError } from "../define-tool.ts";

export type NotAllowed = Pick<Refusal, "message" | "remedy">;

const SETTING = "TARGETING_MCP_ALLOWED_TARGETINGS lists the targetings that may change.";
const MAX_NAMED = 5;
/** An option never moves to another targeting, so it stays allowed. */
const MAX_KNOWN = 100_000;

/** The options known to be allowed, for each list of allowed targetings. */
const known = new WeakMap<readonly string[], Set<string>>();

/** Throws a ToolError if a call would change a targeting that the settings protect. `bytes` is the call's file. */
export async function checkAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  context: ToolContext,
): Promise<void> {
  const refused = await notAllowed(call, bytes, { ...context, management: () => managementOf(context) });
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was changed`, refused.remedy);
}

interface Allowed {
  readonly allowedTargetings?: readonly string[] | undefined;
  readonly management: () => ManagementApi;
  readonly signal: AbortSignal;
}

/** Returns why a call may not change its targetings. Ignores options that do not exist. */
export async function notAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  { allowedTargetings, management, signal }: Allowed,
): Promise<NotAllowed | undefined> {
  if (allowedTargetings === undefined) return undefined;
  const targets = await changeOf(call).targets(bytes);
  if (targets === undefined) {
    return {
      message: "no targeting may be created: only the targetings in TARGETING_MCP_ALLOWED_TARGETINGS may change",
      remedy: SETTING,
    };
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
    else if (inside.size < MAX_KNOWN) inside.add(id);
  }
  return foreign.length > 0 ? refusal("option", foreign) : undefined;
}

function refusal(kind: "targeting" | "option", ids: readonly string[]): NotAllowed {
  const named = ids.slice(0, MAX_NAMED).join(", ");
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : "";
  const why = kind === "targeting" ? "may not be changed here" : "belong to targetings that may not be changed here";
  return { message: `${amount(ids.length, kind)} ${why}: ${named}${more}`, remedy: SETTING };
}

/** Returns why a call deletes more objects than the settings allow, if so. */
export function tooManyDeletes(call: WriteCall, maxDeletes: number): NotAllowed | undefined {
  const { deletions } = changeOf(call);
  if (deletions <= maxDeletes) return undefined;
  return {
    message: `${amount(deletions, "deletion")} in one call ${deletions === 1 ? "is" : "are"} more than the ${maxDeletes} that are allowed`,
    remedy: "Delete fewer at a time. A person can raise the limit with TARGETING_MCP_MAX_DELETES.",
  };
}
