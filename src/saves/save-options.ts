import type { ManagementApi } from "../api/management.ts";
import { findFreePlace, type Place } from "../files/folders.ts";
import { freePlaceFor, savedForm, saveFile, saveFiles } from "../files/save-file.ts";
import { type BaseOption, baseOptionOf, basePathOf, baseText, type ServiceOption } from "../plans/base.ts";
import { formatOfDesired } from "../plans/file/read-desired.ts";
import { desiredText } from "../plans/file/write-desired.ts";
import { serviceOption } from "../plans/read-targeting.ts";
import type { Clock } from "../platform/clock.ts";
import { FileError, inPieces } from "../platform/files.ts";
import { readOptionContents } from "../reads/option-contents.ts";
import { isEmpty, scanOptions } from "../reads/option-lists.ts";
import { untilStable } from "../reads/pages.ts";
import { contextLines, optionLines, type PlacedOption, type ReadOption, withContexts } from "../reads/saved-options.ts";
import type { ContentsStore } from "../runs/backend.ts";
import type { OptionRecord } from "../spec/records.ts";
import type { ListAsked, OptionAsked, OptionSummary, SaveCall, Saved } from "./save-state.ts";

const LARGEST = 5;

/**
 * Saves options, or the Context IDs of one option, to a file. Throws an ApiError if they cannot be read, or a FileError
 * if the file cannot be written.
 */
export function saveAsked({ tool, input }: SaveCall, world: SavingWorld): Promise<Saved> {
  return tool === "list_options" ? saveOptions(input, world) : saveContexts(input, world);
}

async function saveContexts(
  { optionId, saveTo, folders, delimiter }: OptionAsked,
  { api, signal }: SavingWorld,
): Promise<Saved> {
  const place = await freePlaceFor(saveTo, folders, delimiter);
  const { option, contexts } = await readOptionContents(api, optionId, signal);
  await saveFile(place, contextLines(option, contexts, place.form));
  const contextIds = contexts.length;
  return { savedTo: place.path, option: optionSummary(option), total: contextIds, counts: { options: 1, contextIds } };
}

/**
 * Saves options as rows or as a desired state. For a whole targeting, also saves a base: a file from which later plans
 * see what was changed after the export.
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
  const pieces = lines(counted(withContexts(api, options, { signal, source, onRead: whole?.take })));
  // The data for the base is collected while the first file is written, so the base must come second.
  const base = whole === undefined ? [] : [{ place: whole.base, pieces: whole.baseText() }];
  await saveFiles([{ place, pieces }, ...base]);
  const counts = countsOf(options, contextIds);
  return { savedTo: place.path, ...(whole && { base: whole.base.path }), counts, largest: largestOf(options) };
}

export function isPart({ parent, search, contextIds, empty }: ListAsked): boolean {
  return (parent ?? search ?? contextIds ?? empty) !== undefined;
}

/**
 * Chooses between rows and a desired state, by the extension of the file. `whole` collects the data for the base,
 * and is undefined if only a part of a targeting is saved. Throws a FileError if the file exists.
 */
async function formOf(asked: ListAsked, world: SavingWorld) {
  const { targetingId, saveTo, folders, delimiter } = asked;
  if (!asksDesired(saveTo)) {
    const place = await freePlaceFor(saveTo, folders, delimiter);
    const whole = isPart(asked) ? undefined : await wholeTargeting(targetingId, place, folders, world);
    return { place, whole, lines: (rows: AsyncIterable<ReadOption>) => optionLines(rows, place.form) };
  }
  const place = await findFreePlace(saveTo, folders);
  if (delimiter !== undefined) savedForm(saveTo, delimiter);
  const whole = await wholeTargeting(targetingId, place, folders, world);
  return { place, whole, lines: (rows: AsyncIterable<ReadOption>) => inPieces(whole.desired(rows)) };
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

function largestOf(options: readonly PlacedOption[]): readonly OptionSummary[] {
  const held = options.flatMap(({ option }) => ((option.contextCount ?? 0) > 0 ? [option] : []));
  const sorted = held.sort((one, other) => (other.contextCount ?? 0) - (one.contextCount ?? 0));
  return sorted.slice(0, LARGEST).map(optionSummary);
}

function optionSummary({ _id, name, type, contextCount, childCount, parent }: OptionRecord): OptionSummary {
  return { _id, name, type, contextCount, childCount, ...(typeof parent === "string" && { parent }) };
}

/** Reads the options to save, and adds the names of their groups. Files contain these names instead of group IDs. */
async function placed(asked: ListAsked, world: SavingWorld): Promise<readonly PlacedOption[]> {
  const { api, contents: store, signal } = world;
  const { targetingId, parent, fresh } = asked;
  const steps = await untilStable(async (options) => {
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
  return steps.map(({ option, groupName = group }) => ({ option, groupName }));
}

/** Returns whether the extension of a file is that of a desired state, which always describes a whole targeting. */
export function asksDesired(saveTo: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(saveTo);
}

interface SavingWorld {
  readonly api: ManagementApi;
  readonly contents: ContentsStore | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Returns the place of the base. Throws a FileError if an earlier export with the same name already has its base there,
 * because plans of that export need it.
 */
async function freeBasePlace(path: string, folders: readonly string[]): Promise<Place> {
  const base = basePathOf(path);
  try {
    return await findFreePlace(base, folders);
  } catch (thrown) {
    if (!(thrown instanceof FileError)) throw thrown;
    throw new FileError(
      `${thrown.message}. This file is the base of an earlier export with the same name, perhaps with another extension. Each export of a whole targeting writes a base beside its file`,
      "Give another file name, or delete the earlier export together with its base.",
      { cause: thrown },
    );
  }
}

async function wholeTargeting(
  targetingId: string,
  { path }: Place,
  folders: readonly string[],
  { api, clock, signal }: SavingWorld,
) {
  const base = await freeBasePlace(path, folders);
  // A desired state can be written only after all options were read, so they are kept in memory. Rows are written as
  // soon as they are read.
  const isHeld = asksDesired(path);
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const targeting = { _id, name };
  const lines = new Map<string, BaseOption>();
  const held = new Map<string, ServiceOption>();
  let order: readonly string[] = [];
  return {
    base,
    /** Sets the order of the options in `desired` and `baseText`. */
    expect(options: readonly PlacedOption[]): void {
      order = options.map(({ option }) => option._id);
    },
    take(option: OptionRecord, contexts: readonly string[]): void {
      const read = serviceOption(option, contexts);
      lines.set(option._id, baseOptionOf(read));
      if (isHeld) held.set(option._id, read);
    },
    /** Reads all rows, then yields the desired state. Throws a FileError if its format allows fewer options. */
    async *desired(rows: AsyncIterable<unknown>): AsyncGenerator<string> {
      const reading = rows[Symbol.asyncIterator]();
      while (!(await reading.next()).done);
      yield* desiredText({ targeting, options: order.flatMap((id) => held.get(id) ?? []) }, formatOfDesired(path));
    },
    async *baseText(): AsyncGenerator<string> {
      const options = new Map(order.flatMap((id) => lines.get(id) ?? []).map((line) => [line._id, line]));
      const exportedAt = new Date(clock.now()).toISOString();
      yield [...baseText({ targeting, exportedAt, options })].join("");
    },
  };
}
