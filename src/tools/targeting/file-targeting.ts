import { isUnread } from "../../files/looked-at.ts";
import type { OpenedFile } from "../../files/rows.ts";
import { isUlid } from "../../spec/ulid.ts";
import type { ToolContext } from "../context.ts";
import { ToolError } from "../definition.ts";
import type { FoundByName, TargetingReference } from "./targeting-name.ts";

/**
 * The targeting that a call names, else the one that its file names in the column Targeting. Throws a ToolError where the
 * call names none, and the file could not be read yet.
 */
export function referenceOf(given: TargetingReference, opened: OpenedFile | undefined): TargetingReference {
  const named = opened?.file.seen?.targeting;
  if (given.targetingId || given.targetingName) return given;
  if (opened !== undefined && isUnread(opened.file)) throw targetingNeeded();
  if (named === undefined) return given;
  return isUlid(named) ? { targetingId: named } : { targetingName: named };
}

/** A file whose rows may speak of a targeting by its ID or by the name that it was seen with. */
export async function aboutTargeting(
  opened: OpenedFile | undefined,
  found: FoundByName | undefined,
  { memory }: Pick<ToolContext, "memory">,
): Promise<OpenedFile["file"] | undefined> {
  if (opened !== undefined && found !== undefined && isUnread(opened.file)) {
    const seen = (await memory.recent()).filter(({ _id }) => _id === found._id);
    return { ...opened.file, targeting: [found._id, ...seen.map(({ name }) => name)] };
  }
  const named = opened?.file.seen?.targeting;
  if (opened === undefined || named === undefined || found === undefined) return opened?.file;
  const seen = await memory.resolve(named);
  const isSame = seen.kind === "one" && seen.thing._id === found._id;
  return { ...opened.file, targeting: [found._id, ...(isSame ? [named] : [])] };
}

function targetingNeeded(): ToolError {
  return new ToolError(
    "reading the file takes longer than a call may take, and only the file names its targeting; nothing was sent",
    "Give targetingId or targetingName: then the call answers with its run, which goes on.",
  );
}
