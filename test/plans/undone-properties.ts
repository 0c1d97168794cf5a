import { expect } from "vitest";
import { isApiError } from "../../src/api/errors.ts";
import type { ChangeRun } from "../../src/changes/change-run.ts";
import type { ChangeHeader } from "../../src/changes/changes.ts";
import { baseOf, renewedBase, type ServiceTargeting } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import type { Desired } from "../../src/plans/file/desired.ts";
import { writtenByPlan } from "../../src/plans/look-again.ts";
import { isApplicable, itemCount, type StatePlan } from "../../src/plans/plan.ts";
import { planDocument } from "../../src/plans/plan-document.ts";
import { asPlanned } from "../../src/plans/planned-undo.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { randomCall } from "../faults/calls.ts";
import { randomFrom } from "../faults/random.ts";
import { fillWorld } from "../faults/world.ts";
import { objectResults } from "../support/object-results.ts";
import { readingApi, testServices } from "../support/tool-context.ts";
import { isPossible, meaningOf } from "./meaning.ts";
import {
  byNames,
  CALM,
  type Modelled,
  modelled,
  overwrite,
  put,
  randomTrouble,
  type Trouble,
  worldIn,
} from "./modelled.ts";
import { AT, asModel, comparable, desiredOf, fileOf, LOOSE } from "./plan-properties.ts";
import { editedFile, editedWorld, randomOf, randomWorld } from "./random-edits.ts";

const signal = new AbortController().signal;

/** Creates the part of a context that all seeds share. */
export function sharedServices(): ToolContext {
  const { api } = readingApi([]);
  return {
    ...testServices(systemClock, 600_000),
    management: api,
    caller: "",
    arrivedAt: 0,
    signal,
    canAsk: () => false,
  };
}

/** Stores a plan as a run. */
export async function kept(plan: StatePlan, there: ServiceTargeting, scene: Modelled): Promise<ChangeHeader> {
  const origin = { environment: "sandbox", apiUrl: "test", fileDigest: "", prune: false, byName: false } as const;
  const text = JSON.stringify(planDocument(plan, origin, {}));
  const { changes } = scene.tools();
  const by = { text, plannedBy: "plan_targeting", caller: "tester" } as const;
  return (await changes.keepPlan(asPlanned(plan, there), by)).header;
}

function toldOf({ state, status }: ChangeRun): string {
  return JSON.stringify({ status: status(), stopped: state.stopped, results: objectResults(state) });
}

/**
 * Returns whether everything that the run did not finish is unclear: its process died in the instant in which the
 * service created something, which another user could have created as well. It is then reported as unknown, and not
 * created again.
 */
function isUnclear({ state }: ChangeRun): boolean {
  const left = objectResults(state).filter(({ outcome }) => outcome !== "succeeded" && outcome !== "alreadyDone");
  const codes = left.map(({ reason }) => reason?.code);
  return codes.includes("OWNER_UNCLEAR") && codes.every((code) => code === "OWNER_UNCLEAR" || code === "NEEDS_FAILED");
}

/** Plans a desired state for a targeting, and applies the plan. */
export async function appliedTo(targetingId: string, desired: Desired, scene: Modelled) {
  const there = await readTargeting(scene.api, targetingId, { signal });
  const plan = planOf({ desired, there, prune: false, byName: false, thresholds: LOOSE });
  expect(plan.problems).toEqual([]);
  return { plan, run: await scene.carriedOut(await kept(plan, there, scene), CALM) };
}

/**
 * Undoes a run, and then undoes that. Checks that this restores the state before the run, and then the one after it.
 * Compares by name. Returns how many objects were restored.
 */
export async function checkUndone(
  run: ChangeRun,
  sides: { readonly before: readonly string[]; readonly after: readonly string[] },
  scene: Modelled,
  trouble: () => Trouble,
): Promise<void> {
  const { before, after } = sides;
  let runId = run.header.runId;
  for (const [what, wanted] of [
    ["undone", before],
    ["undone twice", after],
    ["undone three times", before],
  ] as const) {
    const { answer, header } = await scene.wayBack(runId);
    expect(answer.structured.undo, `${what}: ${answer.text}`).toMatchObject({ notOurs: 0, impossible: 0 });
    if (header === undefined) {
      expect(byNames(scene.project), what).toEqual(wanted);
      return;
    }
    const given = trouble();
    const back = await scene.carriedOut(header, given);
    if (given !== CALM && isUnclear(back)) return;
    expect(back.status(), `${what}: ${toldOf(back)}\n${answer.text}`).toBe("succeeded");
    expect(byNames(scene.project), `${what}: ${answer.text}`).toEqual(wanted);
    runId = header.runId;
  }
}

/**
 * Plans a random file, although others may have changed the targeting since its base, applies the plan and undoes it.
 * Returns whether there was anything to apply. Throws if the result differs from the independent model.
 */
export async function checkPlanUndone(seed: number, withTrouble: boolean, services: ToolContext): Promise<boolean> {
  const random = randomOf(seed);
  const scene = modelled(seed, services);
  const trouble = (): Trouble => (withTrouble ? randomTrouble(random) : CALM);
  const { project, api } = scene;
  const targetingId = put(randomWorld(random), "Spring", scene);
  const base = baseOf(await readTargeting(api, targetingId, { signal }), AT);
  const exported = worldIn(project, targetingId);
  if (random.chance(0.4)) overwrite(project, targetingId, editedWorld(exported, random, 1 + random.below(3)));
  scene.time.advance(1000);
  const there = await readTargeting(api, targetingId, { signal });
  const before = worldIn(project, targetingId);
  const rows = editedFile(exported, random, 1 + random.below(8));
  const prune = random.chance(0.5);
  const { world: wanted, conflicts, refused } = meaningOf(rows, exported, before, prune);
  if (refused || conflicts > 0 || !isPossible(wanted)) return false;
  const desired = await desiredOf(fileOf(rows, there.targeting));
  const plan = planOf({ desired, base, there, prune, byName: false, thresholds: LOOSE });
  if (!isApplicable(plan) || itemCount(plan) === 0) return false;
  const first = byNames(project);
  const given = trouble();
  const run = await scene.carriedOut(await kept(plan, there, scene), given);
  if (given !== CALM && isUnclear(run)) return false;
  expect(run.status(), toldOf(run)).toBe("succeeded");
  expect(comparable(asModel(worldIn(project, targetingId), before))).toEqual(comparable(wanted));
  const now = await readTargeting(api, targetingId, { signal });
  const renewed = renewedBase(base, now, writtenByPlan(plan, run.state), false);
  const again = planOf({ desired, base: renewed, there: now, prune, byName: false, thresholds: LOOSE });
  expect(itemCount(again), JSON.stringify(again.items)).toBe(0);
  await checkUndone(run, { before: first, after: byNames(project) }, scene, trouble);
  expect(scene.improper).toEqual([]);
  return true;
}

/** Ignores the error if the targeting of a call does not exist, so that the call cannot be planned. */
function unlessUnplannable(thrown: unknown): undefined {
  if (!isApiError(thrown) || thrown.effect !== "rejected") throw thrown;
}

/**
 * Makes a random call of any tool and undoes it. Returns whether the call changed anything, with all outcomes known.
 */
export async function checkCallUndone(seed: number, withTrouble: boolean, services: ToolContext): Promise<boolean> {
  const random = randomOf(seed);
  const scene = modelled(seed, services);
  const trouble = (): Trouble => (withTrouble ? randomTrouble(random) : CALM);
  const { project, time } = scene;
  fillWorld(project, time, randomFrom(seed));
  // Options that campaigns use cannot move back into groups, so nothing may be in use.
  for (const one of [...project.targetings.values(), ...project.options.values()])
    Object.assign(one, { locked: false });
  const call = randomCall(project, randomFrom(seed * 7919 + 13), random.chance(0.05) ? "many" : "small");
  const before = byNames(project);
  const { changes } = scene.tools();
  const header = await changes.keep(call, "tester");
  const run = await scene.carriedOut(header, trouble()).catch(unlessUnplannable);
  if (run === undefined) return false;
  const after = byNames(project);
  if (run.state.counts().unknown > 0 || JSON.stringify(after) === JSON.stringify(before)) return false;
  await checkUndone(run, { before, after }, scene, trouble);
  expect(scene.improper).toEqual([]);
  return true;
}
