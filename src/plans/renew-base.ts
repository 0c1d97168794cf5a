import { join } from "node:path";
import type { ManagementApi } from "../api/management.ts";
import { inOnePiece, replaceFile } from "../files/save-file.ts";
import { type ByteSource, bytesAt } from "../platform/bytes.ts";
import { mapConcurrently, readOptionContents } from "../reading/option-contents.ts";
import { type AppliedObjects, renamedTargeting, wroteBy } from "./applied.ts";
import { baseText, readBase, renewedBase, type Wrote } from "./base/base.ts";
import type { ServiceTargeting } from "./base/service-targeting.ts";
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
