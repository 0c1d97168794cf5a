import type { BulkOperation } from "../spec/routes.ts";
import { pack } from "./pack.ts";
import type { StepList } from "./step-table.ts";
import { REQUEST_LIMITS } from "./weigh.ts";

/** The order in which operations leave: what makes something comes before what uses it. */
const ORDER: readonly BulkOperation[] = [
  "createTargetings",
  "addOptions",
  "renameTargetings",
  "updateOptions",
  "deleteOptions",
  "deleteTargetings",
];

/** Requests, each the IDs of the steps in it. */
export type Requests = readonly (readonly number[])[];

/**
 * The next requests out of steps that may all leave now: those of the operation that comes first, packed.
 * Steps for which `apartBy` gives different keys do not share a request. Steps are named by their IDs.
 */
export function nextRequests(steps: StepList, ready: readonly number[], apartBy?: (step: number) => string): Requests {
  for (const operation of ORDER) {
    const next = ofOperation(steps, ready, operation);
    if (next.length > 0) return packed(steps, next, operation, apartBy);
  }
  return [];
}

function packed(
  steps: StepList,
  next: readonly number[],
  operation: BulkOperation,
  apartBy?: (step: number) => string,
): Requests {
  const limits = REQUEST_LIMITS[operation];
  return apart(next, apartBy).flatMap((ids) => {
    const bins = pack(steps.weightsOf(ids), limits);
    return bins.map((members) => members.map((member) => ids[member] ?? 0));
  });
}

function ofOperation(steps: StepList, ids: readonly number[], operation: BulkOperation): readonly number[] {
  const operations = steps.operations();
  if (!operations.has(operation)) return [];
  return operations.size === 1 ? ids : ids.filter((id) => steps.operationOf(id) === operation);
}

/** Steps by their keys. */
function apart(ids: readonly number[], keyOf: ((step: number) => string) | undefined): readonly (readonly number[])[] {
  if (keyOf === undefined) return [ids];
  const byKey = new Map<string, number[]>();
  for (const id of ids) {
    const key = keyOf(id);
    const together = byKey.get(key);
    if (together === undefined) byKey.set(key, [id]);
    else together.push(id);
  }
  return [...byKey.values()];
}

/** The requests that steps come to if every answer is a success: what is planned, and what a dry run shows. */
export function plannedRequests(steps: StepList): Requests {
  const [operation, ...others] = steps.operations();
  // The positions of all steps are their IDs.
  if (steps.areIndependent() && operation !== undefined && others.length === 0) {
    return pack(steps.weights(), REQUEST_LIMITS[operation]);
  }
  const all: number[] = [];
  for (let id = 0; id < steps.length; id += 1) all.push(id);
  if (steps.areIndependent())
    return ORDER.flatMap((operation) => packed(steps, ofOperation(steps, all, operation), operation));
  const needs = needsOf(steps);
  const requests: (readonly number[])[] = [];
  const done = new Uint8Array(steps.length);
  let left = all;
  while (left.length > 0) {
    const ready = left.filter((id) => (needs.get(id) ?? []).every((needed) => done[needed] === 1));
    const next = nextRequests(steps, ready);
    if (next.length === 0) break;
    requests.push(...next);
    for (const request of next) for (const id of request) done[id] = 1;
    left = left.filter((id) => done[id] === 0);
  }
  return requests;
}

/** Whether all steps are of one operation, and none waits for another: requests of them may leave in any order. */
export function areAlike(steps: StepList, requests: Requests): boolean {
  const operationOf = (request: readonly number[] | undefined) => steps.operationOf(request?.[0] ?? 0);
  return steps.areIndependent() && operationOf(requests[0]) === operationOf(requests.at(-1));
}

/** By step, where it needs any: the steps that must be done before. */
function needsOf(steps: StepList): ReadonlyMap<number, readonly number[]> {
  const needs = new Map<number, readonly number[]>();
  const makers = makersOf(steps);
  for (let id = 0; id < steps.length; id += 1) {
    const after = steps.afterOf(id);
    if (after === undefined && makers.size === 0) continue;
    const made = steps.bindingsOf(id).flatMap(({ object }) => (object === undefined ? [] : (makers.get(object) ?? [])));
    const needed = [...(after ?? []), ...made];
    if (needed.length > 0) needs.set(id, needed);
  }
  return needs;
}

/** By object whose ID other steps need: the step that makes it. */
function makersOf(steps: StepList): ReadonlyMap<number, number> {
  const needed = new Set<number>();
  for (let id = 0; id < steps.length; id += 1) {
    for (const { object } of steps.bindingsOf(id)) if (object !== undefined) needed.add(object);
  }
  const makers = new Map<number, number>();
  for (let id = 0; needed.size > 0 && id < steps.length; id += 1) {
    for (const object of steps.objectsOf(id)) if (needed.has(object) && !makers.has(object)) makers.set(object, id);
  }
  return makers;
}
