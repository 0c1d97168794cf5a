import { ownReason } from "../../runs/outcome.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { Inputs } from "../call.ts";
import { contextCount, optionCount } from "../rows/steps.ts";
import { badName } from "./checks.ts";
import { checkOption, type NamesInUse, type NewOption, optionItem, planOption } from "./option-drafts.ts";
import { Plan } from "./plan.ts";

interface TargetingCandidate {
  readonly object: number;
  readonly name: string;
  readonly options: readonly NewOption[];
}

/** Plans creating targetings. Options that do not fit into the same request follow (management-api 8.1). */
export function planCreateTargetings(input: Inputs["create_targetings"]): Plan {
  const plan = new Plan();
  const candidates: TargetingCandidate[] = [];
  const names = new Map<string, number>();
  input.items.forEach((item, index) => {
    const object = plan.object({ index, name: item.name });
    const options = (item.options ?? []).map((option, child) => ({
      option,
      object: plan.object({ index, child, name: option.name }),
      grandchildren: (option.children ?? []).map((grandchild, position) =>
        plan.object({ index, child, grandchild: position, name: grandchild.name }),
      ),
    }));
    const first = names.get(item.name);
    const reason =
      badName(item.name) ??
      (first === undefined ? undefined : ownReason("DUPLICATE_IN_INPUT", { duplicateOfIndex: first, field: "name" }));
    if (reason !== undefined) {
      plan.fail(object, reason);
      const left = ownReason("NEEDS_FAILED", { needs: object });
      for (const inside of options) {
        for (const each of [inside.object, ...inside.grandchildren]) plan.leaveOut(each, left);
      }
      return;
    }
    names.set(item.name, index);
    const optionNames: NamesInUse = new Map();
    const good = options.flatMap(({ option, object: at, grandchildren }) => {
      const place = { object: at, child: (position: number): number => grandchildren[position] ?? at };
      return checkOption(plan, option, place, optionNames, false) ?? [];
    });
    candidates.push({ object, name: item.name, options: good });
  });
  planAll(plan, candidates);
  return plan;
}

function planAll(plan: Plan, candidates: readonly TargetingCandidate[]): void {
  const requests = Math.ceil(candidates.length / LIMITS.targetingItems.value);
  const room = {
    options: requests * LIMITS.targetingCreateOptions.value,
    contextIds: requests * LIMITS.requestContextIds.value,
  };
  const left: { readonly option: NewOption; readonly targeting: number }[] = [];
  for (const { object, name, options } of candidates) {
    const inside: NewOption[] = [];
    const ofItem = { options: LIMITS.targetingCreateOptions.value, contextIds: LIMITS.requestContextIds.value };
    for (const option of options) {
      const size = { options: optionCount(option), contextIds: contextCount(option) };
      const hasRoom = [room, ofItem].every((r) => size.options <= r.options && size.contextIds <= r.contextIds);
      if (hasRoom) {
        inside.push(option);
        for (const each of [room, ofItem]) {
          each.options -= size.options;
          each.contextIds -= size.contextIds;
        }
      } else left.push({ option, targeting: object });
    }
    const objects = [object, ...inside.flatMap((option) => [option.object, ...option.children.map((c) => c.object)])];
    const items = inside.map((option) => optionItem(option, option.contexts, option.children));
    plan.add(plan.make.createTargeting(items.length > 0 ? { name, options: items } : { name }, { objects }));
  }
  for (const { option, targeting } of left) planOption(plan, option, { targeting: { object: targeting } });
}
