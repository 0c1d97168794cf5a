import type { BulkItems } from "../api/management.ts";
import type { StepList } from "./step-table.ts";
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
export function requestItems(steps: StepList, ids: readonly number[], { idOf, targetingInPath }: Writing): BulkItems {
  const known = new Map<readonly Binding[], Buffer>();
  const bounds = ids.map((id) => {
    const bindings = steps.bindingsOf(id);
    const before = known.get(bindings);
    if (before !== undefined) return before;
    const sent = bindings.filter(({ field }) => !(targetingInPath && field === "targeting"));
    const bound = Buffer.from(sent.map((binding) => boundField(id, binding, idOf, steps.itemSize(id) > 0)).join(","));
    known.set(bindings, bound);
    return bound;
  });
  const bytes = ids.reduce((sum, id, at) => sum + (bounds[at]?.length ?? 0) + steps.itemSize(id) + EXTRA, EXTRA);
  const json = Buffer.allocUnsafe(bytes);
  let end = json.write("[");
  ids.forEach((id, at) => {
    if (at > 0) end += json.write(",", end);
    end = writeItem(json, end, bounds[at] ?? NOTHING, steps, id);
  });
  end += json.write("]", end);
  return { count: ids.length, json: json.subarray(0, end) };
}

/** What an item takes at the most beside its own text and the bound fields: two commas. */
const EXTRA = 2;
const NOTHING = Buffer.alloc(0);

function boundField(step: number, binding: Binding, idOf: Writing["idOf"], isNamed: boolean): string {
  const id = idOf(binding);
  if (id === undefined) throw new RangeError(`step ${step} needs the ID of an object that was not made`);
  return isNamed ? `${JSON.stringify(binding.field)}:${JSON.stringify(id)}` : JSON.stringify(id);
}

/** `{bound,` and the item without its opening brace; a delete is its ID alone. */
function writeItem(json: Buffer, from: number, bound: Buffer, steps: StepList, id: number): number {
  const size = steps.itemSize(id);
  if (size === 0) return from + bound.copy(json, from);
  if (bound.length === 0) return steps.copyItem(id, json, from, 0);
  let end = from + json.write("{", from);
  end += bound.copy(json, end);
  if (size > EMPTY_ITEM_BYTES) end += json.write(",", end);
  return steps.copyItem(id, json, end, 1);
}

const EMPTY_ITEM_BYTES = "{}".length;
