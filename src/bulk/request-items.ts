import type { BulkItems } from "../api/management.ts";
import { boundFieldOf, type StepList } from "./step-table.ts";
import type { Binding } from "./work.ts";

/** How the items of a request are written. */
interface Writing {
  /** The ID of a binding. */
  readonly idOf: (binding: Binding) => string | undefined;
  /** Leaves the targeting out, where the route names it. */
  readonly targetingInPath: boolean;
}

/**
 * The items of a request that carries steps, as they travel: the bound fields, then the item's own. Throws a RangeError
 * when an ID is needed that is not there, since such a step may not leave.
 */
export function requestItems(steps: StepList, ids: readonly number[], writing: Writing): BulkItems {
  const bounds = boundsOf(steps, ids, writing);
  const bytes = ids.reduce((sum, id, at) => sum + (bounds[at]?.length ?? 0) + steps.itemSize(id) + EXTRA, EXTRA);
  const json = Buffer.allocUnsafe(bytes);
  let end = json.write("[");
  for (let at = 0; at < ids.length; ) {
    const id = ids[at] ?? 0;
    const count = writing.targetingInPath ? 0 : wholeFrom(steps, ids, at);
    end = count > 0 ? steps.copyItems(id, count, json, end) : writeItem(json, end, bounds[at] ?? NOTHING, steps, id);
    at += Math.max(count, 1);
  }
  const last = ids.length === 0 ? end : end - 1;
  json.write("]", last);
  return { count: ids.length, json: json.subarray(0, last + 1) };
}

/** What an item takes at the most beside its own text and the bound fields: two commas. */
const EXTRA = 2;
const NOTHING = Buffer.alloc(0);

/** How many items from one on have their bound fields in them and lie one after the other. */
function wholeFrom(steps: StepList, ids: readonly number[], from: number): number {
  const first = ids[from] ?? 0;
  let count = 0;
  while (from + count < ids.length) {
    const id = ids[from + count] ?? 0;
    if (id !== first + count || !steps.isWhole(id) || steps.itemOf(id) !== steps.itemOf(first) + count) break;
    count += 1;
  }
  return count;
}

/** The bound fields of each step, as text. */
function boundsOf(steps: StepList, ids: readonly number[], { idOf, targetingInPath }: Writing): readonly Buffer[] {
  const known = new Map<readonly Binding[], Buffer>();
  return ids.map((id) => {
    const bindings = steps.bindingsOf(id);
    const before = known.get(bindings);
    if (before !== undefined) return before;
    const isNamed = steps.itemSize(id) > 0;
    const sent = bindings.filter(({ field }) => !(targetingInPath && field === "targeting"));
    const bound = Buffer.from(sent.map((binding) => boundField(id, binding, idOf, isNamed)).join(","));
    known.set(bindings, bound);
    return bound;
  });
}

function boundField(step: number, binding: Binding, idOf: Writing["idOf"], isNamed: boolean): string {
  const id = idOf(binding);
  if (id === undefined) throw new RangeError(`step ${step} needs the ID of an object that was not made`);
  return isNamed ? `${JSON.stringify(binding.field)}:${JSON.stringify(id)}` : JSON.stringify(id);
}

/** `{bound,` and the item without its opening brace, and a comma; a delete is its ID alone. */
function writeItem(json: Buffer, from: number, bound: Buffer, steps: StepList, id: number): number {
  const size = steps.itemSize(id);
  let end = from;
  if (size > 0) end += json.write("{", end);
  end += bound.copy(json, end);
  if (size > EMPTY_ITEM_BYTES && bound.length > 0) end += json.write(",", end);
  if (size > 0) end = steps.copyItem(id, json, end, steps.isWhole(id) ? boundFieldOf(steps.bindingsOf(id)).length : 1);
  return end + json.write(",", end);
}

const EMPTY_ITEM_BYTES = "{}".length;
