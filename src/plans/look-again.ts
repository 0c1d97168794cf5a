import type { ByteSource } from "../platform/held-folder.ts";
import type { StatePlan } from "./diff/plan.ts";
import { lookAgain } from "./diff/stale.ts";
import { type PlanDocument, readPlan } from "./plan-document.ts";
import {
  asPlanned,
  isUnresolved,
  type PlannedChanges,
  type Reading,
  type ResolvedRun,
  resolvedUndo,
} from "./planned-undo.ts";
import { type HowToRead, readTargeting } from "./read-targeting.ts";

/**
 * Checks whether a stored plan still fits the current state. If it undoes a run with unanswered requests, `resolve`
 * determines their outcomes first. Throws a FileError if the plan cannot be read, or if others changed what it would
 * undo, and the ApiError of a failed read.
 */
export async function checkStoredPlan(
  bytes: ByteSource,
  { api, signal, resolve }: Reading & { readonly resolve?: (() => Promise<ResolvedRun>) | undefined },
): Promise<PlannedChanges> {
  const document = await readStoredPlan(bytes);
  if (resolve !== undefined && isUnresolved(document)) {
    return resolvedUndo(document, await resolve(), { api, signal });
  }
  const look = async (plan: StatePlan): Promise<PlannedChanges> => {
    const { _id } = plan.targeting;
    const there = _id === undefined ? undefined : await readTargeting(api, _id, { signal, wants: wantsOf(plan) });
    return { ...asPlanned(plan, there), ...lookAgain(plan, there) };
  };
  const further: PlannedChanges[] = [];
  for (const plan of document.wayBack?.further ?? []) further.push(await look(plan));
  return { ...(await look(document.plan)), further };
}

/** Returns the options whose Context IDs decide whether a plan still fits. */
function wantsOf({ items }: StatePlan): HowToRead["wants"] {
  const ids = new Set<string>();
  const names = new Set<string>();
  for (const item of items) {
    if (item.kind === "create") names.add(item.name);
    else if (item.kind === "delete" || item.contexts !== undefined) ids.add(item._id);
    if (item.kind === "delete") continue;
    if (item.parent) ids.add("_id" in item.parent ? item.parent._id : "");
    if (item.kind === "change" && item.parent !== undefined && item.seen.parent !== null) ids.add(item.seen.parent);
  }
  return ({ _id, name }) => ids.has(_id) || names.has(name);
}

/** Reads a stored plan. Throws a FileError if it cannot be read. */
export async function readStoredPlan(bytes: ByteSource): Promise<PlanDocument> {
  return readPlan(await textOf(bytes), "the stored plan");
}

export async function textOf(bytes: ByteSource): Promise<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  for await (const piece of bytes()) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}
