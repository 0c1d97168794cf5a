import { GAIN_TITLE, LOSS_TITLES } from "../answers/approvals.ts";
import { many } from "../answers/message-words.ts";
import type { EffectPart } from "../changes/rows/entries.ts";
import type { ChangeCounts } from "./wire.ts";

// Reads the parts of the effect that a run waiting for approval would have.

/** The nouns for deleted objects, by the title of the part of the effect that lists them. */
export const DELETED: ReadonlyMap<string, string> = new Map([
  [LOSS_TITLES.targeting, "targeting"],
  [LOSS_TITLES.optionGroup, "group"],
  [LOSS_TITLES.option, "option"],
]);

/** Returns the nouns for the kinds of objects that are deleted: `option`, `group`, `targeting`. */
export function nounsOf(parts: readonly EffectPart[]): readonly string[] {
  return parts.flatMap(({ title }) => DELETED.get(title) ?? []);
}

/** Returns the noun for what is deleted: `object` if several kinds of objects are deleted. */
export function nounOf(parts: readonly EffectPart[]): string {
  const [noun = "object", ...others] = nounsOf(parts);
  return others.length === 0 ? noun : "object";
}

export function deletedIn(parts: readonly EffectPart[]): EffectPart["objects"] {
  return parts.flatMap(({ title, objects }) => (DELETED.has(title) ? objects : []));
}

/**
 * Returns the sum of one number over all objects of an effect: the Context IDs that they lose, the sub-options that
 * remain when their group is deleted (`freed`), the options of deleted targetings, or how many of these are groups.
 */
export function sumIn(parts: readonly EffectPart[], of: "contextIds" | "freed" | "options" | "groups"): number {
  return parts.flatMap(({ objects }) => objects).reduce((sum, { [of]: count = 0 }) => sum + count, 0);
}

/** Describes what would be deleted, for example `1 group and 2 options`. Empty if nothing is deleted. */
export function deletionWords(parts: readonly EffectPart[]): string {
  const kinds = parts.flatMap(({ title, count }) => {
    const noun = DELETED.get(title);
    if (noun === "targeting" && count === 1) return ["the targeting"];
    return noun === undefined ? [] : [many(count, noun)];
  });
  return kinds.join(" and ");
}

/** Returns how many objects an effect creates, changes and deletes. An object in several parts counts once. */
export function countsOfEffect(parts: readonly EffectPart[]): ChangeCounts {
  const counts = { created: 0, changed: 0, deleted: 0 };
  const changed = new Set<string>();
  for (const { title, count, objects } of parts) {
    const kind = kindOfPart(title);
    if (kind === "changed") for (const [at, { _id }] of objects.entries()) changed.add(_id ?? `${title} ${at}`);
    else if (kind !== undefined) counts[kind] += count;
  }
  return { ...counts, changed: changed.size };
}

const KINDS_OF_PARTS: Readonly<Record<string, keyof ChangeCounts>> = {
  [LOSS_TITLES.contextIds]: "changed",
  [GAIN_TITLE]: "changed",
  "Targetings renamed": "changed",
  "Options renamed": "changed",
  "Options moved": "changed",
  "Option groups with other settings": "changed",
  "Targetings created": "created",
  "Options created": "created",
};

/** Returns the kind of change that a part lists. Undefined for notes, and for options deleted with their targeting. */
export function kindOfPart(title: string): keyof ChangeCounts | undefined {
  if (DELETED.has(title)) return "deleted";
  return Object.hasOwn(KINDS_OF_PARTS, title) ? KINDS_OF_PARTS[title] : undefined;
}
