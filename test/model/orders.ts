import { planRequests } from "../../src/model/order.ts";
import { TargetingModel, Work } from "../../src/model/targeting-model.ts";
import { type Case, type Random, randomCase, randomOf, type Tree, tightCase } from "./cases.ts";
import { StrictService, textOf } from "./strict-service.ts";

/** The results of many cases. */
export interface Tried {
  readonly cases: number;
  readonly requests: number;
  /** One line for each case that was refused, could not continue, or ended in a wrong state. */
  readonly wrong: readonly string[];
}

const KINDS: Readonly<Record<"random" | "tight", (random: Random) => Case>> = { random: randomCase, tight: tightCase };
/** The most items of a request, for each case one of these. So half of the cases have small requests. */
const FEW_ITEMS = [1, 2, 3, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as const;

/** Plans many random cases of a kind, and applies them to the strict service. */
export function tryOrders(kind: keyof typeof KINDS, seed: number, count: number): Tried {
  const wrong: string[] = [];
  let [cases, requests] = [0, 0];
  for (let at = 0; at < count; at += 1) {
    const random = randomOf(seed + at);
    const given = KINDS[kind](random);
    if (given.changes.length === 0) continue;
    cases += 1;
    try {
      requests += tryCase(given, random, random.pick(...FEW_ITEMS));
    } catch (thrown) {
      wrong.push(`${kind} ${seed + at}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    }
  }
  return { cases, requests, wrong };
}

/** Applies a case in requests of at most `most` items. Returns the number of requests. */
export function tryCase({ before, after, changes }: Case, random: Random, most: number, room = 1000): number {
  const work = new Work(modelOf(before), new Map(changes.map((change) => [change.ref, change])), {
    placeholders: { nameOf: (ref) => `tmp ${ref}`, contextIdOf: (group) => `tmp-${group}` },
    room,
  });
  const { requests, isWhole } = planRequests(work);
  if (!isWhole) throw new Error(`it is stuck after ${requests.length} requests`);
  const service = new StrictService(before, random);
  for (const request of requests) {
    for (let from = 0; from < request.length; from += most) service.apply(request.slice(from, from + most));
  }
  if (textOf(service.tree) !== textOf(after))
    throw new Error(`it came to\n${textOf(service.tree)}\nnot\n${textOf(after)}`);
  return requests.length;
}

function modelOf(tree: Tree): TargetingModel {
  const model = new TargetingModel();
  for (const [ref, one] of tree) model.put(ref, { ...one, contexts: new Set(one.contexts), others: 0 });
  return model;
}
