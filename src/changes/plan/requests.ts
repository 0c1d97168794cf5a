import type { BulkOperation } from "../../spec/routes.ts";
import type { PlannedRequest } from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import type { StepList } from "../rows/steps.ts";
import { columnsOf, pack, REQUEST_LIMITS } from "./packing.ts";

/** Objects are created before other steps use them. */
const ORDER: readonly BulkOperation[] = [
  "createTargetings",
  "addOptions",
  "renameTargetings",
  "updateOptions",
  "deleteOptions",
  "deleteTargetings",
];

/** The step IDs of each request. */
export type Requests = readonly (readonly number[])[];

type Steps = Pick<StepList, "length" | "partAt" | "parts" | "weightOf" | "areIndependent">;

/** Returns the next requests, all of one operation. Steps with different `apartBy` keys do not share one. */
export function nextRequests(steps: Steps, ready: readonly number[], apartBy?: (step: number) => string): Requests {
  const [next] = inOrder(steps, ready);
  if (next === undefined) return [];
  const apart = apartBy === undefined ? [next] : [...groups(next, apartBy).values()];
  return apart.flatMap((ids) => packed(steps, ids));
}

function packed(steps: Steps, ids: readonly number[]): Requests {
  const operation = operationOf(steps, ids);
  if (operation === undefined) return [];
  const weights = columnsOf(ids.length, (at) => steps.weightOf(ids[at] ?? 0));
  const requests = pack(weights, REQUEST_LIMITS[operation]);
  return requests.map((members) => members.map((member) => ids[member] ?? 0));
}

function inOrder(steps: Steps, ids: readonly number[]): Requests {
  const byOperation = groups(ids, (id) => steps.partAt(id)?.operation);
  return ORDER.flatMap((operation) => {
    const some = byOperation.get(operation);
    return some === undefined ? [] : [some];
  });
}

function groups<Key>(ids: readonly number[], keyOf: (id: number) => Key): ReadonlyMap<Key, readonly number[]> {
  const byKey = new Map<Key, number[]>();
  let last: { readonly key: Key; readonly together: number[] } | undefined;
  for (const id of ids) {
    const key = keyOf(id);
    if (last?.key !== key) last = { key, together: byKey.get(key) ?? [] };
    if (last.together.push(id) === 1) byKey.set(key, last.together);
  }
  return byKey;
}

function operationOf(steps: Steps, [first = -1]: readonly number[] = []): BulkOperation | undefined {
  return steps.partAt(first)?.operation;
}

/** Returns the requests that are needed if all succeed. */
export function plannedRequests(steps: Steps): Requests {
  const all: number[] = [];
  for (let id = 0; id < steps.length; id += 1) all.push(id);
  if (steps.areIndependent()) return inOrder(steps, all).flatMap((ids) => packed(steps, ids));
  const needs = needsOf(steps);
  const requests: (readonly number[])[] = [];
  const done = new Set<number>();
  let left = all;
  while (left.length > 0) {
    const ready = left.filter((id) => (needs.get(id) ?? []).every((needed) => done.has(needed)));
    const next = nextRequests(steps, ready);
    if (next.length === 0) break;
    requests.push(...next);
    for (const request of next) for (const id of request) done.add(id);
    left = left.filter((id) => !done.has(id));
  }
  return requests;
}

/** Returns whether requests may be sent in any order: one operation, and no step waits for another. */
export function canSendInAnyOrder(steps: Steps, requests: Requests): boolean {
  return steps.areIndependent() && operationOf(steps, requests[0]) === operationOf(steps, requests.at(-1));
}

export function weighed(steps: Steps, requests: Requests): readonly PlannedRequest[] {
  return requests.flatMap((ids) => {
    const operation = operationOf(steps, ids);
    if (operation === undefined) return [];
    let [contextIds, bytes] = [0, 0];
    for (const id of ids) {
      const weight = steps.weightOf(id);
      contextIds += weight.contextIds;
      bytes += weight.bytes;
    }
    return [{ operation, items: ids.length, contextIds, bytes }];
  });
}

function needsOf(steps: Steps): ReadonlyMap<number, readonly number[]> {
  const needs = new Map<number, readonly number[]>();
  const makers = makersOf(steps);
  for (const step of steps.parts()) {
    // A row needs no other step, and no other step needs a row.
    if (step instanceof RowBlock) continue;
    const made = step.bindings.flatMap(({ object }) => (object === undefined ? [] : (makers.get(object) ?? [])));
    const needed = [...(step.after ?? []), ...made];
    if (needed.length > 0) needs.set(step.id, needed);
  }
  return needs;
}

function makersOf(steps: Steps): ReadonlyMap<number, number> {
  const makers = new Map<number, number>();
  for (const step of steps.parts()) {
    if (step instanceof RowBlock) continue;
    for (const object of step.objects) if (!makers.has(object)) makers.set(object, step.id);
  }
  return makers;
}
