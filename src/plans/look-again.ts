import { join } from "node:path";
import type { ManagementApi, Reading } from "../api/management.ts";
import { replaceFile } from "../files/save-file.ts";
import { type ByteSource, bytesAt } from "../platform/held-folder.ts";
import { mapConcurrently, readOptionContents } from "../reads/option-contents.ts";
import { baseText, readBase, renewedBase, type ServiceTargeting, type WrittenOption } from "./base.ts";
import type { Desired } from "./file/desired.ts";
import { lookAgain } from "./match.ts";
import type { PlanItem, StatePlan } from "./plan.ts";
import { type PlanDocument, readPlan } from "./plan-document.ts";
import { asPlanned, isUnresolved, type PlannedChanges, type ResolvedRun, resolvedUndo } from "./planned-undo.ts";
import { type HowToRead, readTargeting, serviceOption, unlessMissing } from "./read-targeting.ts";

/**
 * Checks whether a stored plan still fits the current state in the service. If it is an undo plan and the undone run
 * has unanswered requests, `resolve` first finds out what they did, and a FileError is thrown if others changed what it
 * would undo. Throws a FileError if the plan cannot be read, and the ApiError of a failed read.
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

export async function readStoredPlan(bytes: ByteSource): Promise<PlanDocument> {
  return readPlan(await textOf(bytes), "the stored plan");
}

export async function textOf(bytes: ByteSource): Promise<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  for await (const piece of bytes()) text += decoder.decode(piece, { stream: true });
  return text + decoder.decode();
}

/**
 * After a plan was applied, updates the base of its file. Throws a FileError if the base cannot be read or written, and
 * the ApiError of a failed read.
 */
export async function renewBaseAt(
  { root, steps }: { readonly root: string; readonly steps: readonly string[] },
  { plan: kept, objects }: { readonly plan: ByteSource; readonly objects: AppliedObjects },
  { api, signal }: Reading,
): Promise<void> {
  const { plan } = await readStoredPlan(kept);
  const targetingId = plan.targeting._id;
  const wrote = writtenByPlan(plan, objects);
  const isRenamed = renamedTargeting(plan, objects);
  if (targetingId === undefined || (wrote.length === 0 && !isRenamed)) return;
  const place = { root, steps, path: join(root, ...steps) };
  const base = readBase(await textOf(bytesAt(place)), place.path);
  // The file may have been exported again from another targeting. Its base is then not updated.
  if (base.targeting._id !== targetingId) return;
  const there = await written(targetingId, wrote, api, signal);
  await replaceFile(place, [[...baseText(renewedBase(base, there, wrote, isRenamed))].join("")]);
}

async function written(
  targetingId: string,
  wrote: readonly WrittenOption[],
  api: ManagementApi,
  signal: AbortSignal,
): Promise<ServiceTargeting> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const kept = wrote.filter(({ fields }) => fields !== "deleted");
  const options = await mapConcurrently(kept, async ({ _id: optionId }) => {
    const read = await unlessMissing(readOptionContents(api, optionId, signal));
    return read && serviceOption(read.option, read.contexts);
  });
  return { targeting: { _id, name }, options };
}

export interface AppliedObjects {
  /** Returns whether an object now has the planned values, set by this run or before. */
  hasSucceeded(object: number): boolean;
  idOf(object: number): string | undefined;
}

/** Returns the object number of a plan's first item: 1 if the plan creates or renames its targeting (object 0). */
function firstObject({ targeting }: StatePlan): 0 | 1 {
  return targeting._id === undefined || targeting.rename !== undefined ? 1 : 0;
}

/** Returns what an applied plan wrote, only for options that now have the planned values. */
export function writtenByPlan(plan: StatePlan, objects: AppliedObjects): readonly WrittenOption[] {
  const first = firstObject(plan);
  return plan.items.flatMap((item, index): WrittenOption[] => {
    const object = first + index;
    const _id = item.kind === "create" ? objects.idOf(object) : item._id;
    return _id === undefined || !objects.hasSucceeded(object) ? [] : [{ _id, fields: fieldsOf(item) }];
  });
}

function fieldsOf(item: PlanItem): WrittenOption["fields"] {
  if (item.kind === "create") return "created";
  if (item.kind === "delete") return "deleted";
  return (["name", "parent", "exposeChildren", "contexts"] as const).filter((field) => item[field] !== undefined);
}

function renamedTargeting(plan: StatePlan, objects: AppliedObjects): boolean {
  return plan.targeting._id !== undefined && plan.targeting.rename !== undefined && objects.hasSucceeded(0);
}

/** Returns IDs for rows without one, by index of the row: the IDs of options that were matched by name or created. */
export function idsOfRows(
  { options }: Desired,
  plan: StatePlan,
  objects: AppliedObjects | undefined,
): ReadonlyMap<number, string> {
  const byName = new Map(plan.adopted.map(({ name, _id }) => [name, _id]));
  const first = firstObject(plan);
  for (const [index, item] of plan.items.entries()) {
    if (item.kind !== "create" || objects?.hasSucceeded(first + index) !== true) continue;
    const _id = objects.idOf(first + index);
    if (_id !== undefined) byName.set(item.name, _id);
  }
  const ids = new Map<number, string>();
  for (const [row, { _id, name }] of options.entries()) {
    const found = _id === undefined && name !== undefined ? byName.get(name) : undefined;
    if (found !== undefined) ids.set(row, found);
  }
  return ids;
}
