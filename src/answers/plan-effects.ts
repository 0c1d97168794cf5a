import type { Loss } from "../changes/plan/plan.ts";
import type { EffectObject, EffectPart } from "../changes/rows/entries.ts";
import { changesOf, type ListedChange } from "../plans/plan.ts";
import { groupNamesOf, type PlanDocument, plansOf } from "../plans/plan-document.ts";
import type { UndoRow } from "../plans/undo-plan.ts";
import { capitalized } from "../platform/text.ts";
import {
  type Effect,
  type EffectTargeting,
  effectPart,
  effectWords,
  GAIN_TITLE,
  lossParts,
  shortName,
  targetingWords,
} from "./approvals.ts";
import { many, undoResultWords } from "./message-words.ts";
import { changesOfRow, RANK, reasonWords, undoCounts } from "./plan-answers.ts";
import { contextIds, place, value } from "./plan-words.ts";

/** Returns the effect of a plan for the person who approves it. `undone`: what the run that is undone did. */
export function effectOfDocument(document: PlanDocument, losses: readonly Loss[], undone?: string): Effect {
  const { wayBack } = document;
  const targeting = targetingOf(document);
  if (wayBack !== undefined) {
    const goes = losses.length === 0 ? undefined : effectWords(losses, [], { isUndo: true });
    const { undoes, rows, already, further } = wayBack;
    const did = undone === undefined ? "" : ` (${undone})`;
    const isOne = further.length === 0;
    const where = isOne ? ` in ${targetingWords(targeting, "the targeting")}` : "";
    const counts = `${where}: ${undoCounts(rows, already)}.`;
    return {
      sentence: `Undoes run ${undoes}${did}${counts}${goes === undefined ? "" : ` ${goes.sentence}`}`,
      note: `Undoes an earlier run${counts} ${goes?.note ?? ""}`.trim(),
      optionsThere: isOne ? targeting.optionsThere : undefined,
      parts: [...lossParts(losses), ...undoParts(rows, document)],
    };
  }
  const groupName = groupNamesOf(document);
  const changes = plansOf(document).flatMap((plan) => changesOf(plan, groupName));
  const others = KINDS.flatMap((kind) => {
    const some = changes.filter(kind.isOne);
    return some.length === 0 ? [] : [{ part: effectPart(kind.title, some.map(kind.of)), phrase: kind.phrase(some) }];
  });
  return {
    ...effectWords(
      losses,
      others.map(({ phrase }) => phrase),
      targeting,
    ),
    optionsThere: targeting.optionsThere,
    parts: [...lossParts(losses), ...others.flatMap(({ part }) => part)],
  };
}

function targetingOf({ plan: { targeting, optionsThere } }: PlanDocument): EffectTargeting {
  const { _id, name } = targeting;
  return { optionsThere, ...(_id !== undefined && { within: _id }), ...(name !== undefined && { withinName: name }) };
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

function isLoss({ kind, added = 0 }: ListedChange): boolean {
  return kind === "deleted" || (kind === "contexts" && added === 0);
}

/** Returns what happens to an object. The name of the object is not included. */
function changeSays(change: ListedChange): string {
  const { kind, from, to, added = 0, removed = 0, isTargeting = false } = change;
  switch (kind) {
    case "created":
      return isTargeting
        ? "is created"
        : `is created${to === undefined ? "" : ` in ${value(to)}`} with ${contextIds(added)}`;
    case "renamed":
      return `becomes ${value(to)}`;
    case "moved":
      return `moves from ${place(from)} to ${place(to)}`;
    case "contexts":
      return [added > 0 && `gets ${contextIds(added)}`, removed > 0 && `loses ${contextIds(removed)}`]
        .filter((part) => part !== false)
        .join(", ");
    case "settings":
      return `exposeChildren: ${value(from)} → ${value(to)}`;
    case "deleted":
      return isTargeting ? "is deleted" : `is deleted with ${contextIds(removed)}`;
    case "adopted":
      return "";
  }
}

/** Returns what an undo does to objects, without deletions and removals, which are among the losses. */
function undoParts(rows: readonly UndoRow[], document: PlanDocument): readonly EffectPart[] {
  return RANK.flatMap((label) =>
    effectPart(
      capitalized(undoResultWords(label, rows)),
      rows
        .filter(({ undo }) => undo === label)
        .map((row) => ({ row, changes: changesOfRow(row, document) }))
        .filter(({ changes }) => label !== "exact" || !changes.every(isLoss))
        .map(({ row, changes }) => {
          const { name, _id, reasons = [] } = row;
          const kept = reasons.includes("notRead") ? [`keeps ${contextIds(row.contextIds)}`] : [];
          const says = [...changes.map(changeSays), ...kept, ...reasonWords(row)].join("; ");
          return { name: shortName(name), ...(_id !== undefined && { _id }), says };
        }),
    ),
  );
}
