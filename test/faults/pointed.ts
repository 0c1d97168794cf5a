import { randomCall } from "./calls.ts";
import type { Fault } from "./model/faults.ts";
import type { Project } from "./model/project.ts";
import type { Random } from "./random.ts";
import type { Schedule } from "./schedule.ts";
import { allOptions, contextTargetings, someContexts } from "./world.ts";

/** Makes a call with exactly the faults and other writers that make it hardest to find out what happened. */
export function pointedAt(project: Project, random: Random): Pick<Schedule, "call" | "faults" | "others"> {
  return random.pick([lookalikes, halfAddedUpdates, brokenRings, refusedInDoubt])(project, random);
}

type Pointed = Pick<Schedule, "call" | "faults" | "others">;

const NAMES = ["Larch", "Maple", "Olive", "Poplar"];

/** The answer to new options is lost, and another user creates some of them, with the same or other Context IDs. */
function lookalikes(project: Project, random: Random): Pointed {
  const targeting = random.pick(contextTargetings(project)).id;
  const items = random.some(NAMES, random.between(1, 4)).map((name) => ({ name, contexts: someContexts(random, 2) }));
  const theirs = random.some(items, random.between(1, 2)).map(({ name, contexts }) => {
    const others = someContexts(random, 2);
    return { targeting, name, contexts: random.pick([contexts, others, others.slice(0, contexts.length)]) };
  });
  const fault: Fault = { kind: "reset", effect: random.pick(["none", "none", "whole", { lateMs: 400 }] as const) };
  const write = { by: "api" as const, request: { operation: "addOptions" as const, items: theirs } };
  // If an option fails unexpectedly or is cut off by another writer, its name was free. So the first attempt created
  // nothing.
  const later = random.pick<readonly Fault[]>([
    [],
    [{ kind: "uncatched", from: 0, addFirst: false }],
    [{ kind: "takeover", from: 0, retryAfterMs: 100 }],
  ]);
  return {
    call: { tool: "bulk_add_options", input: { targetingId: targeting, items } },
    faults: [{ on: 0, fault }, ...later.map((each) => ({ on: 1, fault: each }))],
    others: [{ on: random.below(2), moment: random.pick(["before", "after"] as const), write }],
  };
}

/** Updates that add and remove fail unexpectedly several times, after only their additions were applied. */
function halfAddedUpdates(project: Project, random: Random): Pointed {
  const items = random.some(allOptions(project), random.between(1, 3)).map(({ id, contexts }) => ({
    _id: id,
    add: someContexts(random, 3).filter((each) => !contexts.has(each)),
    remove: random.some([...contexts], 1),
  }));
  const fault: Fault = { kind: "uncatched", from: random.pick([0, random.next()]), addFirst: true };
  return {
    call: { tool: "update_contexts", input: { items } },
    faults: Array.from({ length: random.between(2, 8) }, (_, on) => ({ on, fault })),
    others: [],
  };
}

/**
 * An answer is lost, and the request that is sent again is refused as a whole. This proves nothing about the first
 * attempt.
 */
function refusedInDoubt(project: Project, random: Random): Pointed {
  const lost: Fault = { kind: "reset", effect: random.pick(["none", "whole", "part", { lateMs: 400 }] as const) };
  const as = random.pick(["validation", "tooLarge"] as const);
  const from = random.below(2);
  return {
    call: randomCall(project, random, "small"),
    faults: [
      { on: from, fault: lost },
      ...Array.from({ length: random.between(1, 6) }, (_, number) => ({
        on: from + 1 + number,
        fault: { kind: "refused" as const, as },
      })),
    ],
    others: [],
  };
}

/** Options swap their names, and the second step has a fault, when one of them has a temporary name. */
function brokenRings(project: Project, random: Random): Pointed {
  const targeting = random.pick(contextTargetings(project)).id;
  const ring = random.some(project.optionsOf(targeting), random.between(2, 3));
  const items = ring.map(({ id }, position) => ({ _id: id, name: (ring[position + 1] ?? ring[0])?.name ?? "Alone" }));
  const taken = random.pick(ring.length === 0 ? ["Alone"] : ring.map(({ name }) => name));
  const write = { by: "console" as const, what: "createOption" as const, targeting, name: taken };
  const fault: Fault = random.pick<Fault>([
    { kind: "uncatched", from: 0, addFirst: false },
    { kind: "reset", effect: "part" },
    { kind: "refused", as: "forbidden" },
  ]);
  return {
    call: { tool: "update_options", input: { items } },
    faults: Array.from({ length: random.below(6) }, (_, number) => ({ on: 1 + number, fault })),
    others: random.chance(0.5) ? [{ on: 2, moment: "before" as const, write }] : [],
  };
}
