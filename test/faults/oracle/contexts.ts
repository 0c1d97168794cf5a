import type { Judged } from "../oracle.ts";
import type { ApprovalRequest } from "../wishes.ts";
import type { Evidence } from "./evidence.ts";

type ContextsWish = Extract<ApprovalRequest, { readonly kind: "contexts" }>;

/** Compares the outcome of a change of Context IDs with those that the option had before and has now. */
export function checkContexts(evidence: Evidence, wish: ContextsWish, { result }: Judged): readonly string[] {
  const [id, ...more] = evidence.keysOf(wish);
  if (id === undefined) return result.outcome === "failed" ? [] : [`${result.outcome}, though no option has the name`];
  if (more.length > 0) return [];
  const { before, project } = evidence.of;
  const held = before.options.get(id)?.contexts ?? new Set<string>();
  const option = project.options.get(id);
  if (result.outcome === "succeeded" && !before.options.has(id)) return ["there is no such option"];
  if (result.outcome === "alreadyDone") return ["a change of Context IDs is never already done"];
  if (option === undefined || result.outcome === "unknown" || result.outcome === "pending") return [];
  const applied = appliedTo(evidence, id);
  const wanted = after(evidence, applied, held);
  // The engine reads the Context IDs of other options when it plans the run. After an early death it plans again, so
  // other users may have changed them.
  const others = new Set(
    [id, ...sourcesOf(evidence)]
      .flatMap((each) => evidence.changes(each))
      .flatMap((change) =>
        change.actor === "other" && change.what === "contexts" ? [change.added, change.removed] : [],
      )
      .flat(),
  );
  if (applied.some((each) => each.result.outcome === "unknown")) return [];
  const isOpen = applied.length > 0 && applied.some((each) => each.result.outcome !== "succeeded");
  if (isOpen) return ["items about one option ended differently"];
  const all = new Set([...wanted, ...option.contexts]);
  const wrong = [...all].filter((each) => !others.has(each) && wanted.has(each) !== option.contexts.has(each));
  return wrong.length === 0 ? [] : [`${wrong.length} Context IDs are not as reported, such as ${wrong[0]}`];
}

/** Returns the reported items about an option that were not refused, in the order of the call. */
function appliedTo(evidence: Evidence, id: string): readonly Judged[] {
  return evidence.judged.filter(
    ({ wish, result }) =>
      wish.kind === "contexts" &&
      evidence.keysOf(wish)[0] === id &&
      result.outcome !== "failed" &&
      result.outcome !== "notApplied",
  );
}

/** Returns the options whose Context IDs the call adds to, or removes from, other options. */
function sourcesOf({ of: { schedule } }: Evidence): readonly string[] {
  if (schedule.call.tool !== "update_contexts") return [];
  return schedule.call.input.items.flatMap(({ addFrom = [], removeFrom = [] }) => [...addFrom, ...removeFrom]);
}

/** Returns the Context IDs that an option has after the items were applied in order. */
function after(evidence: Evidence, applied: readonly Judged[], held: ReadonlySet<string>): ReadonlySet<string> {
  const { call } = evidence.of.schedule;
  if (call.tool !== "update_contexts") return held;
  let contexts = new Set(held);
  const from = (ids: readonly string[] = []): readonly string[] =>
    ids.flatMap((id) => [...(evidence.of.before.options.get(id)?.contexts ?? [])]);
  for (const { index } of applied) {
    const item = call.input.items[index];
    if (item === undefined) continue;
    if (item.set !== undefined) contexts = new Set(item.set.map((each) => each.trim()));
    for (const each of [...(item.add ?? []), ...from(item.addFrom)]) contexts.add(each.trim());
    for (const each of [...(item.remove ?? []), ...from(item.removeFrom)]) contexts.delete(each.trim());
  }
  return contexts;
}
