import { lostAndUndoable } from "../answers/approvals.ts";
import { many } from "../answers/message-words.ts";
import type { ApprovalRun } from "../approvals/approvals.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { EffectPart } from "../changes/rows/entries.ts";
import { thousands } from "../platform/text.ts";
import { countsOfEffect, kindOfPart } from "./title.ts";
import type { EffectObjects, RunRow, EffectPart as ShownPart, Waiting } from "./wire.ts";

/** The most objects of a kind that a row or a page of them holds. */
const MOST_OBJECTS = 100;
/** From so many deletions on a person types the targeting's name to approve them. */
const LARGE = 100;
/** What a person can type: letters, marks, digits, punctuation, symbols and single spaces, and not too many of them. */
const TYPED = /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+(?: [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$/u;
const MOST_TYPED = 60;

/** What is said of a run that waits, beside what the person may do: absent where it waits for nothing. */
export function waitingOf(
  run: ChangeRun | ApprovalRun,
  { days, targeting }: { readonly days: number; readonly targeting: RunRow["targeting"] },
): Omit<Waiting, "ended"> | undefined {
  const { waits, effect = "" } = run.state.facts;
  if (waits === undefined) return undefined;
  const { digest, parts, until, elsewhere, stale } = waits;
  const contextIds = parts.reduce((sum, part) => sum + contextIdsIn(part), 0);
  return {
    ...{ digest, effect, parts: parts.map(firstObjects), expiresAt: until, elsewhere },
    ...lostAndUndoable(parts, days),
    act: actOf(run, parts),
    counts: countsOfEffect(parts),
    magnitude: magnitudeOf(run, parts),
    contextIds: contextIds > 0 ? contextIds : undefined,
    typed: elsewhere === undefined ? typedFor(parts, targeting) : undefined,
    stale: stale === undefined ? undefined : [stale],
  };
}

function contextIdsIn({ objects }: EffectPart): number {
  return objects.reduce((sum, { contextIds = 0 }) => sum + contextIds, 0);
}

const DELETED: Readonly<Record<string, string>> = {
  "Targetings deleted": "targeting",
  "Option groups deleted": "group",
  "Options deleted": "option",
};

/** What the button does: `Delete 260 options`, `Apply 5 changes`. */
function actOf(run: ChangeRun | ApprovalRun, parts: readonly EffectPart[]): string {
  if (!isChangeRun(run)) return run.header.call.tool === "resume_run" ? "Resume the run" : "Send the tests";
  const { call } = run.header;
  const { created, changed, deleted } = countsOfEffect(parts);
  const all = created + changed + deleted;
  if (call.tool === "apply_plan") {
    if (call.input.plannedBy === "undo_run") return "Undo the changes";
    return `Apply ${many(all, "change")}`;
  }
  const kinds = parts.flatMap(({ title, count }) => {
    const noun = Object.hasOwn(DELETED, title) ? DELETED[title] : undefined;
    if (noun === "targeting" && count === 1) return ["the targeting"];
    return noun === undefined ? [] : [many(count, noun)];
  });
  if (kinds.length > 0) return `Delete ${kinds.join(" and ")}`;
  return changed > 0 ? `Change ${many(changed, "option")}` : "Approve";
}

/** How many options are concerned, of how many in their targeting. */
function magnitudeOf(run: ChangeRun | ApprovalRun, parts: readonly EffectPart[]): Waiting["magnitude"] {
  if (!isChangeRun(run)) return undefined;
  const { changed, deleted } = countsOfEffect(parts);
  const whole = run.state.facts.optionsThere;
  const targetings = parts.find(({ title }) => title === "Targetings deleted");
  if (targetings !== undefined) return { count: deleted, verb: "deleted", within: withOptions(targetings) };
  if (deleted > 0) return { count: deleted, whole, verb: "deleted" };
  return changed > 0 ? { count: changed, whole, verb: "changed" } : undefined;
}

/** What goes with targetings: `the targeting with its 333 options`. */
function withOptions({ count, objects: [first] }: EffectPart): string {
  if (count === 1 && first?.says !== undefined) return `the targeting with its ${first.says}`;
  return `${many(count, "targeting")} with all their options`;
}

/**
 * What a person has to type to approve something large, on the page alone: the name of its targeting, or the ID where the
 * name cannot be typed, or else how much it deletes. Undefined where it is not large.
 */
export function typedFor(parts: readonly EffectPart[], targeting: RunRow["targeting"]): string | undefined {
  const { deleted } = countsOfEffect(parts);
  const whole = parts.find(({ title }) => title === "Targetings deleted")?.objects[0];
  if (deleted < LARGE && whole === undefined) return undefined;
  const { name, _id } = whole ?? targeting ?? {};
  const composed = name?.normalize("NFC");
  if (composed !== undefined && composed.length <= MOST_TYPED && TYPED.test(composed)) return composed;
  return _id ?? thousands(deleted);
}

/** Whether a person typed what they had to: spaces around it and decomposed letters do not matter. */
export function isTyped(typed: string | undefined, wanted: string): boolean {
  return typed?.trim().normalize("NFC") === wanted;
}

/** What a row holds of a kind: the page asks for the others. */
function firstObjects({ title, count, objects }: EffectPart): ShownPart {
  const isBeside = kindOfPart(title) === undefined ? (true as const) : undefined;
  return { title, count, objects: objects.slice(0, MOST_OBJECTS).map(shownObject), isBeside };
}

function shownObject({ name, says }: EffectPart["objects"][number]): ShownPart["objects"][number] {
  return { name, ...(says !== undefined && { says }) };
}

/** A page of the objects of a kind whose name has a text in it. */
export function objectsOf(part: EffectPart, query: URLSearchParams): EffectObjects {
  const text = (query.get("search") ?? "").toLowerCase();
  const found = part.objects.filter(
    ({ name, _id }) => name.toLowerCase().includes(text) || _id === query.get("search"),
  );
  const from = Math.max(0, Math.trunc(Number(query.get("from"))) || 0);
  return { objects: found.slice(from, from + MOST_OBJECTS).map(shownObject), total: found.length };
}
