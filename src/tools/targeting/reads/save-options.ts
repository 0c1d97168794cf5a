import type { ManagementApi } from "../../../api/management.ts";
import { findFreePlace, type Place } from "../../../files/folders.ts";
import { inPieces } from "../../../files/pieces.ts";
import { freePlaceFor, saveFile } from "../../../files/save-file.ts";
import { isEmpty } from "../../../reading/option-scan.ts";
import { type PlacedOption, type SavedOption, savedOption, withContexts } from "../../../reading/saved-options.ts";
import { optionLines } from "../../../reading/saved-rows.ts";
import { optionRow, type SavedCounts, savedText } from "../../../render/reading.ts";
import type { OptionRecord } from "../../../spec/records.ts";
import { managementOf } from "../../apis.ts";
import { type ToolContext, timeLeft } from "../../context.ts";
import { type ToolAnswer, ToolError } from "../../definition.ts";
import { TookTooLong } from "../../within-wait.ts";
import type { OptionsQuery } from "./option-query.ts";
import { searchOptions } from "./option-search.ts";
import type { WholeTargeting } from "./save-whole.ts";

/** How many of the largest options an answer names. */
const LARGEST = 5;

/**
 * Saves options, sub-options included, with their Context IDs, and tells what is in the file: rows that
 * `bulk_add_options` reads, or a whole targeting as a desired state; a whole targeting gets its base beside the file.
 * Context IDs that were read before are not read again, unless `fresh`. Where one wait is too short for reading the
 * Context IDs, rows are saved without any, and the answer says so. Throws ApiErrors, a FileError where a file may not be
 * written, and a ToolError where one wait is too short for reading what is to be saved.
 */
export async function saveOptions(
  query: OptionsQuery,
  saveTo: string,
  fresh: boolean | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { clock, environment, signal, contents: store } = context;
  const api = managementOf(context);
  const { place, whole, isDesired, lines } = await formOf(query, saveTo, context);
  const end = clock.now() + timeLeft(context);
  const options = await placed(query, fresh, api, context);
  whole?.expect(options);
  let contextIds = 0;
  const inTime = async function* (rows: AsyncIterable<SavedOption>) {
    for await (const row of rows) {
      if (clock.now() > end) throw new TimeIsUp();
      contextIds += row.contexts?.length ?? 0;
      yield row;
    }
  };
  const save = (rows: AsyncIterable<SavedOption>) => saveFile(place, inPieces(lines(rows)));
  const source = { targetingId: query.targetingId, store, fresh };
  let note: string | undefined;
  let base: string | undefined;
  try {
    await save(inTime(withContexts(api, options, signal, source, whole?.take)));
    base = await whole?.saveBase();
  } catch (thrown) {
    if (!(thrown instanceof TimeIsUp || thrown instanceof TookTooLong)) throw thrown;
    if (isDesired) throw tooShort("Try again: what was read is not read again; or save to .csv");
    contextIds = 0;
    note =
      "One wait was too short to read the Context IDs: the file has none of them. Save to another file: what was read " +
      "is not read again; or save a part: parent or search.";
    await save(withoutContexts(options));
  }
  const largest = largestOf(options).map((option) => optionRow(option, "concise"));
  const counts = countsOf(options, contextIds);
  const saved = { savedTo: place.path, ...(base && { base }), counts, largest, ...(note && { note }) };
  return { structured: { environment, ...saved }, text: savedText(saved), isError: false };
}

/** What is written, and where. */
interface SavedForm {
  readonly place: Place;
  /** Absent where only a part of the targeting is saved. */
  readonly whole?: WholeTargeting;
  readonly isDesired: boolean;
  readonly lines: (rows: AsyncIterable<SavedOption>) => AsyncIterable<string>;
}

/** The form that the name of the file asks for. Throws a FileError where a file is there, and a ToolError for a part. */
async function formOf(query: OptionsQuery, saveTo: string, context: ToolContext): Promise<SavedForm> {
  const { targetingId, parent, search, contextIds, empty } = query;
  const isPart = (parent ?? search ?? contextIds ?? empty) !== undefined;
  const whole = async (place: Place): Promise<WholeTargeting> => {
    // Loaded late: what knows desired states is not needed for rows of a part.
    const { wholeTargeting } = await import("./save-whole.ts");
    return wholeTargeting(targetingId, place, managementOf(context), context);
  };
  if (!/\.(?:ya?ml|json)$/i.test(saveTo)) {
    const place = await freePlaceFor(saveTo, context.allowedDirs);
    const lines = (rows: AsyncIterable<SavedOption>) => optionLines(rows, place.format);
    return { place, ...(!isPart && { whole: await whole(place) }), isDesired: false, lines };
  }
  if (isPart) {
    throw new ToolError(
      "a .yaml or .json file holds a whole targeting as a desired state, and a part was asked for",
      "Leave out parent, search, contextIds and empty, or name the file .csv or .ndjson.",
    );
  }
  const place = await findFreePlace(saveTo, context.allowedDirs);
  const all = await whole(place);
  return { place, whole: all, isDesired: true, lines: (rows) => all.desired(rows) };
}

function tooShort(remedy: string): ToolError {
  return new ToolError("one wait is too short to read all these options; nothing was saved", `${remedy}.`);
}

class TimeIsUp extends Error {}

async function* withoutContexts(options: readonly PlacedOption[]): AsyncGenerator<SavedOption> {
  for (const option of options) yield savedOption(option, undefined);
}

function countsOf(options: readonly PlacedOption[], contextIds: number): SavedCounts {
  const count = (counts: (placed: PlacedOption) => boolean): number => options.filter(counts).length;
  return {
    options: options.length,
    groups: count(({ option }) => option.type === "collection"),
    subOptions: count(({ option, groupName }) => groupName !== undefined || typeof option.parent === "string"),
    withoutContexts: count(({ option }) => isEmpty(option)),
    contextIds,
  };
}

function largestOf(options: readonly PlacedOption[]): readonly OptionRecord[] {
  const held = options.flatMap(({ option }) => ((option.contextCount ?? 0) > 0 ? [option] : []));
  return held.sort((one, other) => (other.contextCount ?? 0) - (one.contextCount ?? 0)).slice(0, LARGEST);
}

/** The options with the names of their groups, which files have instead of IDs. */
async function placed(
  query: OptionsQuery,
  fresh: boolean | undefined,
  api: ManagementApi,
  context: ToolContext,
): Promise<readonly PlacedOption[]> {
  const { targetingId, parent } = query;
  const { signal } = context;
  const { hits, stopped } = await searchOptions(api, context, {
    walk: { targetingId, parent, signal },
    from: { top: 0 },
    wanted: query,
    most: Number.POSITIVE_INFINITY,
    fresh,
  });
  if (stopped) {
    throw tooShort("Save a part (parent, search), or let TARGETING_MCP_WAIT_MS be longer");
  }
  const group =
    parent === undefined || hits.length === 0
      ? undefined
      : (await api.getOption(parent, { limit: 1 }, { signal })).option.name;
  return hits.map(({ step: { option, groupName = group } }) =>
    groupName === undefined ? { option } : { option, groupName },
  );
}
