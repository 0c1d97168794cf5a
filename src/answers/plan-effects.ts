import type { Loss } from "../changes/plan/plan.ts";
import type { EffectObject, EffectPart } from "../changes/rows/entries.ts";
import { changesOf, type ListedChange } from "../plans/diff/plan.ts";
import { groupNamesOf, type PlanDocument, plansOf } from "../plans/plan-document.ts";
import type { RowLabel, UndoRow } from "../plans/way-back.ts";
import { type Effect, effectPart, effectSentence, GAIN_TITLE, lossParts, shareWords, shortName } from "./approvals.ts";
import { many } from "./message-words.ts";
import { changesOfRow, changeWords, reasonWords, undoCounts } from "./plan-answers.ts";
import { contextIds, place, value } from "./plan-words.ts";

/**
 * Returns the effect of a plan: what it deletes or removes, as it was read now, and all other changes of its document.
 * For an undo, `undoneTool` is the tool of the run that it undoes.
 */
export function effectOfDocument(document: PlanDocument, losses: readonly Loss[], undoneTool?: string): Effect {
  const { wayBack } = document;
  if (wayBack !== undefined) {
    const goes = losses.length === 0 ? "" : ` ${effectSentence(losses)}`;
    return {
      sentence: `Undoes run ${wayBack.undoes}${undoneTool === undefined ? "" : ` (${undoneTool})`}: ${undoCounts(wayBack.rows)}.${goes}`,
      parts: [...lossParts(losses), ...undoParts(wayBack.rows, document)],
    };
  }
  const groupName = groupNamesOf(document);
  const changes = plansOf(document).flatMap((plan) => changesOf(plan, groupName));
  const others = KINDS.flatMap((kind) => {
    const some = changes.filter(kind.isOne);
    return some.length === 0 ? [] : [{ part: effectPart(kind.title, some.map(kind.of)), phrase: kind.phrase(some) }];
  });
  return {
    sentence: `${effectSentence(
      losses,
      others.map(({ phrase }) => phrase),
    )}${shareWords(losses, document.plan.optionsThere, others.length > 0)}`,
    parts: [...lossParts(losses), ...others.flatMap(({ part }) => part)],
  };
}

interface OtherKind {
  readonly title: string;
  readonly isOne: (change: ListedChange) => boolean;
  readonly phrase: (changes: readonly ListedChange[]) => string;
  readonly of: (change: ListedChange) => EffectObject;
}

function object(says: (change: ListedChange) => string): OtherKind["of"] {
  return (change) => {
    const { name, _id } = change;
    return { name: shortName(name), ...(_id !== undefined && { _id }), says: says(change) };
  };
}

/** The kinds of changes that are not losses. Deletions are among the losses. */
const KINDS: readonly OtherKind[] = [
  {
    title: "Targetings renamed",
    isOne: ({ kind, isTargeting = false }) => kind === "renamed" && isTargeting,
    phrase: () => "renames the targeting",
    of: object(({ to }) => `becomes ${value(to)}`),
  },
  {
    title: "Targetings created",
    isOne: ({ kind, isTargeting = false }) => kind === "created" && isTargeting,
    phrase: () => "creates the targeting",
    of: object(() => ""),
  },
  {
    title: "Options renamed",
    isOne: ({ kind, isTargeting = false }) => kind === "renamed" && !isTargeting,
    phrase: ({ length }) => `renames ${many(length, "option")}`,
    of: object(({ to }) => `becomes ${value(to)}`),
  },
  {
    title: "Options moved",
    isOne: ({ kind }) => kind === "moved",
    phrase: ({ length }) => `moves ${many(length, "option")}`,
    of: object(({ from, to }) => `from ${place(from)} to ${place(to)}`),
  },
  {
    title: GAIN_TITLE,
    isOne: ({ kind, added = 0 }) => kind === "contexts" && added > 0,
    phrase: ({ length }) => `adds Context IDs to ${many(length, "option")}`,
    of: object(({ added }) => `gets ${contextIds(added)}`),
  },
  {
    title: "Option groups with other settings",
    isOne: ({ kind }) => kind === "settings",
    phrase: ({ length }) => `changes the settings of ${many(length, "option group")}`,
    of: object(({ from, to }) => `exposeChildren: ${value(from)} → ${value(to)}`),
  },
  {
    title: "Options created",
    isOne: ({ kind, isTargeting = false }) => kind === "created" && !isTargeting,
    phrase: ({ length }) => `creates ${many(length, "option")}`,
    of: object(({ to, added }) => `${to === undefined ? "" : `in ${value(to)}, `}with ${contextIds(added)}`),
  },
];

const UNDO_TITLES: Readonly<Record<RowLabel, string>> = {
  unresolved: "Not known yet: the request was sent and not answered",
  impossible: "Not restored",
  notOurs: "Not restored: changed by others since",
  caveat: "Restored with differences",
  exact: "Restored exactly",
};

function undoParts(rows: readonly UndoRow[], document: PlanDocument): readonly EffectPart[] {
  return Object.entries(UNDO_TITLES).flatMap(([label, title]) =>
    effectPart(
      title,
      rows
        .filter(({ undo }) => undo === label)
        .map((row) => {
          const { name, _id } = row;
          const says = [...changesOfRow(row, document).map(changeWords), ...reasonWords(row)].join("; ");
          return { name: shortName(name), ...(_id !== undefined && { _id }), says };
        }),
    ),
  );
}
