import type { WriteCall } from "../../changes/call.ts";
import { withItems } from "../../changes/call-rows.ts";
import type { ByteSource } from "../../platform/bytes.ts";
import { findOptions } from "../../reading/find-options.ts";
import { isUlid } from "../../spec/ulid.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { ToolError } from "../definition.ts";

const SETTING = "TARGETING_MCP_ALLOWED_TARGETINGS lists the targetings that may change.";
const MOST_NAMED = 5;

/**
 * Lets a write pass only if every targeting that it would change is allowed. An option's targeting is read from the
 * service; what does not exist passes, since nothing can happen to it. `bytes` is the content of the call's file, where
 * it has one. Throws a ToolError before anything is written.
 */
export async function checkAllowed(
  call: WriteCall,
  bytes: ByteSource | undefined,
  context: ToolContext,
): Promise<void> {
  const { allowedTargetings } = context;
  if (allowedTargetings === undefined) return;
  if (call.tool === "create_targetings") {
    throw new ToolError("no targeting may be created here: only listed ones may change", SETTING);
  }
  const allowed = new Set(allowedTargetings);
  const { targetings, options } = changedBy(await withItems(call, bytes));
  refuse(
    "targeting",
    [...new Set(targetings)].filter((id) => !allowed.has(id)),
  );
  refuse("option", await foreignOptions([...new Set(options)].filter(isUlid), allowed, context));
}

function refuse(kind: "targeting" | "option", ids: readonly string[]): void {
  if (ids.length === 0) return;
  const named = ids.slice(0, MOST_NAMED).join(", ");
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : "";
  const why = kind === "targeting" ? "may not be changed here" : "belong to targetings that may not be changed here";
  throw new ToolError(`${ids.length} ${kind}(s) ${why}: ${named}${more}; nothing was changed`, SETTING);
}

/** What a call names as targets of a change; options whose Context IDs are only read are no targets. */
function changedBy(call: WriteCall) {
  const ofTargeting = (id: string | undefined) => (id === undefined ? [] : [id]);
  switch (call.tool) {
    case "create_targetings":
      return { targetings: [], options: [] };
    case "rename_targetings":
      return { targetings: call.input.items.flatMap(({ _id }) => _id ?? []), options: [] };
    case "delete_targeting":
      return {
        targetings: [...call.input.ids, ...(call.input.names ?? []).flatMap(({ _id }) => _id ?? [])],
        options: [],
      };
    case "bulk_add_options": {
      const parents = call.input.items.flatMap(({ parent }) => (parent === undefined ? [] : [parent]));
      return { targetings: [call.input.targetingId], options: parents };
    }
    case "update_options": {
      const parents = call.input.items.flatMap(({ parent }) => (typeof parent === "string" ? [parent] : []));
      const options = [...call.input.items.flatMap(({ _id }) => _id ?? []), ...parents];
      return { targetings: ofTargeting(call.input.targetingId), options };
    }
    case "update_contexts": {
      const options = call.input.items.flatMap(({ _id, _ids = [] }) => (_id === undefined ? _ids : [_id, ..._ids]));
      return { targetings: ofTargeting(call.input.targetingId), options };
    }
    case "delete_options":
      return { targetings: ofTargeting(call.input.targetingId), options: call.input.ids ?? [] };
  }
}

/** Of some options, those that are not in an allowed targeting, or do not say which they are in. */
async function foreignOptions(
  ids: readonly string[],
  allowed: ReadonlySet<string>,
  context: ToolContext,
): Promise<readonly string[]> {
  const { found } = await findOptions(managementOf(context), ids, context.signal);
  return [...found].filter(([, { targeting }]) => targeting === undefined || !allowed.has(targeting)).map(([id]) => id);
}
