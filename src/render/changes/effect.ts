import type { Loss } from "../../changes/plan/plan.ts";
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

/** Counts of what goes, in one sentence. */
function effectSentence(losses: readonly Loss[]): string {
  const of = (kind: Loss["kind"]): readonly Loss[] => losses.filter((loss) => loss.kind === kind);
  const sum = (some: readonly Loss[]): number => some.reduce((total, { count }) => total + count, 0);
  const [targetings, groups, options, changed] = [of("targeting"), of("optionGroup"), of("option"), of("contextIds")];
  const ownContextIds = groups.reduce((total, loss) => total + (loss.ownContextIds ?? 0), 0);
  const emptied = changed.filter(({ empties }) => empties).length;
  const parts = [
    targetings.length > 0 &&
      `deletes ${plural(targetings.length, "targeting")} with ${plural(sum(targetings), "option")}`,
    groups.length > 0 &&
      `deletes ${plural(groups.length, "option group")} with ${plural(ownContextIds, "own Context ID")} and ` +
        `${plural(sum(groups), "sub-option")}, which become top-level options where they are not deleted here too`,
    options.length > 0 && `deletes ${plural(options.length, "option")} with ${plural(sum(options), "Context ID")}`,
    changed.length > 0 &&
      `takes ${plural(sum(changed), "Context ID")} away from ${plural(changed.length, "option")}` +
        (emptied > 0 ? `, and leaves ${emptied} of them empty` : ""),
  ].filter((part) => part !== false);
  return `This ${parts.join(", and ")}. It cannot be undone by the service.`;
}

function lossLines(losses: readonly Loss[], tokens: number): readonly string[] {
  const named: string[] = [];
  let left = tokens;
  for (const { name, _id, count } of losses.slice(0, MOST_NAMED)) {
    const line = `${shown(name)} (${_id}): ${count}`;
    left -= tokensOf(line);
    if (left < 0) break;
    named.push(line);
  }
  const more = losses.length - named.length;
  return more > 0 ? [...named, `and ${more} more`] : named;
}

function plural(count: number, what: string): string {
  return `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;
}
