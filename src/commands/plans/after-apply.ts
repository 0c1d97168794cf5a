import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import type { BaseFile } from "../../changes/plan/desired/desired-changes.ts";
import { type AppliedObjects, idsOfRows } from "../../plans/applied.ts";
import { basePathOf } from "../../plans/base/base.ts";
import { formatToRead } from "../../plans/file/read-desired.ts";
import { withIds } from "../../plans/file/write-ids.ts";
import type { PlanDocument } from "../../plans/plan-document.ts";
import { amount } from "../../platform/thousands.ts";
import { bytesAtPath, isThere, type PlannedFile } from "./files.ts";
import { tell, writeOver } from "./project.ts";

/** The base beside a file, which the run that applies the file renews. Throws where there is none. */
export async function baseFileOf(file: string): Promise<BaseFile> {
  const path = await realpath(basePathOf(file));
  return { root: dirname(path), steps: [basename(path)] };
}

/**
 * The base beside the file that a kept plan was made from; undefined where it had none. Where that file is not found from
 * the plan, the command tells so, and the base stays as it was.
 */
export async function baseFileOfPlan(planPath: string, { file }: PlanDocument): Promise<BaseFile | undefined> {
  if (file === undefined) return undefined;
  const path = resolve(dirname(planPath), file);
  if (await isThere(basePathOf(path))) return baseFileOf(path);
  tell(`${basePathOf(file)} is not there beside the plan, so that this base is not renewed.`);
  return undefined;
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
  const text = await withIds(bytes.toString("utf8"), formatToRead(file), ids);
  await writeOver([{ path: file, pieces: [text] }]);
  tell(`${file}: ${amount(ids.size, "_id")} written`);
  return true;
}
