import { expect } from "vitest";
import type { ChangeRun } from "../../src/changes/change-run.ts";
import { baseOf } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { isApplicable, itemCount } from "../../src/plans/plan.ts";
import { readTargeting } from "../../src/plans/read-targeting.ts";
import { FileError } from "../../src/platform/files.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { objectResults } from "../support/object-results.ts";
import { isPossible, same, type Thing, type World } from "./meaning.ts";
import { CALM, type Modelled, modelled, overwrite, put, randomTrouble, worldIn } from "./modelled.ts";
import { AT, desiredOf, fileOf, LOOSE } from "./plan-properties.ts";
import { editedFile, editedWorld, type Random, randomOf, randomWorld } from "./random-edits.ts";
import { kept } from "./undone-properties.ts";

const signal = new AbortController().signal;

/** A targeting at the times that are compared. */
interface Sides {
  /** When it was planned, right before the plan was applied, and afterwards. */
  readonly planned: World;
  readonly found: World;
  readonly left: World;
}

const FIELDS = ["name", "parent", "expose"] as const;

function areSame(one: Thing, other: Thing): boolean {
  return FIELDS.every((field) => one[field] === other[field]) && same(one.contexts, other.contexts);
}

/**
 * Checks that each changed field had the same value when it was planned, and each deleted option was unchanged since
 * then.
 */
function checkNothingOverwritten({ planned, found, left }: Sides): void {
  for (const [id, now] of found) {
    const [before, then] = [planned.get(id), left.get(id)];
    if (then === undefined) {
      expect(before, `${id} was deleted, and not there when it was planned`).toBeDefined();
      if (before !== undefined) expect(areSame(before, now), `${id} changed before it was deleted`).toBe(true);
      continue;
    }
    for (const field of FIELDS) {
      // When a group is deleted, its sub-options move to the top level.
      if (now[field] === then[field] || (field === "parent" && !left.has(now.parent ?? ""))) continue;
      expect(before?.[field], `${field} of ${id}`).toBe(now[field]);
    }
    const lost = [...now.contexts].filter((context) => !then.contexts.has(context));
    if (lost.length > 0)
      expect([...now.contexts].sort(), `contexts of ${id}`).toEqual([...(before?.contexts ?? [])].sort());
  }
}

/** Returns the IDs that the run under test has deleted since this entry of the log. */
function deletedIn({ project }: Modelled, from: number): readonly string[] {
  return project.log
    .slice(from)
    .flatMap((change) => (change.actor === "run" && change.what === "optionDeleted" ? [change.id] : []));
}

/** If two writers create the same option within this time, nothing shows which one is whose. */
const ONE_INSTANT_MS = 50;

/**
 * Returns the options that a run created, and those that it reports as its own by mistake. Such options have the same
 * name, and another writer created them in the instant in which the run's request was lost.
 */
function createdIn(log: Modelled["project"]["log"], { state }: ChangeRun): readonly string[] {
  const told = new Set(objectResults(state).flatMap(({ did, _id }) => (did === "created" && _id ? [_id] : [])));
  const writes = log.flatMap(({ actor, at }) => (actor === "run" ? [at] : []));
  return log.flatMap(({ actor, at, what, id }) => {
    if (what !== "optionCreated") return [];
    const isAlike = told.has(id) && writes.some((write) => Math.abs(write - at) <= ONE_INSTANT_MS);
    return actor === "run" || isAlike ? [id] : [];
  });
}

/** Makes random edits as another writer. The service would allow the result. */
function editAsOther(scene: Modelled, targetingId: string, random: Random): void {
  const now = worldIn(scene.project, targetingId);
  overwrite(scene.project, targetingId, editedWorld(now, random, 1 + random.below(3)));
}

/**
 * Applies a plan, and then its undo. Another writer edits before each is applied, and with trouble also while it is
 * applied. Checks that nothing is deleted that the base or the undone run did not have, and that no later change is
 * overwritten.
 */
export async function checkOtherWriter(seed: number, withTrouble: boolean, services: ToolContext): Promise<boolean> {
  const random = randomOf(seed);
  const scene = modelled(seed, services);
  const { project, api } = scene;
  const targetingId = put(randomWorld(random), "Spring", scene);
  const troubleWith = () =>
    withTrouble
      ? {
          ...randomTrouble(random),
          others: () => {
            if (random.chance(0.5)) editAsOther(scene, targetingId, random);
          },
        }
      : CALM;
  const there = await readTargeting(api, targetingId, { signal });
  const exported = worldIn(project, targetingId);
  const desired = await desiredOf(fileOf(editedFile(exported, random, 1 + random.below(8)), there.targeting));
  const plan = planOf({ desired, base: baseOf(there, AT), there, prune: true, byName: false, thresholds: LOOSE });
  if (!isApplicable(plan) || itemCount(plan) === 0) return false;
  const header = await kept(plan, there, scene);
  const isEdited = random.chance(0.8);
  if (isEdited) editAsOther(scene, targetingId, random);
  const found = worldIn(project, targetingId);
  const from = project.log.length;
  const run = await scene.carriedOut(header, troubleWith());
  const left = worldIn(project, targetingId);
  for (const id of deletedIn(scene, from)) expect(exported.has(id), `${id} was not in the base`).toBe(true);
  const wrote = project.log.slice(from).some(({ actor }) => actor === "run");
  if (!withTrouble) {
    if (!isEdited) expect(run.status()).toBe("succeeded");
    if ((run.state.facts.stale ?? []).length > 0) expect(wrote, "a stale plan sends nothing").toBe(false);
    checkNothingOverwritten({ planned: exported, found, left });
  }
  if (!isPossible(left) || run.state.facts.stale !== undefined) return true;
  const created = new Set(createdIn(project.log.slice(from), run));
  if (random.chance(0.3)) editAsOther(scene, targetingId, random);
  const back = (await scene.wayBack(run.header.runId)).header;
  if (back === undefined) return true;
  const planned = worldIn(project, targetingId);
  const isEditedAgain = random.chance(0.7);
  if (isEditedAgain) editAsOther(scene, targetingId, random);
  const foundThen = worldIn(project, targetingId);
  const since = project.log.length;
  try {
    await scene.carriedOut(back, troubleWith());
  } catch (thrown) {
    // The undone run had unanswered requests, so its objects were compared again: the edits are seen.
    if (!(isEditedAgain && thrown instanceof FileError)) throw thrown;
    expect(
      project.log.slice(since).some(({ actor }) => actor === "run"),
      "a refused undo sends nothing",
    ).toBe(false);
    return true;
  }
  for (const id of deletedIn(scene, since)) expect(created.has(id), `${id} was not made by the undone run`).toBe(true);
  if (!withTrouble) checkNothingOverwritten({ planned, found: foundThen, left: worldIn(project, targetingId) });
  return true;
}
