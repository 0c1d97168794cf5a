import { createHash } from "node:crypto";
import type { ManagementApi } from "../../api/management.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { type AppliedObjects, idsOfRows, renamedTargeting, wroteBy } from "../../plans/applied.ts";
import { basePathOf, baseText, renewedBase, type Wrote } from "../../plans/base/base.ts";
import type { ServiceTargeting } from "../../plans/base/service-targeting.ts";
import { formatOfDesired } from "../../plans/file/read-desired.ts";
import { withIds } from "../../plans/file/write-ids.ts";
import { serviceOption } from "../../plans/read-targeting.ts";
import { isMissing } from "../../reading/find-options.ts";
import { mapConcurrently, readOptionContents } from "../../reading/option-contents.ts";
import { bytesAtPath } from "./files.ts";
import type { PlannedFile } from "./plan-file.ts";
import { type PlanProject, tell, writeOver } from "./project.ts";

/** How the objects of a run ended. */
export function objectsOf({ state }: ChangeRun): AppliedObjects {
  return {
    isDone: (object) => {
      const standing = state.standing(object);
      return standing === "succeeded" || standing === "alreadyDone";
    },
    idOf: (object) => state.idOf(object),
  };
}

/**
 * Renews the base beside a file after its plan was applied: what was written is read, and only that is replaced. Throws
 * a FileError where the base cannot be written, and the ApiError of a read.
 */
export async function renewBase(
  file: string,
  { document: { plan }, base }: PlannedFile,
  objects: AppliedObjects,
  { api, context }: PlanProject,
): Promise<void> {
  const targetingId = plan.targeting._id;
  if (base === undefined || targetingId === undefined) return;
  const wrote = wroteBy(plan, objects);
  const isRenamed = renamedTargeting(plan, objects);
  if (wrote.length === 0 && !isRenamed) return;
  const there = await written(targetingId, wrote, api, context.signal);
  const path = basePathOf(file);
  await writeOver([{ path, pieces: baseText(renewedBase(base, there, wrote, isRenamed)) }]);
  tell(`${path}: renewed for ${wrote.length} ${wrote.length === 1 ? "option" : "options"}`);
}

/** A targeting with those of its options that were written, as they are now. */
async function written(
  targetingId: string,
  wrote: readonly Wrote[],
  api: ManagementApi,
  signal: AbortSignal,
): Promise<ServiceTargeting> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const there = wrote.filter(({ fields }) => fields !== "deleted");
  const options = await mapConcurrently(there, async ({ _id: optionId }) => {
    try {
      const { option, contexts } = await readOptionContents(api, optionId, signal);
      return serviceOption(option, option.parent ?? null, contexts);
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  });
  return { targeting: { _id, name }, options };
}

/**
 * Writes the `_id`s of adopted and created options into the rows of a file that have none; everything else in it stays.
 * False where the file has changed since it was read: then nothing is written.
 */
export async function writeIds(
  file: string,
  { read: { desired, digest }, document: { plan } }: PlannedFile,
  objects: AppliedObjects | undefined,
): Promise<boolean> {
  const ids = idsOfRows(desired, plan, objects);
  if (ids.size === 0) return true;
  const bytes = await bytesAtPath(file);
  if (createHash("sha256").update(bytes).digest("hex") !== digest) {
    tell(`${file} has changed since it was read: no _id was written into it. Call again with --write-ids.`);
    return false;
  }
  const text = await withIds(bytes.toString("utf8"), formatOfDesired(file), ids);
  await writeOver([{ path: file, pieces: [text] }]);
  tell(`${file}: ${ids.size} ${ids.size === 1 ? "_id" : "_ids"} written`);
  return true;
}
