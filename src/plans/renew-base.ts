import { join } from "node:path";
import type { ManagementApi } from "../api/management.ts";
import { inOnePiece, replaceFile } from "../files/save-file.ts";
import { type ByteSource, bytesAt } from "../platform/held-folder.ts";
import { mapConcurrently, readOptionContents } from "../reads/option-contents.ts";
import { baseText, readBase, renewedBase, type ServiceTargeting, type Wrote } from "./base.ts";
import type { PlanItem, StatePlan } from "./diff/plan.ts";
import type { Desired } from "./file/desired.ts";
import { readKeptPlan, textOf } from "./look-again.ts";
import { serviceOption, unlessMissing } from "./read-targeting.ts";

/**
 * Renews the base of a file after its plan was applied: of what was written only the written fields are replaced, by
 * what is there now. Throws a FileError where the base cannot be read or written, and the ApiError of a read.
 */
export async function renewBaseAt(
  { root, steps }: { readonly root: string; readonly steps: readonly string[] },
  { plan: kept, objects }: { readonly plan: ByteSource; readonly objects: AppliedObjects },
  { api, signal }: { readonly api: ManagementApi; readonly signal: AbortSignal },
): Promise<void> {
  const { plan } = await readKeptPlan(kept);
  const targetingId = plan.targeting._id;
  const wrote = wroteBy(plan, objects);
  const isRenamed = renamedTargeting(plan, objects);
  if (targetingId === undefined || (wrote.length === 0 && !isRenamed)) return;
  const place = { root, steps, path: join(root, ...steps) };
  const base = readBase(await textOf(bytesAt(place)), place.path);
  // A base of another targeting took its place meanwhile.
  if (base.targeting._id !== targetingId) return;
  const there = await written(targetingId, wrote, api, signal);
  await replaceFile(place, inOnePiece([...baseText(renewedBase(base, there, wrote, isRenamed))].join("")));
}

/** A targeting with those of its options that were written, as they are now. */
async function written(
  targetingId: string,
  wrote: readonly Wrote[],
  api: ManagementApi,
  signal: AbortSignal,
): Promise<ServiceTargeting> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const kept = wrote.filter(({ fields }) => fields !== "deleted");
  const options = await mapConcurrently(kept, async ({ _id: optionId }) => {
    const read = await unlessMissing(readOptionContents(api, optionId, signal));
    return read && serviceOption(read.option, read.option.parent ?? null, read.contexts);
  });
  return { targeting: { _id, name }, options };
}

/** How the objects of an applied plan ended: the position of each in the run, and its ID. */
export interface AppliedObjects {
  /** Whether the object is as the plan wants it. */
  isDone(object: number): boolean;
  idOf(object: number): string | undefined;
}

/** An applied plan by its items; the targeting comes before them where the plan creates or renames it. */
function firstObject({ targeting }: StatePlan): 0 | 1 {
  return targeting._id === undefined || targeting.rename !== undefined ? 1 : 0;
}

/** What an applied plan wrote, for the base: only what is as the plan wants it. */
export function wroteBy(plan: StatePlan, objects: AppliedObjects): readonly Wrote[] {
  const first = firstObject(plan);
  return plan.items.flatMap((item, index): Wrote[] => {
    const object = first + index;
    const _id = item.kind === "create" ? objects.idOf(object) : item._id;
    return _id === undefined || !objects.isDone(object) ? [] : [{ _id, fields: fieldsOf(item) }];
  });
}

function fieldsOf(item: PlanItem): Wrote["fields"] {
  if (item.kind === "create") return "created";
  if (item.kind === "delete") return "deleted";
  return (["name", "parent", "exposeChildren", "contexts"] as const).filter((field) => item[field] !== undefined);
}

/** Whether an applied plan gave its targeting another name. */
export function renamedTargeting(plan: StatePlan, objects: AppliedObjects): boolean {
  return plan.targeting._id !== undefined && plan.targeting.rename !== undefined && objects.isDone(0);
}

/** The IDs of rows that have none in the file, by the position of the row: of adopted options, and of created ones. */
export function idsOfRows(
  { options }: Desired,
  plan: StatePlan,
  objects: AppliedObjects | undefined,
): ReadonlyMap<number, string> {
  const byName = new Map(plan.adopted.map(({ name, _id }) => [name, _id]));
  const first = firstObject(plan);
  for (const [index, item] of plan.items.entries()) {
    if (item.kind !== "create" || objects?.isDone(first + index) !== true) continue;
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
