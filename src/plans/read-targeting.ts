import type { ManagementApi } from "../api/management.ts";
import { folded } from "../platform/by-key.ts";
import { FileError, undefinedIf } from "../platform/files.ts";
import { isMissing } from "../reads/option-contents.ts";
import { readOptions } from "../reads/option-lists.ts";
import { type PlacedOption, withContexts } from "../reads/saved-options.ts";
import type { ContentsStore, TargetingMemory } from "../runs/backend.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { comparedFields, type OptionRecord } from "../spec/records.ts";
import { type Base, digestOfContexts, type ServiceOption, type ServiceTargeting } from "./base.ts";
import type { DesiredTargeting } from "./file/desired.ts";

export interface HowToRead {
  readonly signal: AbortSignal;
  /** The Context IDs that earlier calls have read from the service. */
  readonly store?: ContentsStore | undefined;
  /** Whether to read all Context IDs from the service, even if they are in `store`. */
  readonly fresh?: boolean | undefined;
  /** Returns whether the Context IDs of an option are needed. Default: those of all options. */
  readonly wants?: ((option: Pick<OptionRecord, "_id" | "name" | "type">) => boolean) | undefined;
  /** Called repeatedly with the number of options that were read and the number of all options. */
  readonly onProgress?: ((read: number, of: number) => void) | undefined;
}

/** Reads a whole targeting. Throws the ApiError of a failed read, or a ListError if the lists keep changing. */
export async function readTargeting(
  api: ManagementApi,
  targetingId: string,
  { signal, store, fresh, wants = () => true, onProgress }: HowToRead,
): Promise<ServiceTargeting> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const records: OptionRecord[] = [];
  for await (const record of readOptions(api, targetingId, signal)) records.push(record);
  const count = records.length;
  let read = 0;
  const reads = withContexts(api, takenFrom(records), {
    ...{ signal, source: { targetingId, store, fresh }, wants },
    onRead() {
      read += 1;
      onProgress?.(read, count);
    },
  });
  const options: ServiceOption[] = [];
  for await (const { option: record, contexts } of reads) {
    const option = serviceOption(record, contexts);
    // The number of Context IDs shows that the option is not empty, although they were not read.
    options.push(wants(record) ? option : { ...option, contextCount: record.contextCount });
  }
  return { targeting: { _id, name }, options };
}

/** Yields the options of a list and removes them from it, so that each option is in memory only once. */
function* takenFrom(list: OptionRecord[]): Generator<PlacedOption> {
  list.reverse();
  for (let option = list.pop(); option !== undefined; option = list.pop()) yield { option };
}

/** Returns what `reading` returns, or undefined if the service answers that the object does not exist. */
export function unlessMissing<Value>(reading: Promise<Value>): Promise<Value | undefined> {
  return undefinedIf(isMissing, reading);
}

export function serviceOption(record: OptionRecord, contexts: readonly string[]): ServiceOption {
  return { ...comparedFields(record), contexts, digest: digestOfContexts(contexts) };
}

export interface TargetingHints {
  readonly given?: string | undefined;
  readonly file?: DesiredTargeting | undefined;
  readonly base?: Base | undefined;
  readonly byName: boolean;
  readonly memory: Pick<TargetingMemory, "resolve">;
}

/**
 * Returns the ID of the targeting that the call, the file or the base names. Undefined if only the file names it, by a
 * name that is unknown: the plan then creates it. Throws a FileError if call, file and base contradict each other or
 * name no targeting, if a name is ambiguous, or if the name in the call is unknown.
 */
export async function whichTargeting(hints: TargetingHints): Promise<string | undefined> {
  const { given, file, base, byName, memory } = hints;
  // With `byName`, a file exported from one targeting can be applied to another, so the ID in the file is ignored.
  const ofFile = byName ? undefined : file?._id;
  const asked = given === undefined ? undefined : await resolveTargetingArgument(given, memory);
  if (asked !== undefined && ofFile !== undefined && asked !== ofFile) {
    throw new FileError(
      `the file describes the targeting ${ofFile}, but the call names ${asked}`,
      "To plan the file for its own targeting, do not name a targeting in the call. To plan it for the other targeting, matching options by name, use byName: true.",
    );
  }
  const known = asked ?? ofFile;
  if (base !== undefined && known !== undefined && base.targeting._id !== known) {
    throw new FileError(
      `the base describes the targeting ${base.targeting._id}, but the plan is for ${known}`,
      `Give a base of ${known} with the argument base, or remove the base beside the file.`,
    );
  }
  if (known !== undefined) return known;
  if (base !== undefined) {
    if (!byName && file?.name !== undefined) await checkNameOfBase(file.name, base, memory);
    return base.targeting._id;
  }
  if (file?.name === undefined) {
    throw new FileError(
      "neither the file nor the call names the targeting",
      'Name the targeting in the field "targeting" of the file, or give targetingId or targetingName.',
    );
  }
  const found = await memory.resolve(file.name);
  if (found.kind === "one") return found.thing._id;
  if (found.kind === "unknown") return undefined;
  throw ambiguous(file.name, found.candidates);
}

async function checkNameOfBase(
  name: string,
  { targeting }: Base,
  memory: Pick<TargetingMemory, "resolve">,
): Promise<void> {
  const found = await memory.resolve(name);
  const isOther = found.kind === "one" && found.thing._id !== targeting._id;
  // The targeting may have been renamed since the export, so its name may differ from that in the base.
  const isRenamed = found.kind === "one" && !isOther;
  if (isRenamed || (name === targeting.name && !isOther)) return;
  const [named, owner] = [name, targeting.name].map((one) => JSON.stringify(one));
  const other = isOther ? ` (${found.thing._id})` : "";
  throw new FileError(
    `the file names the targeting ${named}${other}, but its base was exported from ${owner} (${targeting._id})`,
    `To change ${owner}, add _id: ${targeting._id} under targeting in the file; this renames it to ${named}. ` +
      `To change ${named}, save the file under another name, which has no base file; to match the options of an ` +
      "exported file by their names, use byName: true.",
  );
}

/**
 * Throws a FileError if a targeting was found by the name that this server remembers, but has another name now. The
 * caller may have meant another targeting.
 */
export function checkSeenName(
  { given, file, base, byName }: Omit<TargetingHints, "memory">,
  { targeting: { _id, name } }: ServiceTargeting,
): void {
  const isById = (file?._id !== undefined && !byName) || base !== undefined;
  const asked = given ?? (isById ? undefined : file?.name);
  if (asked === undefined || isUlid(asked.trim().toUpperCase()) || folded(asked) === folded(name)) return;
  const [seen, now] = [asked, name].map((one) => JSON.stringify(one));
  throw new FileError(
    `the targeting that was named ${seen} (${_id}) is now named ${now}`,
    given === undefined
      ? `To change ${now}, or to give it the name ${seen} again, put _id: ${_id} below targeting in the file. ` +
          `For another targeting that is named ${seen} now, put its ID there (shown in the web console).`
      : `To use it, give the ID ${_id} or the name ${now}. ` +
          `For another targeting that is named ${seen} now, give its ID (shown in the web console).`,
  );
}

/**
 * Returns the ID of a targeting that a call names by ID or name. Throws a FileError if the name is unknown or
 * ambiguous. An ID is not looked up.
 */
export async function resolveTargetingArgument(
  given: string,
  memory: Pick<TargetingMemory, "resolve">,
): Promise<string> {
  const id = given.trim().toUpperCase();
  if (isUlid(id)) return id;
  const found = await memory.resolve(given);
  if (found.kind === "one") return found.thing._id;
  if (found.kind === "ambiguous") throw ambiguous(given, found.candidates);
  const seen = found.candidates.map(({ _id, name }) => `${JSON.stringify(name)} (${_id})`).join(", ");
  throw new FileError(
    `no targeting named ${JSON.stringify(given)} has been seen`,
    `Give the ID of the targeting, which the web console shows.${seen === "" ? "" : ` Targetings seen before: ${seen}.`}`,
  );
}

function ambiguous(name: string, candidates: readonly { readonly _id: string }[]): FileError {
  return new FileError(
    `several targetings named ${JSON.stringify(name)} have been seen`,
    `Give the ID: ${candidates.map(({ _id }) => _id).join(", ")}.`,
  );
}
