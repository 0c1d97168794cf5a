import fc from "fast-check";
import { expect, test } from "vitest";
import { type ManagementOperation, OPERATIONS, type RequestParts } from "../../src/sandbox/rules/operations.ts";
import { emptyProject, type Project } from "../../src/sandbox/rules/store.ts";
import { dumpProject } from "../../src/sandbox/state-dump.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";

/** A random write. It names objects by their position among those that exist when it is executed. */
interface Write {
  readonly operation: ManagementOperation;
  readonly bodyFor: (pick: Pick) => unknown;
}

/** Returns the ID of the object at a position, or one that does not exist. */
interface Pick {
  targeting(position: number): string;
  option(position: number): string;
}

const UNKNOWN = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const START = Date.parse("2026-01-01T00:00:00Z");

const name = fc.constantFrom("aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh");
const position = fc.nat(12);
const contexts = fc.array(fc.constantFrom("1", "2", "3", "4", " 1 "), { maxLength: 3 });
const child = fc.record({ name, contexts }, { requiredKeys: ["name"] });
const type = fc.constantFrom("atomic", "collection");
const fields = {
  name,
  type,
  contexts,
  children: fc.array(child, { maxLength: 2 }),
  exposeChildren: fc.boolean(),
};
const option = fc.record(fields, { requiredKeys: ["name"] });
const list = <T>(entry: fc.Arbitrary<T>) => fc.array(entry, { minLength: 1, maxLength: 4 });

const contextChanges = fc.oneof(
  fc.record({ add: contexts, remove: contexts }, { requiredKeys: [] }),
  fc.record({ set: contexts }),
);
const parent = fc.oneof(fc.constant(null), position);
const change = fc.record(
  { name, parent, exposeChildren: fc.boolean(), contexts: contextChanges },
  { requiredKeys: [] },
);

const write: fc.Arbitrary<Write> = fc.oneof(
  list(fc.record({ name, options: fc.array(option, { maxLength: 3 }) })).map((items) => ({
    operation: "createTargetings" as const,
    bodyFor: () => ({ items }),
  })),
  list(fc.tuple(position, name)).map((renames) => ({
    operation: "renameTargetings" as const,
    bodyFor: (pick: Pick) => ({ items: renames.map(([at, to]) => ({ _id: pick.targeting(at), name: to })) }),
  })),
  list(position).map((positions) => ({
    operation: "deleteTargetings" as const,
    bodyFor: (pick: Pick) => ({ ids: positions.map(pick.targeting) }),
  })),
  list(fc.tuple(position, option, fc.option(position, { nil: undefined }))).map((items) => ({
    operation: "addOptions" as const,
    bodyFor: (pick: Pick) => ({
      items: items.map(([at, item, under]) => ({
        targeting: pick.targeting(at),
        ...item,
        ...(under === undefined ? {} : { parent: pick.option(under) }),
      })),
    }),
  })),
  list(fc.tuple(position, change)).map((items) => ({
    operation: "updateOptions" as const,
    bodyFor: (pick: Pick) => ({
      items: items.map(([at, { parent: to, ...changes }]) => ({
        _id: pick.option(at),
        ...changes,
        ...(to === undefined ? {} : { parent: to === null ? null : pick.option(to) }),
      })),
    }),
  })),
  list(position).map((positions) => ({
    operation: "deleteOptions" as const,
    bodyFor: (pick: Pick) => ({ ids: positions.map(pick.option) }),
  })),
);

/** Creates a project with its own clock and IDs, so that the same requests always have the same effect. */
function freshProject() {
  let time = START;
  const now = () => {
    time += 1;
    return time;
  };
  const project = emptyProject(UNKNOWN, "tested");
  const sources = { now, newId: ulidSource(now, () => 0.5) };
  return {
    project,
    apply(operation: ManagementOperation, parts: RequestParts): string {
      const prepared = OPERATIONS[operation](parts);
      return JSON.stringify("apply" in prepared ? prepared.apply(project, sources) : prepared.problems);
    },
  };
}

function pickFrom(project: Project): Pick {
  const among = (ids: readonly string[], at: number) => ids[at % (ids.length + 1)] ?? UNKNOWN;
  return {
    targeting: (at) => among([...project.targetings.keys()], at),
    option: (at) => among([...project.options.keys()], at),
  };
}

/** Checks what must be true of a project after any sequence of writes. */
function checkInvariants(project: Project): void {
  const { targetings, options } = dumpProject(project);
  const unique = (values: readonly string[]) => expect(values).toEqual([...new Set(values)]);
  unique(targetings.map((targeting) => targeting.name));
  unique(options.map((stored) => `${stored.targeting} ${stored.name}`));
  unique(options.flatMap((stored) => (stored.type === "collection" ? stored.contexts : [])));
  expect(project.contextCount).toBe(options.reduce((total, stored) => total + stored.contexts.length, 0));
  const byId = new Map(options.map((stored) => [stored._id, stored]));
  for (const targeting of targetings) {
    const within = options.filter((stored) => stored.targeting === targeting._id);
    const record = project.targetings.get(targeting._id);
    expect(record?.optionCount).toBe(within.length);
    expect([...(record?.topLevel ?? [])]).toEqual(within.flatMap(({ _id, parent: over }) => (over ? [] : [_id])));
    expect(new Set(record?.names.keys())).toEqual(new Set(within.map((stored) => stored.name)));
  }
  for (const stored of options) {
    const children = options.flatMap(({ _id, parent: over }) => (over === stored._id ? [_id] : []));
    expect([...(project.options.get(stored._id)?.children ?? [])]).toEqual(children);
    expect(project.targetings.has(stored.targeting)).toBe(true);
    if (stored.type === "collection") {
      expect(stored.parent).toBeUndefined();
      expect(children.length + stored.contexts.length).toBeGreaterThan(0);
    }
    if (stored.parent !== undefined) {
      expect(byId.get(stored.parent)).toMatchObject({ type: "collection", targeting: stored.targeting });
    }
  }
  expect([...project.groupContexts.keys()].toSorted()).toEqual(
    options.flatMap((stored) => (stored.type === "collection" ? stored.contexts : [])).toSorted(),
  );
}

test("any sequence of writes keeps names unique, counts and parents true, and groups whole", () => {
  fc.assert(
    fc.property(fc.array(write, { maxLength: 30, size: "max" }), (writes) => {
      const { project, apply } = freshProject();
      for (const { operation, bodyFor } of writes) {
        apply(operation, { pathId: "", query: {}, body: bodyFor(pickFrom(project)) });
        checkInvariants(project);
      }
    }),
    { seed: 20_262, numRuns: 300 },
  );
});

test("the same requests in the same order give the same answers and the same state", () => {
  fc.assert(
    fc.property(fc.array(write, { maxLength: 30, size: "max" }), (writes) => {
      const first = freshProject();
      const journal = writes.map(({ operation, bodyFor }) => {
        const parts = { pathId: "", query: {}, body: bodyFor(pickFrom(first.project)) };
        return { operation, parts, answer: first.apply(operation, parts) };
      });
      const second = freshProject();
      for (const { operation, parts, answer } of journal) expect(second.apply(operation, parts)).toBe(answer);
      expect(dumpProject(second.project)).toEqual(dumpProject(first.project));
    }),
    { seed: 20_263, numRuns: 100 },
  );
});
