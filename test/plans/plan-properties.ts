import * as fc from "fast-check";
import { expect } from "vitest";
import {
  baseOf,
  digestOfContexts,
  renewedBase,
  type ServiceTargeting,
  type WrittenOption,
} from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { desiredText } from "../../src/plans/file/write-desired.ts";
import { lookAgain } from "../../src/plans/match.ts";
import { isApplicable, itemCount, type PlanItem, type StatePlan } from "../../src/plans/plan.ts";
import { type FileRow, isPossible, meaningOf, type Thing, type World } from "./meaning.ts";
import { editedFile, editedWorld, randomOf, randomWorld } from "./random-edits.ts";

export const TARGETING = { _id: "01J0000000000000000000000T", name: "Spring" };
export const LOOSE = { maxChangePercent: 100, maxDeletes: 1000 };
export const AT = "2026-01-01T00:00:00.000Z";

/** Returns a targeting of the model in the form in which it is read from the service. */
function thereOf(world: World): ServiceTargeting {
  const all = [...world.values()];
  const tops = all.filter(({ parent }) => parent === null);
  const ordered = tops.flatMap((top) => [top, ...all.filter(({ parent }) => parent === top.id)]);
  const options = ordered.map(({ id, name, parent, isGroup, expose, contexts }) => ({
    _id: id,
    name,
    parent,
    type: isGroup ? ("collection" as const) : ("atomic" as const),
    ...(isGroup && { exposeChildren: expose }),
    contexts: [...contexts],
    digest: digestOfContexts([...contexts]),
  }));
  return { targeting: TARGETING, options };
}

/** Gives new options the ID `new NAME`, as the model does. */
export function asModel(world: World, before: World): World {
  const idOf = (thing: Thing): string => (before.has(thing.id) ? thing.id : `new ${thing.name}`);
  const ids = new Map([...world.values()].map((thing) => [thing.id, idOf(thing)]));
  return new Map(
    [...world.values()].map((thing): [string, Thing] => {
      const parent = thing.parent === null ? null : (ids.get(thing.parent) ?? thing.parent);
      return [idOf(thing), { ...thing, id: idOf(thing), parent }];
    }),
  );
}

/** Returns the rows as the text of a JSON file. */
export function fileOf(
  rows: readonly FileRow[],
  targeting: { readonly _id: string; readonly name: string } = TARGETING,
): string {
  const option = (row: FileRow, index: number): object => ({
    ...(row.id !== undefined && { _id: row.id }),
    name: row.name,
    ...(row.expose !== undefined && { exposeChildren: row.expose }),
    ...(row.contexts !== undefined && { [row.atLeast === true ? "contextsAtLeast" : "contexts"]: [...row.contexts] }),
    ...(row.isGroup && {
      children: rows.flatMap((child, at) => (child.parent === index ? [option(child, at)] : [])),
    }),
  });
  const options = rows.flatMap((row, index) => (row.parent === null ? [option(row, index)] : []));
  return JSON.stringify({ version: 1, targeting, options });
}

export async function desiredOf(text: string, format: "json" | "yaml" | "csv" | "ndjson" = "json") {
  const { desired, problems } = await readDesired({ bytes: Buffer.from(text), format, folder: undefined });
  expect(problems).toEqual([]);
  return desired;
}

/** Applies the items of a plan to a targeting of the model, one by one. New options get the ID `new NAME`. */
export function applied(world: World, { items }: StatePlan): World {
  const next = new Map([...world].map(([id, thing]) => [id, { ...thing }]));
  const idOf = (item: PlanItem | undefined): string => (item?.kind === "create" ? `new ${item.name}` : "");
  const parentOf = (parent: Extract<PlanItem, { kind: "create" }>["parent"]): string | null =>
    parent === null ? null : "_id" in parent ? parent._id : idOf(items[parent.item]);
  for (const item of items) {
    if (item.kind === "create") {
      const { name, type, exposeChildren: expose = false, contexts } = item;
      const thing: Thing = {
        id: idOf(item),
        name,
        parent: parentOf(item.parent),
        isGroup: type === "collection",
        expose,
        contexts: new Set(contexts),
      };
      next.set(thing.id, thing);
    } else if (item.kind === "change") {
      const thing = next.get(item._id);
      if (thing === undefined) throw new Error(`the plan changes ${item._id}, which is not there`);
      if (item.name !== undefined) thing.name = item.name;
      if (item.parent !== undefined) thing.parent = parentOf(item.parent);
      if (item.exposeChildren !== undefined) thing.expose = item.exposeChildren;
      const { add = [], remove = [] } = item.contexts ?? {};
      thing.contexts = new Set([...[...thing.contexts].filter((id) => !remove.includes(id)), ...add]);
    }
  }
  for (const item of items) if (item.kind === "delete") next.delete(item._id);
  for (const thing of next.values()) if (thing.parent !== null && !next.has(thing.parent)) thing.parent = null;
  return next;
}

export function comparable(world: World) {
  return [...world.values()]
    .map(({ id, name, parent, isGroup, expose, contexts }) => ({
      id,
      name,
      parent,
      isGroup,
      expose,
      contexts: [...contexts].sort(),
    }))
    .sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Returns what applying all items writes, which then becomes the new base. */
function wroteOf({ items }: StatePlan): readonly WrittenOption[] {
  return items.map((item): WrittenOption => {
    if (item.kind === "create") return { _id: `new ${item.name}`, fields: "created" };
    if (item.kind === "delete") return { _id: item._id, fields: "deleted" };
    const fields = (["name", "parent", "exposeChildren", "contexts"] as const).filter(
      (field) => item[field] !== undefined,
    );
    return { _id: item._id, fields };
  });
}

/** Checks that applying a plan makes the targeting equal to the file, and that a new plan then has nothing to do. */
export async function checkMeaning(runs: number): Promise<void> {
  const seen = { applied: 0, conflicts: 0, refused: 0, pruned: 0 };
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.boolean(), async (seed, prune) => {
      const random = randomOf(seed);
      const before = randomWorld(random);
      const service = editedWorld(before, random, random.below(4));
      const rows = editedFile(before, random, random.below(6));
      const desired = await desiredOf(fileOf(rows));
      const base = baseOf(thereOf(before), AT);
      const there = thereOf(service);
      const input = { desired, base, there, prune, byName: false, thresholds: LOOSE };
      const plan = planOf(input);

      const { world: wanted, conflicts, refused } = meaningOf(rows, before, service, prune);
      if (refused) {
        // A file that the service would refuse may also have conflicts, so only this is checked.
        expect(isApplicable(plan)).toBe(false);
        seen.refused += 1;
        return;
      }
      expect(plan.conflicts.length > 0, "conflicts").toBe(conflicts > 0);
      if (conflicts > 0) {
        seen.conflicts += 1;
        return;
      }
      expect(isApplicable(plan), JSON.stringify(plan.problems)).toBe(isPossible(wanted));
      if (!isApplicable(plan)) {
        seen.refused += 1;
        return;
      }
      seen.applied += 1;
      if (plan.items.some(({ kind }) => kind === "delete")) seen.pruned += 1;
      for (const item of plan.items) if (item.kind === "delete") expect(before.has(item._id)).toBe(true);
      expect(lookAgain(plan, there)).toEqual({ stale: [], alreadyDone: new Set() });
      const after = applied(service, plan);
      expect(comparable(after)).toEqual(comparable(wanted));

      const now = thereOf(after);
      const renewed = renewedBase(base, now, wroteOf(plan), false);
      const again = planOf({ ...input, there: now, base: renewed });
      expect({ items: again.items, problems: again.problems, conflicts: again.conflicts }).toEqual({
        items: [],
        problems: [],
        conflicts: [],
      });
      // The drift stays the same, except for fields that the plan has written.
      const wrote = new Set(
        wroteOf(plan).flatMap(({ _id, fields }) =>
          Array.isArray(fields) ? fields.map((field) => `${_id} ${field}`) : [],
        ),
      );
      const told = ({ drift }: StatePlan) => drift.map(({ _id, field }) => `${_id} ${field}`).sort();
      expect(told(again)).toEqual(told(plan).filter((each) => !wrote.has(each)));
      expect(lookAgain(plan, now).alreadyDone.size).toBe(plan.items.length);
      expect(lookAgain(plan, now).stale).toEqual([]);
    }),
    { examples: [[127412382, false]], numRuns: runs },
  );
  // If these were fewer, the random edits would test too little.
  for (const [what, many] of Object.entries(seen)) expect(many, what).toBeGreaterThan(runs / 50);
}

/** Checks that a plan of a file that was just exported has nothing to do, in each format. */
export async function checkExported(runs: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.constantFrom("yaml", "json", "csv", "ndjson"),
      fc.boolean(),
      async (seed, format, prune) => {
        const there = thereOf(randomWorld(randomOf(seed)));
        const text = [...desiredText(there, format)].join("");
        const desired = await desiredOf(text, format);
        const plan = planOf({ desired, base: baseOf(there, AT), there, prune, byName: false, thresholds: LOOSE });
        expect(itemCount(plan)).toBe(0);
        expect(isApplicable(plan)).toBe(true);
        expect(plan.drift).toEqual([]);
        expect([...desiredText(there, format)].join("")).toBe(text);
      },
    ),
    { numRuns: runs },
  );
}
