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
  const boundOf = boundsOf(steps, writing);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < ids.length; ) {
    const id = ids[at] ?? 0;
    const rows = writing.targetingInPath ? 0 : rowsFrom(steps, ids, at);
    pieces.push(at === 0 ? OPENED : COMMA);
    pieces.push(...(rows > 0 ? steps.listed(id, rows) : itemOf(steps, id, boundOf(id))));
    at += Math.max(rows, 1);
  }
  pieces.push(ids.length === 0 ? EMPTY : CLOSED);
  return { count: ids.length, json: Buffer.concat(pieces) };
}

const OPENED = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSED = Buffer.from("]");
const EMPTY = Buffer.from("[]");

/** How many rows that follow each other there are from one on. */
function rowsFrom(steps: StepList, ids: readonly number[], from: number): number {
  const first = ids[from] ?? 0;
  let count = 1;
  while (ids[from + count] === first + count) count += 1;
  return steps.rowsFrom(first, count);
}

/** The bound fields of a step, as text. */
function boundsOf(steps: StepList, { idOf, targetingInPath }: Writing): (step: number) => Buffer {
  const known = new Map<readonly Binding[], Buffer>();
  return (id) => {
    const bindings = steps.bindingsOf(id);
    const before = known.get(bindings);
    if (before !== undefined) return before;
    const isNamed = steps.itemSize(id) > 0;
    const sent = bindings.filter(({ field }) => !(targetingInPath && field === "targeting"));
    const bound = Buffer.from(sent.map((binding) => boundField(id, binding, idOf, isNamed)).join(","));
    known.set(bindings, bound);
    return bound;
  };
}

function boundField(step: number, binding: Binding, idOf: Writing["idOf"], isNamed: boolean): string {
  const id = idOf(binding);
  if (id === undefined) throw new RangeError(`step ${step} needs the ID of an object that was not made`);
  return isNamed ? `${JSON.stringify(binding.field)}:${JSON.stringify(id)}` : JSON.stringify(id);
}

/** `{bound,` and the item without its opening brace; a delete is its ID alone. */
function itemOf(steps: StepList, id: number, bound: Buffer): readonly Uint8Array[] {
  const item = steps.bytesOf(id);
  if (item.length === 0) return [bound];
  const own = item.subarray(steps.isWhole(id) ? Buffer.byteLength(boundFieldOf(steps.bindingsOf(id))) : 1);
  return item.length > EMPTY_ITEM_BYTES && bound.length > 0 ? [BRACE, bound, COMMA, own] : [BRACE, bound, own];
}

const BRACE = Buffer.from("{");
const EMPTY_ITEM_BYTES = "{}".length;
