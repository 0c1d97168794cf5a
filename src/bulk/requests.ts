import type { BulkOperation } from "../spec/routes.ts";
import { pack } from "./pack.ts";
import { REQUEST_LIMITS } from "./weigh.ts";
import type { Step } from "./work.ts";

/** The order in which operations leave: what makes something comes before what uses it. */
const ORDER: readonly BulkOperation[] = [
  "createTargetings",
  "addOptions",
  "renameTargetings",
  "updateOptions",
  "deleteOptions",
  "deleteTargetings",
];

/**
 * The next requests out of steps that may all leave now: those of the operation that comes first, packed.
 * Steps for which `apartBy` gives different keys do not share a request.
 */
export function nextRequests(
  ready: readonly Step[],
  apartBy: (step: Step) => string = () => "",
): readonly (readonly Step[])[] {
  const operation = ORDER.find((candidate) => ready.some((step) => step.operation === candidate));
  if (operation === undefined) return [];
  const apart = new Map<string, Step[]>();
  for (const step of ready) {
    if (step.operation !== operation) continue;
    const key = apartBy(step);
    const together = apart.get(key);
    if (together === undefined) apart.set(key, [step]);
    else together.push(step);
  }
  return [...apart.values()].flatMap((steps) => {
    const weights = steps.map((step) => step.weight);
    const bins = pack(weights, REQUEST_LIMITS[operation]);
    return bins.map((members) => members.flatMap((member) => steps[member] ?? []));
  });
}

/** The requests that steps come to if every answer is a success: what is planned, and what a dry run shows. */
export function plannedRequests(steps: readonly Step[]): readonly (readonly Step[])[] {
  const makers = new Map<number, number>();
  for (const step of steps) for (const object of step.objects) if (!makers.has(object)) makers.set(object, step.id);
  const requests: (readonly Step[])[] = [];
  const done = new Set<number>();
  const isDone = (step: number | undefined): boolean => step === undefined || done.has(step);
  let left = steps;
  while (left.length > 0) {
    const ready = left.filter(
      (step) =>
        (step.after ?? []).every(isDone) &&
        step.bindings.every(({ object }) => object === undefined || isDone(makers.get(object))),
    );
    const next = nextRequests(ready);
    if (next.length === 0) break;
    requests.push(...next);
    for (const step of next.flat()) done.add(step.id);
    left = left.filter((step) => !done.has(step.id));
  }
  return requests;
}
