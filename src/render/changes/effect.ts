import type { Loss } from "../../changes/plan/plan.ts";
import type { EffectPart } from "../../changes/rows/entries.ts";
import { many } from "../failures/words.ts";
import { fenced, shown } from "../fence.ts";
import { tokensOf } from "../page.ts";

const MOST_NAMED = 10;
/** What the names may cost an agent, in tokens; a person is shown all ten. */
const NAMES_TOKENS = 350;

/** What a plan takes away, for the agent that shows it to a person: names are fenced. */
export function effectText(losses: readonly Loss[]): string {
  return [effectSentence(losses), fenced(lossLines(losses, NAMES_TOKENS))].join("\n");
}

/** What a plan takes away, for the person who is asked. */
export function questionText(losses: readonly Loss[]): string {
  return [effectSentence(losses), ...lossLines(losses, Number.POSITIVE_INFINITY)].join("\n");
}

/** Says to a person who was asked before, or to the agent, what it was then and what it is now. */
export function changedEffect(before: string, now: readonly Loss[]): string {
  const sentence = effectSentence(now);
  if (before === sentence)
    return "names, groups or other details of what goes have changed since; the counts are the same";
  return `before, it was: ${before} Now it is: ${sentence}`;
}

/** Counts of what goes, in one sentence. */
export function effectSentence(losses: readonly Loss[]): string {
  const of = (kind: Loss["kind"]): readonly Loss[] => losses.filter((loss) => loss.kind === kind);
  const sum = (some: readonly Loss[]): number => some.reduce((total, { count }) => total + count, 0);
  const [targetings, groups, options, changed] = [of("targeting"), of("optionGroup"), of("option"), of("contextIds")];
  const ownContextIds = groups.reduce((total, loss) => total + (loss.ownContextIds ?? 0), 0);
  const emptied = changed.filter(({ empties }) => empties).length;
  const parts = [
    targetings.length > 0 && `deletes ${many(targetings.length, "targeting")} with ${many(sum(targetings), "option")}`,
    groups.length > 0 &&
      `deletes ${many(groups.length, "option group")} with ${many(ownContextIds, "own Context ID")} and ` +
        `${many(sum(groups), "sub-option")}, which become top-level options where they are not deleted here too`,
    options.length > 0 && `deletes ${many(options.length, "option")} with ${many(sum(options), "Context ID")}`,
    changed.length > 0 &&
      `takes ${many(sum(changed), "Context ID")} away from ${many(changed.length, "option")}` +
        (emptied > 0 ? `, and leaves ${emptied} of them empty` : ""),
  ].filter((part) => part !== false);
  return `This ${parts.join(", and ")}. It cannot be undone by the service.`;
}

/** How many objects of a kind are shown to a person who decides on the page. */
const MOST_SHOWN = 100;

const PART_TITLES: Readonly<Record<Loss["kind"], string>> = {
  targeting: "Targetings deleted",
  optionGroup: "Option groups deleted",
  option: "Options deleted",
  contextIds: "Options that lose Context IDs",
};

/** What a plan takes away, by kind and by name, as the page shows it: names are plain text there. */
export function effectParts(losses: readonly Loss[]): readonly EffectPart[] {
  return Object.entries(PART_TITLES).flatMap(([kind, title]) => {
    const some = losses.filter((loss) => loss.kind === kind);
    const objects = some.slice(0, MOST_SHOWN).map((loss) => ({ name: shortName(loss.name), says: lossWords(loss) }));
    return some.length === 0 ? [] : [{ title, count: some.length, objects }];
  });
}

/** What a person who decides on the page is told of what goes: what is lost for good, and what can be undone. */
export function lostAndUndoable(parts: readonly EffectPart[], days: number) {
  if (parts.length === 0) return { lost: [], undoable: [] };
  const deletes = parts.some(({ title }) => title !== PART_TITLES.contextIds);
  const back = deletes ? "names, groups and Context IDs back, under new IDs" : "the Context IDs back";
  return {
    lost: deletes ? ["Ad products and campaigns that refer to what is deleted do not know what Undo brings back."] : [],
    undoable: [`Undo brings ${back}, for ${days} days.`],
  };
}

const MOST_LETTERS = 1000;

function shortName(name: string): string {
  return name.length <= MOST_LETTERS ? name : `${name.slice(0, MOST_LETTERS)}…`;
}

function lossLines(losses: readonly Loss[], tokens: number): readonly string[] {
  const named: string[] = [];
  let left = tokens;
  // What is left empty is named first.
  const first = losses.toSorted((one, other) => Number(other.empties ?? false) - Number(one.empties ?? false));
  for (const loss of first.slice(0, MOST_NAMED)) {
    const line = `${shown(loss.name)} (${loss._id}): ${lossWords(loss)}`;
    left -= tokensOf(line);
    if (left < 0) break;
    named.push(line);
  }
  const more = losses.length - named.length;
  return more > 0 ? [...named, `and ${more} more`] : named;
}

/** What the number of a loss counts. */
function lossWords({ kind, count, ownContextIds = 0, empties }: Loss): string {
  switch (kind) {
    case "targeting":
      return `the targeting and its ${many(count, "option")}`;
    case "optionGroup":
      return `the group and its ${many(ownContextIds, "own Context ID")}; it has ${many(count, "sub-option")}`;
    case "option":
      return `the option and its ${many(count, "Context ID")}`;
    case "contextIds":
      return `loses ${many(count, "Context ID")}${empties ? " and is empty then" : ""}`;
  }
}

/** Tells the model that a person was asked a second time, and why. */
export function askedTwiceHint(changed: string): string {
  return `the person was asked twice, since something changed: ${changed}`;
}

/** A question that is asked anew, with what has changed since it was asked before. */
export function changedQuestion(changed: string, message: string): string {
  return `Something has changed since you were asked: ${changed}\n${message}`;
}
