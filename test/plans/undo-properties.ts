import * as fc from "fast-check";
import { expect } from "vitest";
import { undoPlan } from "../../src/plans/undo.ts";
import type { Present, UndoRow } from "../../src/plans/undo-plan.ts";
import type { Done, OptionEffect } from "../../src/runs/kind.ts";
import { isPossible, same, type Thing, type World } from "./meaning.ts";
import { applied, comparable, TARGETING } from "./plan-properties.ts";
import { editedWorld, randomOf, randomWorld } from "./random-edits.ts";

/** Returns what a run did that changed one targeting into the other. */
function doneBetween(before: World, after: World): Done {
  const options = [...after.values()].flatMap((thing): OptionEffect[] => {
    const was = before.get(thing.id);
    const about = { _id: thing.id, targeting: TARGETING._id };
    if (was === undefined) return [{ did: "created", ...about, left: stateOf(thing) }];
    const added = [...thing.contexts].filter((id) => !was.contexts.has(id));
    const removed = [...was.contexts].filter((id) => !thing.contexts.has(id));
    const fields = {
      ...(was.name !== thing.name && { name: { from: was.name, to: thing.name } }),
      ...(was.parent !== thing.parent && { parent: { from: was.parent, to: thing.parent } }),
      ...(was.expose !== thing.expose && { exposeChildren: { from: was.expose, to: thing.expose } }),
      ...(added.length + removed.length > 0 && { contexts: { added, removed, unsure: 0 } }),
    };
    return Object.keys(fields).length === 0 ? [] : [{ did: "changed", ...about, ...fields }];
  });
  const gone = [...before.values()].filter(({ id }) => !after.has(id));
  const deleted = gone.map((thing): OptionEffect => {
    return { did: "deleted", _id: thing.id, targeting: TARGETING._id, before: stateOf(thing) };
  });
  return { targetings: [], options: [...options, ...deleted], unknown: [], unresolved: [] };
}

function stateOf({ name, isGroup, parent, expose, contexts }: Thing) {
  const type = isGroup ? ("collection" as const) : ("atomic" as const);
  return { name, type, parent, ...(isGroup && { exposeChildren: expose }), contexts: [...contexts] };
}

function presentOf(world: World): Present {
  const options = [...world.values()].map((thing) => {
    const there = { _id: thing.id, ...stateOf(thing), contextCount: thing.contexts.size };
    return [thing.id, there] as const;
  });
  return { targeting: TARGETING, options: new Map(options) };
}

/** Plans the undo and applies it. In the result, restored options have their old IDs. */
function undone(done: Done, now: World) {
  const { targetings, rows } = undoPlan(done, new Map([[TARGETING._id, presentOf(now)]]));
  const [back, ...others] = targetings;
  expect(others).toEqual([]);
  if (back === undefined) return { world: now, rows };
  const renewed = applied(now, back.plan);
  const old = new Map(
    back.standsFor.map(({ item, _id }) => {
      const made = back.plan.items[item];
      return [made?.kind === "create" ? `new ${made.name}` : "", _id] as const;
    }),
  );
  const idOf = (id: string): string => old.get(id) ?? id;
  const things = [...renewed.values()].map((thing): Thing => {
    return { ...thing, id: idOf(thing.id), parent: thing.parent === null ? null : idOf(thing.parent) };
  });
  return { world: new Map(things.map((thing) => [thing.id, thing])), rows };
}

/** Checks that an undo restores the first state, and that undoing the undo restores the state before it. */
export async function checkWayBack(runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = randomOf(seed);
      const before = randomWorld(random);
      const after = editedWorld(before, random, 1 + random.below(6));
      const first = undone(doneBetween(before, after), after);
      expect(first.rows.filter(({ undo }) => undo === "notOurs" || undo === "impossible")).toEqual([]);
      expect(comparable(first.world)).toEqual(comparable(before));
      const second = undone(doneBetween(after, first.world), first.world);
      expect(comparable(second.world)).toEqual(comparable(after));
    }),
    { numRuns: runs },
  );
}

/**
 * Checks that later changes by others stay, and that everything else is either restored or has a reason why it is not.
 */
export async function checkOthersKept(runs: number): Promise<void> {
  const seen = { exact: 0, caveat: 0, notOurs: 0, impossible: 0 };
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const random = randomOf(seed);
      const before = randomWorld(random);
      const after = editedWorld(before, random, 1 + random.below(5));
      const now = editedWorld(after, random, 1 + random.below(5));
      const { world, rows } = undone(doneBetween(before, after), now);
      for (const { undo } of rows) if (undo !== "unresolved") seen[undo] += 1;
      expect(isPossible(world), JSON.stringify(rows)).toBe(true);
      const excused = new Set(
        rows.flatMap(({ _id, undo }: UndoRow) => (undo === "notOurs" || undo === "impossible" ? [_id] : [])),
      );
      for (const thing of now.values()) checkThing(thing, world.get(thing.id), { before, after, excused });
      for (const [id, was] of before) {
        if (after.has(id) || now.has(id) || excused.has(id)) continue;
        // If another user has created an equal option since, that option counts as restored.
        const back = world.get(id) ?? [...now.values()].find((thing) => isBackAs(thing, was) && world.has(thing.id));
        expect(back?.name).toBe(was.name);
      }
    }),
    { numRuns: runs },
  );
  for (const [what, many] of Object.entries(seen)) expect(many, what).toBeGreaterThan(runs / 50);
}

function isBackAs(thing: Thing, was: Thing): boolean {
  const isAlike = thing.name === was.name && thing.isGroup === was.isGroup && thing.expose === was.expose;
  return (
    isAlike && thing.contexts.size === was.contexts.size && [...thing.contexts].every((id) => was.contexts.has(id))
  );
}

interface Sides {
  readonly before: World;
  readonly after: World;
  /** The options that the undo does not restore, or not completely, and for which it gives a reason. */
  readonly excused: ReadonlySet<string | undefined>;
}

const FIELDS = ["name", "parent", "expose"] as const;

function checkThing(now: Thing, then: Thing | undefined, { before, after, excused }: Sides): void {
  const [was, left] = [before.get(now.id), after.get(now.id)];
  if (was === undefined && left !== undefined) {
    const isSame = FIELDS.every((field) => now[field] === left[field]) && same(now.contexts, left.contexts);
    if (!isSame) expect(then, "what others changed since stays").toBeDefined();
    else if (!excused.has(now.id)) expect(then).toBeUndefined();
    return;
  }
  expect(then, "what the run did not create stays").toBeDefined();
  if (then === undefined) return;
  for (const field of FIELDS) {
    const isOurs = was !== undefined && left !== undefined && was[field] !== left[field] && now[field] === left[field];
    if (!isOurs) expect(then[field], `${field} of ${now.id}`).toBe(now[field]);
    else if (!excused.has(now.id)) expect(then[field], `${field} of ${now.id}`).toBe(was[field]);
  }
  if (excused.has(now.id)) return;
  const wanted = new Set(now.contexts);
  for (const id of left?.contexts ?? []) if (was !== undefined && !was.contexts.has(id)) wanted.delete(id);
  for (const id of was?.contexts ?? []) if (left?.contexts.has(id) === false) wanted.add(id);
  expect([...then.contexts].sort()).toEqual([...wanted].sort());
}
