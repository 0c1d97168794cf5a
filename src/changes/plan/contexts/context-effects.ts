import type { OptionContents } from "../../../reading/option-contents.ts";
import type { Plan } from "../plan.ts";

/** What one item asks for: `set`, or what is to be added and removed. */
export interface AskedChange {
  readonly object: number;
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly set?: readonly string[];
}

/** Notes for the report what each item about an option changes, one after the other, given what the option holds. */
export function noteRows(plan: Plan, asked: readonly AskedChange[], { option, contexts }: OptionContents): void {
  const held = new Set(contexts);
  for (const { object, add, remove, set } of asked) {
    const wanted = set ?? add;
    const kept = new Set(set);
    const gone = set === undefined ? remove : [...held].filter((id) => !kept.has(id));
    const added = wanted.filter((id) => !held.has(id)).length;
    const removed = gone.filter((id) => held.has(id)).length;
    for (const id of gone) held.delete(id);
    for (const id of wanted) held.add(id);
    const change = {
      // An item with an empty list adds nothing, and says so.
      ...((set !== undefined || add.length > 0 || remove.length === 0) && {
        added,
        alreadyThere: wanted.length - added,
      }),
      ...((set !== undefined || remove.length > 0) && { removed }),
      ...(set === undefined && remove.length > 0 && { absent: remove.length - removed }),
    };
    plan.objects.amend(object, { name: option.name, change });
  }
  for (const { object } of asked) plan.objects.amend(object, { contextCount: held.size });
}
