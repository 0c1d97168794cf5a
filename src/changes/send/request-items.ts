import type { BulkItems } from "../../api/management.ts";
import type { Step } from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import { rowOf } from "../rows/step-list.ts";
import type { RunState } from "../state/change-state.ts";

/**
 * The items of a request that carries steps, as they travel: the bound fields, then the item's own. `targetingInPath`
 * leaves the targeting out, where the route names it. Throws a RangeError when an ID is needed that is not there, since
 * such a step may not leave.
 */
export function requestItems(state: RunState, ids: readonly number[], targetingInPath: boolean): BulkItems {
  const pieces: Uint8Array[] = [OPENING];
  for (let at = 0; at < ids.length; ) {
    if (at > 0) pieces.push(COMMA);
    const id = ids[at] ?? 0;
    const part = state.steps.partAt(id);
    if (part instanceof RowBlock && !targetingInPath) {
      let rows = 1;
      while (ids[at + rows] === id + rows && state.steps.partAt(id + rows) === part) rows += 1;
      pieces.push(part.items(rowOf(part, id), rowOf(part, id) + rows));
      at += rows;
    } else {
      const step = state.steps.at(id);
      if (step !== undefined) pieces.push(Buffer.from(itemText(state, step, targetingInPath)));
      at += 1;
    }
  }
  pieces.push(CLOSING);
  return { count: ids.length, json: Buffer.concat(pieces) };
}

const OPENING = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSING = Buffer.from("]");

/** The JSON of one item; a delete is its ID alone. */
function itemText(state: RunState, { id: step, item, bindings }: Step, targetingInPath: boolean): string {
  const bound: Record<string, string> = {};
  for (const binding of bindings) {
    const id = state.boundId(binding);
    if (id === undefined) throw new RangeError(`step ${step} needs the ID of an object that was not made`);
    if (!(targetingInPath && binding.field === "targeting")) bound[binding.field] = id;
  }
  return JSON.stringify(item === undefined ? bound._id : { ...bound, ...item });
}
