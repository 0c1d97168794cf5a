import * as fc from "fast-check";
import { expect } from "vitest";
import { baseOf, type ServiceTargeting } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { isApplicable, itemCount, type StatePlan } from "../../src/plans/plan.ts";
import { planDocument } from "../../src/plans/plan-document.ts";
import { asPlanned } from "../../src/plans/planned-undo.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import type { startService } from "../changes/service.ts";
import { isPossible, meaningOf, type Thing, type World } from "./meaning.ts";
import { AT, asModel, comparable, desiredOf, fileOf, LOOSE } from "./plan-properties.ts";
import { editedFile, type Random, randomOf, randomWorld } from "./random-edits.ts";

export type Service = Awaited<ReturnType<typeof startService>>;

const signal = new AbortController().signal;

/** Creates a targeting of the model in the sandbox. Returns it as read from the service. */
async function madeOf(world: World, name: string, service: Service): Promise<ServiceTargeting> {
  const targetingId = await service.targeting(name);
  const all = [...world.values()];
  const items = all
    .filter(({ parent }) => parent === null)
    .map(({ id, name, isGroup, expose, contexts }) => ({
      name,
      contexts: [...contexts],
      ...(isGroup && {
        type: "collection" as const,
        exposeChildren: expose,
        children: all.flatMap((child) =>
          child.parent === id ? [{ name: child.name, contexts: [...child.contexts] }] : [],
        ),
      }),
    }));
  if (items.length > 0) {
    const { status, failures } = await service.run({ tool: "bulk_add_options", input: { targetingId, items } });
    expect(status, JSON.stringify(failures)).toBe("succeeded");
  }
  return readTargeting(service.api, targetingId, { signal });
}

/** Returns what was read from the service as a targeting of the model. */
function worldOf({ options }: ServiceTargeting): World {
  return new Map(
    options.map(({ _id, name, parent, type, exposeChildren = false, contexts }): [string, Thing] => [
      _id,
      { id: _id, name, parent, isGroup: type === "collection", expose: exposeChildren, contexts: new Set(contexts) },
    ]),
  );
}

/** Stores a plan as a run, and applies it. */
export async function apply(plan: StatePlan, there: ServiceTargeting, { changes, url }: Service) {
  const origin = { environment: "sandbox", apiUrl: url, fileDigest: "", prune: false, byName: false } as const;
  const text = JSON.stringify(planDocument(plan, origin, {}));
  const kept = await changes.keepPlan(asPlanned(plan, there), { text, plannedBy: "plan_targeting", caller: "tester" });
  const { header } = kept;
  const bytes = async function* () {
    yield Buffer.from(text);
  };
  const run = await changes.start(header, await changes.plan(header.call, signal, bytes));
  if (run === undefined) throw new Error("the plan was started before");
  await run.rest;
  return run;
}

/** Returns random faults of the service, each for one write while a plan is applied. */
function randomFaults(random: Random): readonly object[] {
  return Array.from({ length: 1 + random.below(3) }, () => {
    const when = { on: "write", nth: 1 + random.below(4), times: 1 };
    const kinds = [
      { kind: "status", status: 502, applied: random.chance(0.5) },
      { kind: "reset", applied: random.chance(0.5) },
      { kind: "busy", retryAfterMs: 50 },
      { kind: "uncatched", items: [random.below(3)] },
    ];
    return { ...when, ...random.one(kinds) };
  });
}

/** How often a run is resumed at most, if its outcome could not be found out at once. */
const MAX_RESUMED = 3;

/**
 * Checks that applying a plan makes the service equal to the file with the planned number of requests, and that a new
 * plan then has nothing to do. If `withFaults`, the run is resumed as often as needed.
 */
export async function checkApplied(runs: number, service: Service, withFaults = false): Promise<void> {
  let applied = 0;
  let targetings = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.boolean(), async (seed, prune) => {
      const random = randomOf(seed);
      targetings += 1;
      // Empties the service, because two groups of a project may not share Context IDs.
      await service.control("POST", "/reset");
      const there = await madeOf(randomWorld(random), `Targeting ${targetings}`, service);
      const before = worldOf(there);
      const rows = editedFile(before, random, 1 + random.below(8));
      const { world: wanted, conflicts, refused } = meaningOf(rows, before, before, prune);
      if (refused || conflicts > 0 || !isPossible(wanted)) return;
      const desired = await desiredOf(fileOf(rows, there.targeting));
      const base = baseOf(there, AT);
      const plan = planOf({ desired, base, there, prune, byName: false, thresholds: LOOSE });
      if (!isApplicable(plan)) return;
      if (withFaults) await service.faults([...randomFaults(random)]);
      let run = await apply(plan, there, service);
      for (let tries = 0; withFaults && tries < MAX_RESUMED && run.status() !== "succeeded"; tries += 1) {
        run = (await service.changes.runs.resume(run.header.runId)) ?? run;
        await run.rest;
      }
      await service.control("DELETE", "/faults");
      const failures = run.state.objects.length === 0 ? [] : service.failuresOf(run);
      expect(run.status(), JSON.stringify({ items: plan.items, failures })).toBe("succeeded");
      const { planned, sent } = run.state.requests;
      if (!withFaults) expect(sent, JSON.stringify(plan.items)).toBe(planned);
      const after = await readTargeting(service.api, there.targeting._id, { signal });
      expect(comparable(asModel(worldOf(after), before))).toEqual(comparable(wanted));
      const again = planOf({ desired, there: after, prune: false, byName: false, thresholds: LOOSE });
      expect(itemCount(again), JSON.stringify(again.items)).toBe(0);
      applied += 1;
    }),
    { numRuns: runs },
  );
  // If fewer plans could be applied, the random edits test too little.
  expect(applied).toBeGreaterThan(runs / 4);
}
