import type { OpenedFile } from "../../files/rows.ts";
import { isUlid } from "../../spec/ulid.ts";
import type { ToolContext } from "../context.ts";
import type { FoundByName, TargetingReference } from "./targeting-name.ts";

/** The targeting that a call names, else the one that its file names in the column Targeting. */
export function referenceOf(given: TargetingReference, opened: OpenedFile | undefined): TargetingReference {
  const named = opened?.file.seen?.targeting;
  if (named === undefined || given.targetingId || given.targetingName) return given;
  return isUlid(named) ? { targetingId: named } : { targetingName: named };
}

/** A file whose rows may speak of a targeting by its ID or by the name that it was seen with. */
export async function aboutTargeting(
  opened: OpenedFile | undefined,
  found: FoundByName | undefined,
  { memory }: Pick<ToolContext, "memory">,
): Promise<OpenedFile["file"] | undefined> {
  const named = opened?.file.seen?.targeting;
  if (opened === undefined || named === undefined || found === undefined) return opened?.file;
  const seen = await memory.resolve(named);
  const isSame = seen.kind === "one" && seen.thing._id === found._id;
  return { ...opened.file, targeting: [found._id, ...(isSame ? [named] : [])] };
}
