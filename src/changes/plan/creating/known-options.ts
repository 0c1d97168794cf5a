import { mapConcurrently, readOptionContents } from "../../../reading/option-contents.ts";
import { readOptions } from "../../../reading/option-lists.ts";
import { ownReason } from "../../../runs/reasons.ts";
import type { OptionRecord } from "../../../spec/records.ts";
import type { OnExisting } from "../../rows/inputs.ts";
import { badId, parts } from "../checks.ts";
import type { Plan, PlanningContext } from "../plan.ts";
import type { OptionCandidate } from "./option-drafts.ts";

/** Where options are added, and what happens to those that exist. */
interface Adding {
  readonly targetingId: string;
  readonly onExisting?: OnExisting | undefined;
}

/**
 * Plans the rows that have the ID of an option which the targeting holds, as the sheet with results has them: what the
 * option holds already is done, anything else is an edit, which fails here. An ID that the targeting does not hold says
 * nothing about it. Gives the other candidates. Reads List Options, and the Context IDs of such options.
 */
export async function planKnown(
  plan: Plan,
  { targetingId, onExisting = "fail" }: Adding,
  candidates: readonly OptionCandidate[],
  { api, signal }: PlanningContext,
): Promise<readonly OptionCandidate[]> {
  if (!candidates.some(({ item }) => item._id !== undefined)) return candidates;
  const there = new Map<string, Known>();
  for await (const option of readOptions(api, targetingId, signal)) {
    const { _id, name, type, exposeChildren, contextCount, parent } = option;
    there.set(_id, { _id, name, type, exposeChildren, contextCount, parent });
  }
  const known: { readonly candidate: OptionCandidate; readonly option: Known }[] = [];
  const others = candidates.filter((candidate) => {
    const { _id } = candidate.item;
    const option = _id === undefined ? undefined : there.get(_id);
    if (option !== undefined) known.push({ candidate, option });
    const invalid = _id === undefined ? undefined : badId("_id", _id);
    if (invalid !== undefined) plan.fail(candidate.object, invalid);
    return option === undefined && invalid === undefined;
  });
  const groupOf = ({ parent }: Known): string | undefined =>
    typeof parent === "string" ? there.get(parent)?.name : undefined;
  await mapConcurrently(known, async ({ candidate, option }) => {
    const { object, item } = candidate;
    const fields = differingFields(candidate, option, groupOf(option));
    const missing = await missingContexts(candidate, option, (id) => readOptionContents(api, id, signal));
    const { _id, name } = option;
    if (onExisting === "skip" || (fields.length === 0 && missing.length === 0)) {
      plan.settlements.push({ object, outcome: "alreadyDone", _id });
    } else if (onExisting === "addContexts" && fields.length === 0) {
      let after: readonly number[] = [];
      for (const add of parts(missing)) {
        const step = plan.make.updateOption({ id: _id }, { contexts: { add } }, { objects: [object], after });
        after = [plan.add(step).id];
      }
    } else {
      if (missing.length > 0) fields.push("Context IDs");
      plan.fail(object, ownReason("INVALID_ROW", { problem: "edited", _id, name, value: item.name, fields }));
    }
  });
  return others;
}

type Known = Pick<OptionRecord, "_id" | "name" | "type" | "exposeChildren" | "contextCount" | "parent">;

/** The columns in which a row says something else than its option is; a blank cell says nothing. */
function differingFields({ item }: OptionCandidate, option: Known, group: string | undefined): string[] {
  const { name, type, exposeChildren, parentName } = item;
  return [
    ...(name !== option.name ? ["Option"] : []),
    ...(parentName !== undefined && parentName !== group ? ["Group"] : []),
    ...(type !== undefined && type !== option.type ? ["Is Group"] : []),
    ...(exposeChildren !== undefined && exposeChildren !== (option.exposeChildren ?? false)
      ? ["Expose Sub-options"]
      : []),
  ];
}

/** The Context IDs of a row that its option does not hold. */
async function missingContexts(
  { option: { contexts } }: OptionCandidate,
  { _id, contextCount }: Known,
  read: (id: string) => Promise<{ readonly contexts: readonly string[] }>,
): Promise<readonly string[]> {
  if (contexts.length === 0 || contextCount === 0) return contexts;
  const held = new Set((await read(_id)).contexts);
  return contexts.filter((id) => !held.has(id));
}
