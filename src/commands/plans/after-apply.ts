import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type AppliedObjects, idsOfRows } from "../../plans/applied.ts";
import { basePathOf } from "../../plans/base/base.ts";
import { formatOfDesired } from "../../plans/file/read-desired.ts";
import { withIds } from "../../plans/file/write-ids.ts";
import { bytesAtPath } from "./files.ts";
import type { PlannedFile } from "./plan-file.ts";
import { tell, writeOver } from "./project.ts";

/** The base beside a file, which the run that applies the file renews; undefined where it has none. */
export async function baseFileOf(
  file: string,
  { base }: PlannedFile,
): Promise<{ readonly root: string; readonly steps: readonly string[] } | undefined> {
  if (base === undefined) return undefined;
  const path = await realpath(basePathOf(file));
  return { root: dirname(path), steps: [basename(path)] };
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
