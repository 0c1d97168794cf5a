import type { ManagementApi } from "../../api/management.ts";
import { freePlaceFor, saveFile } from "../../files/save-file.ts";
import { type PlacedOption, type SavedOption, savedOption, withContexts } from "../../reading/saved-options.ts";
import { optionLines } from "../../reading/saved-rows.ts";
import { savedText } from "../../render/reading.ts";
import type { OptionRecord } from "../../spec/records.ts";
import { managementOf } from "../apis.ts";
import { type ToolContext, timeLeft } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { TookTooLong } from "../within-wait.ts";
import { searchOptions, type Wanted } from "./option-search.ts";

/** What is saved: all options of a targeting, or those of a group, or those that are looked for. */
export interface SaveQuery extends Wanted {
  readonly targetingId: string;
  readonly parent: string | undefined;
}

/**
 * Saves options, sub-options included, with their Context IDs to a file that `bulk_add_options` reads. Where one wait
 * is too short for reading the Context IDs, it saves none of them and says so. Throws ApiErrors, a FileError where the
 * file may not be written, and a ToolError where one wait is too short for reading the options.
 */
export async function saveOptions(query: SaveQuery, saveTo: string, context: ToolContext): Promise<ToolAnswer> {
  const { clock, environment, signal, allowedDirs } = context;
  const api = managementOf(context);
  const place = await freePlaceFor(saveTo, allowedDirs);
  const end = clock.now() + timeLeft(context);
  const options = await placed(query, api, context);
  const counts = { options: options.length, contextIds: 0 };
  const inTime = async function* (rows: AsyncIterable<readonly SavedOption[]>) {
    for await (const batch of rows) {
      if (clock.now() > end) throw new TimeIsUp();
      for (const { contexts = [] } of batch) counts.contextIds += contexts.length;
      yield batch;
    }
  };
  let note: string | undefined;
  try {
    await saveFile(place, optionLines(inTime(withContexts(api, options, signal)), place.format));
  } catch (thrown) {
    if (!(thrown instanceof TimeIsUp || thrown instanceof TookTooLong)) throw thrown;
    counts.contextIds = 0;
    note = "One wait was too short to read the Context IDs: the file has none of them. Save a part: parent or search.";
    await saveFile(place, optionLines(withoutContexts(options), place.format));
  }
  const saved = { savedTo: place.path, counts, ...(note !== undefined && { note }) };
  return { structured: { environment, ...saved }, text: savedText(saved), isError: false };
}

class TimeIsUp extends Error {}

async function* withoutContexts(options: readonly PlacedOption[]): AsyncGenerator<readonly SavedOption[]> {
  for (const option of options) yield [savedOption(option, undefined)];
}

/** The options with the names of their groups, which files have instead of IDs. */
async function placed(
  { targetingId, parent, ...wanted }: SaveQuery,
  api: ManagementApi,
  context: ToolContext,
): Promise<readonly PlacedOption[]> {
  const { signal } = context;
  const walk = { targetingId, parent, signal };
  const job = { walk, from: { top: 0 }, wanted, most: Number.POSITIVE_INFINITY };
  const { steps, stopped } = await searchOptions(api, context, job);
  if (stopped) {
    throw new ToolError(
      "one wait is too short to read all these options; nothing was saved",
      "Save a part (parent, search), or let TARGETING_MCP_WAIT_MS be longer.",
    );
  }
  const names = new Map(steps.map(({ option }) => [option._id, option.name]));
  const groupOf = (option: OptionRecord): string | undefined => option.parent ?? parent;
  for (const { option } of steps) {
    const group = groupOf(option);
    if (group === undefined || names.has(group)) continue;
    names.set(group, (await api.getOption(group, { limit: 1 }, { signal })).option.name);
  }
  return steps.map(({ option }) => {
    const group = groupOf(option);
    return group === undefined ? { option } : { option, groupName: names.get(group) };
  });
}
