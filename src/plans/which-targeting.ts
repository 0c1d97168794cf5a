import { FileError } from "../platform/file-error.ts";
import type { TargetingMemory } from "../runs/backend/backend.ts";
import { isUlid } from "../spec/ulid.ts";
import type { Base } from "./base/base.ts";
import type { DesiredTargeting } from "./file/desired.ts";

/** The sources that may name the targeting. */
export interface TargetingHints {
  /** What the caller gave: an ID or a name. */
  readonly given?: string | undefined;
  readonly file?: DesiredTargeting | undefined;
  readonly base?: Base | undefined;
  readonly byName: boolean;
  readonly memory: Pick<TargetingMemory, "resolve">;
}

/**
 * The ID of the targeting that a file is planned onto: as the caller says, as the file does, as the base does.
 * Undefined where the file names one that was never seen, which the plan then creates. Throws a FileError where they
 * contradict each other, where a name is unknown or ambiguous, and where none of them says anything.
 */
export async function whichTargeting({
  given,
  file,
  base,
  byName,
  memory,
}: TargetingHints): Promise<string | undefined> {
  // By names, the file's own ID is that of another targeting.
  const ofFile = byName ? undefined : file?._id;
  const asked = given === undefined ? undefined : await givenTargeting(given, memory);
  if (asked !== undefined && ofFile !== undefined && asked !== ofFile) {
    throw new FileError(
      `the file is of the targeting ${ofFile}, and ${asked} was asked for`,
      "Leave --targeting out, or plan the file onto the other one by names: --by-name (byName).",
    );
  }
  const known = asked ?? ofFile;
  if (base !== undefined && known !== undefined && base.targeting._id !== known) {
    throw new FileError(
      `the base is of the targeting ${base.targeting._id}, and the plan of ${known}`,
      "Name a base of that targeting with --base, or take the one beside the file away.",
    );
  }
  if (known !== undefined) return known;
  if (base !== undefined) return base.targeting._id;
  if (file?.name === undefined) {
    throw new FileError(
      "neither the file nor anything else says which targeting is meant",
      "Write targeting into the file, or give --targeting.",
    );
  }
  const found = await memory.resolve(file.name);
  if (found.kind === "one") return found.thing._id;
  if (found.kind === "unknown") return undefined;
  throw ambiguous(file.name, found.candidates);
}

/** The ID that a caller means by an ID or a name. Throws a FileError where a name is unknown or ambiguous. */
export async function givenTargeting(given: string, memory: Pick<TargetingMemory, "resolve">): Promise<string> {
  const id = given.trim().toUpperCase();
  if (isUlid(id)) return id;
  const found = await memory.resolve(given);
  if (found.kind === "one") return found.thing._id;
  if (found.kind === "ambiguous") throw ambiguous(given, found.candidates);
  const seen = found.candidates.map(({ _id, name }) => `${JSON.stringify(name)} (${_id})`).join(", ");
  throw new FileError(
    `no targeting named ${JSON.stringify(given)} has been seen`,
    `Give its ID, which the web console shows.${seen === "" ? "" : ` Seen: ${seen}.`}`,
  );
}

function ambiguous(name: string, candidates: readonly { readonly _id: string }[]): FileError {
  return new FileError(
    `several targetings named ${JSON.stringify(name)} have been seen`,
    `Give the ID: ${candidates.map(({ _id }) => _id).join(", ")}.`,
  );
}
