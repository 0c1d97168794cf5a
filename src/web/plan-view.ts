import { undoLine } from "../answers/plan-answers.ts";
import { FIELD_WORDS } from "../answers/plan-words.ts";
import {
  CHANGE_KINDS,
  changesOf,
  type Difference,
  itemChanges,
  type ListedChange,
  type PlanItem,
  type StatePlan,
} from "../plans/diff/plan.ts";
import { groupNamesOf, type PlanDocument, plansOf } from "../plans/plan-document.ts";
import type { ToolServices } from "../tools/context.ts";
import { whyNotApplied } from "../tools/kept-plan.ts";
import type { PlanChange, PlanDifference, PlanView } from "./wire.ts";

/** So many of each list are sent; the page says how many more there are. */
const MOST_OF_KIND = 50;
const MOST_DIFFERENCES = 70;

/** A plan as the page draws it. */
export function planView(document: PlanDocument, services: ToolServices): PlanView {
  const { plan, wayBack } = document;
  const groupName = groupNamesOf(document);
  const all = plansOf(document).flatMap((one) => [
    ...changesOf({ ...one, items: [] }, groupName).map((change) => shownChange(change)),
    ...one.items.flatMap((item) => changesOfItem(one, item, groupName)),
  ]);
  const omitted: Record<string, number> = {};
  const first = <T>(name: string, list: readonly T[], most: number): readonly T[] => {
    if (list.length > most) omitted[name] = list.length - most;
    return list.slice(0, most);
  };
  const changes = CHANGE_KINDS.flatMap((kind) =>
    first(
      kind,
      all.filter((change) => change.kind === kind),
      MOST_OF_KIND,
    ),
  );
  const { _id, name, rename } = plan.targeting;
  const others = wayBack?.rows.filter(({ undo }) => undo !== "exact") ?? [];
  return {
    targeting: { name, _id, rename },
    changes,
    conflicts: first("conflicts", plan.conflicts, MOST_DIFFERENCES).map(shownDifference),
    drift: first("drift", plan.drift, MOST_DIFFERENCES).map(shownDifference),
    refused: [...whyNotApplied(document, services), ...plan.problems.map(({ message }) => message)].slice(
      0,
      MOST_DIFFERENCES,
    ),
    differs: first("differs", others, MOST_DIFFERENCES).map((row) => undoLine(row)),
    omitted,
  };
}

/** The changes of an item, each with the group in which its option is, or will be. */
function changesOfItem(plan: StatePlan, item: PlanItem, groupName: (id: string) => string): readonly PlanChange[] {
  const changes = itemChanges(plan, item, groupName);
  const placed = changes.find(({ kind }) => kind === "created" || kind === "moved");
  const seen = item.kind === "create" ? null : item.seen.parent;
  const group = placed === undefined ? seen && groupName(seen) : (placed.to ?? null);
  return changes.map((change) => shownChange(change, group));
}

function shownChange({ to, ...change }: ListedChange, group: ListedChange["to"] = null): PlanChange {
  const { kind } = change;
  return { ...change, to: kind === "created" ? undefined : to, group: group === null ? undefined : String(group) };
}

function shownDifference({ name, _id, field, base, file, service }: Difference): PlanDifference {
  return { name, _id, field: FIELD_WORDS[field], base, file, service };
}
