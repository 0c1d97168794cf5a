import { findFreePlace, type Place } from "../files/folders.ts";
import { inPieces } from "../files/pieces.ts";
import { freePlaceFor, savedForm, saveFile, saveFiles } from "../files/save-file.ts";
import { readOptionContents } from "../reading/option-contents.ts";
import { isEmpty, scanOptions } from "../reading/option-scan.ts";
import { steadily } from "../reading/pages.ts";
import { type PlacedOption, type ReadOption, withContexts } from "../reading/saved-options.ts";
import { contextLines, optionLines } from "../reading/saved-rows.ts";
import type { OptionRecord } from "../spec/records.ts";
import type { ListAsked, OptionAsked, SaveCall, Saved, ToldOption } from "./save-state.ts";
import { asksDesired, type SavingWorld, type WholeTargeting, wholeTargeting } from "./save-whole.ts";

/** How many of the largest options are named. */
const LARGEST = 5;

/** Saves what a call asks for. Throws ApiErrors, and a FileError where a file may not be written. */
export function saveAsked({ tool, input }: SaveCall, world: SavingWorld): Promise<Saved> {
  return tool === "list_options" ? saveOptions(input, world) : saveContexts(input, world);
}

/** Saves all Context IDs of an option to a file that `update_contexts` reads. */
async function saveContexts(
  { optionId, saveTo, folders, delimiter }: OptionAsked,
  { api, signal }: SavingWorld,
): Promise<Saved> {
  const place = await freePlaceFor(saveTo, folders, delimiter);
  const { option, contexts } = await readOptionContents(api, optionId, signal);
  await saveFile(place, contextLines(option, contexts, place.form));
  const contextIds = contexts.length;
  return { savedTo: place.path, option: toldOption(option), total: contextIds, counts: { options: 1, contextIds } };
}

/**
 * Saves options, sub-options included, with their Context IDs, and says what is in the file: rows, or a whole targeting as a desired state; a whole targeting gets its base beside the file.
 * Context IDs that were read before are not read again, unless `fresh`. Throws ApiErrors, and a FileError where a file
 * may not be written.
 */
async function saveOptions(asked: ListAsked, world: SavingWorld): Promise<Saved> {
  const { api, signal, contents: store } = world;
  const { place, whole, lines } = await formOf(asked, world);
  const options = await placed(asked, world);
  whole?.expect(options);
  let contextIds = 0;
  const counted = async function* (rows: AsyncIterable<ReadOption>) {
    for await (const row of rows) {
      contextIds += row.contexts.length;
      yield row;
    }
  };
  const source = { targetingId: asked.targetingId, store, fresh: asked.fresh };
  const pieces = lines(counted(withContexts(api, options, signal, source, whole?.take)));
  // The base is made of what the file took.
  await saveFiles([
    { place, pieces },
    ...(whole === undefined ? [] : [{ place: whole.base, pieces: whole.baseText() }]),
  ]);
  const largest = largestOf(options);
  return {
    savedTo: place.path,
    ...(whole && { base: whole.base.path }),
    counts: countsOf(options, contextIds),
    largest,
  };
}

/** Whether a part of a targeting is asked for. */
export function isPart({ parent, search, contextIds, empty }: ListAsked): boolean {
  return (parent ?? search ?? contextIds ?? empty) !== undefined;
}

/** What is written, and where. */
interface SavedForm {
  readonly place: Place;
  /** Absent where only a part of the targeting is saved. */
  readonly whole?: WholeTargeting;
  readonly lines: (rows: AsyncIterable<ReadOption>) => AsyncIterable<string | Uint8Array>;
}

/** The form that the name of the file asks for. Throws a FileError where a file is there. */
async function formOf(asked: ListAsked, world: SavingWorld): Promise<SavedForm> {
  const { targetingId, saveTo, folders, delimiter } = asked;
  if (!asksDesired(saveTo)) {
    const place = await freePlaceFor(saveTo, folders, delimiter);
    const lines = (rows: AsyncIterable<ReadOption>) => optionLines(rows, place.form);
    return { place, lines, ...(!isPart(asked) && { whole: await wholeTargeting(targetingId, place, folders, world) }) };
  }
  const place = await findFreePlace(saveTo, folders);
  if (delimiter !== undefined) savedForm(saveTo, delimiter);
  const whole = await wholeTargeting(targetingId, place, folders, world);
  return { place, whole, lines: (rows) => inPieces(whole.desired(rows)) };
}

function countsOf(options: readonly PlacedOption[], contextIds: number): Saved["counts"] {
  const count = (counts: (placed: PlacedOption) => boolean): number => options.filter(counts).length;
  return {
    options: options.length,
    groups: count(({ option }) => option.type === "collection"),
    subOptions: count(({ option, groupName }) => groupName !== undefined || typeof option.parent === "string"),
    withoutContexts: count(({ option }) => isEmpty(option)),
    contextIds,
  };
}

function largestOf(options: readonly PlacedOption[]): readonly ToldOption[] {
  const held = options.flatMap(({ option }) => ((option.contextCount ?? 0) > 0 ? [option] : []));
  return held
    .sort((one, other) => (other.contextCount ?? 0) - (one.contextCount ?? 0))
    .slice(0, LARGEST)
    .map(toldOption);
}

function toldOption({ _id, name, type, contextCount, childCount, parent }: OptionRecord): ToldOption {
  return { ...{ _id, name, type, contextCount, childCount }, ...(typeof parent === "string" && { parent }) };
}

/** The options with the names of their groups, which files have instead of IDs. */
async function placed(
  asked: ListAsked,
  { api, contents: store, signal }: SavingWorld,
): Promise<readonly PlacedOption[]> {
  const { targetingId, parent, fresh } = asked;
  const steps = await steadily(async (options) => {
    const walk = { targetingId, parent, signal, ...options };
    const job = { walk, from: { top: 0 }, wanted: asked, contents: { store, fresh } };
    const found: PlacedOption[] = [];
    for await (const { value } of scanOptions(api, job)) if (value !== undefined) found.push(value.step);
    return found;
  });
  const group =
    parent === undefined || steps.length === 0
      ? undefined
      : (await api.getOption(parent, { limit: 1 }, { signal })).option.name;
  return steps.map(({ option, groupName = group }) => (groupName === undefined ? { option } : { option, groupName }));
}
