import { findFreePlace } from "../files/folders.ts";
import { freePlaceFor } from "../files/save-file.ts";
import { asksDesired, isPart } from "../saves/save-options.ts";
import type { ListAsked, SaveCall } from "../saves/save-state.ts";
import { savesOf } from "./apis.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, ToolError } from "./define-tool.ts";
import type { AskedOption, OptionsQuery } from "./option-page.ts";
import { reportedRun } from "./run-reports.ts";
import type { SaveArguments } from "./shared-arguments.ts";
import { followRun } from "./write/follow-run.ts";

/**
 * Saves the options that are asked for to a file, as a run: what takes longer than one wait goes on behind the answer.
 * Throws what ends the run within the wait, a FileError where no such file may be written, and a ToolError where a part
 * is asked for as a desired state.
 */
export async function savedList(
  { targetingId, parent, search, contextIds, empty }: OptionsQuery,
  { saveTo, delimiter }: SaveArguments,
  fresh: boolean | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { allowedDirs: folders } = context;
  const asked: ListAsked = { targetingId, parent, search, contextIds, empty, fresh, saveTo, delimiter, folders };
  if (asksDesired(saveTo) && isPart(asked)) {
    throw new ToolError(
      "a .yaml or .json file holds a whole targeting as a desired state, and a part was asked for",
      "Leave out parent, search, contextIds and empty, or name the file .xlsx, .csv or .ndjson.",
    );
  }
  if (asksDesired(saveTo) && delimiter === undefined) await findFreePlace(saveTo, folders);
  else await freePlaceFor(saveTo, folders, delimiter);
  return savedBy({ tool: "list_options", input: asked }, context);
}

/** Saves all Context IDs of an option to a file, as such a run. Throws as `savedList`. */
export async function savedContexts(
  { _id: optionId, targetingId }: AskedOption,
  { saveTo, delimiter }: SaveArguments,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { allowedDirs: folders } = context;
  await freePlaceFor(saveTo, folders, delimiter);
  return savedBy({ tool: "get_option", input: { optionId, targetingId, saveTo, delimiter, folders } }, context);
}

async function savedBy(call: SaveCall, context: ToolContext): Promise<ToolAnswer> {
  const errors: unknown[] = [];
  const run = savesOf(context).start(call, context.caller, (thrown) => errors.push(thrown));
  await followRun(run, context);
  if (errors.length > 0) throw errors[0];
  return reportedRun(run, context);
}
