import { describe, expect, test } from "vitest";
import type { WriteCall } from "../../src/changes/call.ts";
import { DOCUMENTED_LIMITS } from "./model/facts.ts";
import type { Fault } from "./model/faults.ts";
import type { Project } from "./model/project.ts";
import { runSchedule } from "./run-schedule.ts";
import { emptyWorld, type Schedule } from "./schedule.ts";

// Each of these cases was first found by a random schedule and then shortened. Each shows a fault that the code once
// had.

const lost = (effect: "none" | "whole"): Fault => ({ kind: "reset", effect });
const slow = (moment: "before" | "after", ms = 700) => ({ on: 0, fault: { kind: "slow" as const, ms, moment } });
const uncatched: Fault = { kind: "uncatched", from: 0, addFirst: false };
const noKey: Fault = { kind: "refused", as: "unauthorized" };
const all = (count: number, outcome: string) => Array.from({ length: count }, () => outcome);
const names = (count: number): string[] => Array.from({ length: count }, (_, number) => `New ${number}`);
const targetings = (count: number) => (): WriteCall => ({
  tool: "create_targetings",
  input: { items: names(count).map((name) => ({ name })) },
});
const ids = (count: number): string[] => Array.from({ length: count }, (_, number) => `article-${number}`);

/**
 * Fills a project, executes the call that `fill` returns, and returns the outcome of each object. `meanwhile` says
 * which faults and other writes happen during the call.
 */
async function outcomesOf(
  fill: (project: Project) => WriteCall,
  meanwhile: Partial<Omit<Schedule, "call" | "settings">> & {
    readonly retryBudgetMs?: number;
    /** How many milliseconds before the run the project was filled. */
    readonly ageMs?: number;
    readonly clocks?: Partial<
      Pick<Schedule["settings"], "skewMs" | "jump" | "dateClock" | "latencyMs" | "tellsDate" | "tellsTotal">
    >;
  } = {},
): Promise<readonly string[]> {
  const { retryBudgetMs = 120_000, ageMs = 1000, clocks = {}, ...rest } = meanwhile;
  const world = emptyWorld(clocks);
  const call = fill(world.project);
  world.time.advance(ageMs);
  world.begin();
  const schedule: Schedule = {
    seed: 1,
    call,
    settings: {
      ...{ skewMs: 0, latencyMs: 20, retryBudgetMs, bodyBytes: 8_000_000, poison: undefined },
      ...{ tellsTotal: true, tellsDate: true, limits: DOCUMENTED_LIMITS },
      ...clocks,
    },
    ...{
      faults: [],
      others: [],
      rival: undefined,
      failingReads: [],
      stop: undefined,
      kills: [],
      diskFullAfter: undefined,
    },
    ...rest,
  };
  const { violations, ended } = await runSchedule(schedule, world);
  expect(violations).toEqual([]);
  return (ended?.results ?? []).map(({ outcome }) => outcome);
}

const spring = (project: Project): string => project.createTargeting("before", { name: "Spring" }).id;
const option = (project: Project, targeting: string, name: string, parent?: string): string =>
  project.createOption("before", { targeting, name, isGroup: false, parent }).id;
const group = (project: Project, targeting: string, name: string, contexts: readonly string[]): string =>
  project.createOption("before", { targeting, name, isGroup: true, contexts }).id;

/** Swaps the names of two options of one targeting. */
function swap(project: Project): WriteCall {
  const targeting = spring(project);
  const [red, blue] = [option(project, targeting, "Red"), option(project, targeting, "Blue")];
  const items = [
    { _id: red, name: "Blue" },
    { _id: blue, name: "Red" },
  ];
  return { tool: "update_options", input: { items } };
}

/** Adds an option whose Context IDs need two requests. */
function longOption(project: Project): WriteCall {
  const items = [{ name: "Articles", contexts: ids(12_000) }];
  return { tool: "bulk_add_options", input: { targetingId: spring(project), items } };
}

describe("whose an option is whose name is met again after a lost answer", () => {
  const targeting = spring(emptyWorld().project);
  const add = (...items: readonly { readonly name: string; readonly contexts?: readonly string[] }[]) => {
    return (project: Project): WriteCall => {
      const targetingId = spring(project);
      option(project, targetingId, "Old");
      return { tool: "bulk_add_options", input: { targetingId, items } };
    };
  };
  const rivalOf = (items: readonly { readonly name: string; readonly contexts: string[] }[]) => {
    const request = { operation: "addOptions" as const, items: items.map((item) => ({ targeting, ...item })) };
    return [{ on: 0, moment: "after" as const, write: { by: "api" as const, request } }];
  };
  const rival = (name: string, contexts: string[] = []) => rivalOf([{ name, contexts }]);

  test("what was there before is not ours, what is new is", async () => {
    const outcomes = await outcomesOf(add({ name: "Old" }, { name: "New" }), {
      faults: [{ on: 0, fault: lost("whole") }],
    });
    expect(outcomes).toEqual(["failed", "succeeded"]);
  });

  test.each([[[{ name: "New" }, { name: "Other" }]], [[{ name: "New", contexts: ["a"] }]], [[{ name: "New" }]]])(
    "what others rename before the request is sent again is not created twice: %j",
    async (items) => {
      const outcomes = await outcomesOf(add(...items), {
        faults: [{ on: 0, fault: lost("whole") }],
        others: [
          {
            on: 0,
            moment: "after",
            write: { by: "console", what: "renameNewest", from: "New", name: "Renamed" },
          },
        ],
      });
      expect(outcomes).toEqual(items.map(({ name }) => (name === "New" ? "unknown" : "succeeded")));
    },
  );

  test("an older sub-option with the same content is not taken for a renamed option of the request", async () => {
    const fill = (project: Project): WriteCall => {
      const targetingId = spring(project);
      const parent = group(project, targetingId, "Group", ["a"]);
      const items = [
        { name: "New", contexts: ["a"] },
        { name: "Sub", contexts: ["b"], parent },
      ];
      project.createOption("before", { targeting: targetingId, name: "Old", isGroup: false, parent, contexts: ["a"] });
      return { tool: "bulk_add_options", input: { targetingId, items } };
    };
    const outcomes = await outcomesOf(fill, { faults: [{ on: 0, fault: lost("none") }] });
    expect(outcomes).toEqual(["succeeded", "succeeded"]);
  });

  test("it is not told where the resent request made the others", async () => {
    const faults = [{ on: 0, fault: lost("none") }];
    const outcomes = await outcomesOf(add({ name: "New" }, { name: "Other" }), { faults, others: rival("New") });
    expect(outcomes).toEqual(["unknown", "succeeded"]);
  });

  test.each([[["other"]], [[]]])("it is not told where it holds other Context IDs than were sent: %j", async (held) => {
    const faults = [{ on: 0, fault: lost("none") }];
    const others = rival("New", held);
    expect(await outcomesOf(add({ name: "New", contexts: ["own"] }), { faults, others })).toEqual(["unknown"]);
  });

  const many = (count: number, contextOf: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => ({ name: `New ${at}`, contexts: [contextOf(at)] }));

  test("nor is it told of any of many, although lists tell the same of each", async () => {
    const faults = [{ on: 0, fault: lost("none") }];
    const others = rivalOf(many(250, (at) => `other ${at}`));
    const outcomes = await outcomesOf(add(...many(250, (at) => `own ${at}`)), { faults, others });
    expect(outcomes).toEqual(all(250, "unknown"));
  });

  test("of many, those are not told that hold others, and nobody else's is taken for ours", async () => {
    const faults = [{ on: 0, fault: lost("none") }];
    const others = rivalOf(many(250, (at) => (at % 5 === 0 ? `other ${at}` : `own ${at}`)));
    const outcomes = await outcomesOf(add(...many(250, (at) => `own ${at}`)), { faults, others });
    expect(outcomes.filter((_, at) => at % 5 === 0)).toEqual(all(50, "unknown"));
  });

  test.each([
    ["addContexts", ["own"], "succeeded"],
    ["addContexts", [], "unknown"],
    ["skip", ["own"], "unknown"],
  ] as const)("whoever made it: %s of %j comes out as %s", async (onExisting, contexts, outcome) => {
    const faults = [{ on: 0, fault: lost("none") }];
    const call = (project: Project): WriteCall => {
      const made = add({ name: "New", contexts })(project);
      return made.tool === "bulk_add_options" ? { ...made, input: { ...made.input, onExisting } } : made;
    };
    expect(await outcomesOf(call, { faults, others: rival("New", ["other"]) })).toEqual([outcome]);
  });

  // The option was not in the list that was read before the run. But if the service's clock was set back, its ID does
  // not prove when it was created.
  test.each(["before", "after"] as const)(
    "what somebody made before our first attempt is never ours, slow %s",
    async (moment) => {
      const call = (project: Project): WriteCall => {
        const items = [
          { name: "Articles", contexts: ids(10_000) },
          { name: "New", contexts: ids(2) },
        ];
        return { tool: "bulk_add_options", input: { targetingId: spring(project), items } };
      };
      const faults = [slow(moment, 30_000), { on: 1, fault: lost("none") }];
      const others = rival("New", ids(2)).map((other) => ({ ...other, moment: "before" as const }));
      expect(await outcomesOf(call, { faults, others })).toEqual(["succeeded", "unknown"]);
    },
  );
});

describe("readings of the service's clock narrow until they can decide", () => {
  /** The first request is slow before it is applied, as on a new connection. The answer to the second is lost. */
  const faults = [slow("before"), { on: 1, fault: lost("whole") }];

  test.each([
    { skewMs: 0 },
    { skewMs: 0, latencyMs: 4 },
    { skewMs: 0, latencyMs: 200 },
    { skewMs: 86_400_000 },
    { skewMs: -3_600_123 },
    { skewMs: 437 },
  ])("200 targetings, the second answer lost: none is unknown with %j", async (clocks) => {
    expect(await outcomesOf(targetings(200), { faults, clocks })).toEqual(all(200, "succeeded"));
  });

  test.each([{ skewMs: 0 }, { skewMs: 0, latencyMs: 4 }, { skewMs: 1_000_000 }])(
    "300 sub-options, the second answer lost: none is unknown with %j",
    async (clocks) => {
      const call = (project: Project): WriteCall => {
        const targetingId = spring(project);
        const parent = group(project, targetingId, "Group", ["own"]);
        return {
          tool: "bulk_add_options",
          input: { targetingId, items: names(300).map((name) => ({ name, parent })) },
        };
      };
      expect(await outcomesOf(call, { faults, clocks })).toEqual(all(300, "succeeded"));
    },
  );

  const rivalsWrite = (moment: "before" | "answering") => {
    const items = names(200).slice(100);
    const request = { operation: "createTargetings" as const, items: items.map((name) => ({ name })) };
    return [{ on: 0, moment, write: { by: "api" as const, request } }];
  };

  test.each([
    ["before", "before", "failed"],
    // The answer was slow, and two clocks may differ: the targetings may be older or newer than the request.
    ["before", "after", "unknown"],
    // Only the header `Date` could show which are older, but it may come from a clock that is ahead.
    ["answering", "after", "unknown"],
  ] as const)("what another writer made %s, slow %s, is never ours: %s", async (moment, slowly, outcome) => {
    const late = [slow(slowly, 30_000), { on: 1, fault: lost("none") }];
    const outcomes = await outcomesOf(targetings(200), { faults: late, others: rivalsWrite(moment) });
    expect(outcomes).toEqual([...all(100, "succeeded"), ...all(100, outcome)]);
  });

  test.each([{ tellsDate: false }, { dateClock: { aheadMs: 3_600_000 } }, { dateClock: { aheadMs: -3_600_000 } }])(
    "what nothing tells stays unknown, and is never a guess: %j",
    async (clocks) => {
      const outcomes = await outcomesOf(targetings(200), { faults, clocks });
      expect(outcomes).toEqual([...all(100, "succeeded"), ...all(100, "unknown")]);
    },
  );

  test.each([{ tellsDate: false }, { dateClock: { aheadMs: 3_600_000 } }, { dateClock: { aheadMs: -3_600_000 } }])(
    "an hour between two clocks of the service takes nobody else's for ours: %j",
    async (clocks) => {
      const late = [slow("after"), { on: 1, fault: lost("none") }];
      const outcomes = await outcomesOf(targetings(200), { faults: late, others: rivalsWrite("answering"), clocks });
      expect(outcomes).toEqual([...all(100, "succeeded"), ...all(100, "unknown")]);
    },
  );

  /** Returns the outcomes of targetings 100 to 199, for each moment around the second request at which a process dies. */
  const secondAfterDeaths = async (meanwhile: Parameters<typeof outcomesOf>[1]) => {
    const found: string[] = [];
    for (let dieAt = 10; dieAt < 22; dieAt += 1) {
      const outcomes = await outcomesOf(targetings(200), { ...meanwhile, kills: [dieAt] });
      found.push(...new Set(outcomes.slice(100)));
    }
    return found;
  };

  test("what a process that died has created is known by what its earlier request showed", async () => {
    expect(await secondAfterDeaths({ faults: [slow("before")] })).toEqual(all(12, "succeeded"));
  });

  test.each(["before", "answering"] as const)(
    "after a death, what another writer made shortly before the request, %s the slow one, is never ours",
    async (moment) => {
      const faults = [slow(moment === "before" ? "before" : "after"), { on: 1, fault: lost("none") }];
      const outcomes = await secondAfterDeaths({ faults, others: rivalsWrite(moment) });
      expect(outcomes).toHaveLength(12);
      expect(outcomes).not.toContain("succeeded");
    },
  );

  test.each([{ tellsDate: false }, { dateClock: { aheadMs: 3_600_000 } }])(
    "each answer narrows what is known: %j",
    async (clocks) => {
      const later = [slow("before"), { on: 2, fault: lost("whole") }];
      expect(await outcomesOf(targetings(300), { faults: later, clocks })).toEqual(all(300, "succeeded"));
    },
  );
});

describe("the header `Date` comes from a clock that differs from the one inside IDs", () => {
  const options = (project: Project): WriteCall => {
    const items = names(300).map((name) => ({ name, contexts: ["own"] }));
    return { tool: "bulk_add_options", input: { targetingId: spring(project), items } };
  };
  const clocks = [
    ...[500, -500, 2000, -2000, 5000, -5000].map((aheadMs) => ({ dateClock: { aheadMs } })),
    { dateClock: { aheadMs: 0, driftMs: 50 } },
    { dateClock: { aheadMs: 0, driftMs: -50 } },
    { dateClock: { aheadMs: 0, jump: { afterMs: 15, byMs: 3000 } } },
    { dateClock: { aheadMs: 3000, jump: { afterMs: 15, byMs: -3000 } } },
    { tellsDate: false },
  ];
  const faults = [{ on: 0, fault: lost("whole") }];

  test.each([...clocks, { tellsTotal: false, tellsDate: false }])(
    "the first write of a process, its answer lost: options are known as our own with %j",
    async (set) => {
      expect(await outcomesOf(options, { faults, clocks: set })).toEqual(all(300, "succeeded"));
    },
  );

  test.each(clocks)("and so are sub-options of groups that were there, with %j", async (set) => {
    const subOptions = (project: Project): WriteCall => {
      const targetingId = spring(project);
      const parents = ["One", "Two"].map((name) => group(project, targetingId, name, [`own of ${name}`]));
      for (const parent of parents) option(project, targetingId, `Old ${parent.slice(-4)}`, parent);
      const items = names(40).map((name, at) => ({ name, parent: parents[at % 2] ?? "" }));
      return { tool: "bulk_add_options", input: { targetingId, items } };
    };
    expect(await outcomesOf(subOptions, { faults, clocks: set })).toEqual(all(40, "succeeded"));
  });

  test.each(clocks)("targetings, which nothing else proves, are unknown and never failed with %j", async (set) => {
    expect(await outcomesOf(targetings(50), { faults, clocks: set })).toEqual(all(50, "unknown"));
  });

  test.each(clocks)(
    "a later write, after IDs of our own told how far ahead the service is, is known with %j",
    async (set) => {
      const later = [{ on: 1, fault: lost("whole") }];
      expect(await outcomesOf(targetings(200), { faults: later, clocks: set })).toEqual(all(200, "succeeded"));
    },
  );

  test.each(clocks)(
    "a slow first answer says less than the header seems to: nothing of ours has failed with %j",
    async (set) => {
      for (const moment of ["before", "after"] as const) {
        const later = [slow(moment), { on: 1, fault: lost("whole") }];
        const outcomes = await outcomesOf(targetings(200), { faults: later, clocks: set });
        expect(outcomes.slice(0, 100)).toEqual(all(100, "succeeded"));
        expect(outcomes).not.toContain("failed");
      }
    },
  );

  test("stopped before the Context IDs of what may be our own are added, it is not reported as not applied", async () => {
    const call = (project: Project): WriteCall => {
      const items = [{ name: "Blue", contexts: ids(4) }];
      const targetingId = spring(project);
      option(project, targetingId, "Old");
      return { tool: "bulk_add_options", input: { targetingId, items, onExisting: "addContexts" } };
    };
    const stop = { on: 1, cause: "interrupted" as const };
    // The newest option could not be read. Then only the clock can show what is new.
    const failingReads = [0, 1];
    const set = { skewMs: -86_400_000, latencyMs: 200, dateClock: { aheadMs: -5000 } };
    const first: Fault = { kind: "status", statusCode: 500, effect: "whole" };
    const given = { faults: [{ on: 0, fault: first }], failingReads, stop, clocks: set };
    expect(await outcomesOf(call, given)).toEqual(["succeeded"]);
  });
});

describe("the clock inside IDs is set back, so that what is new looks older than what existed", () => {
  const byMs = -3_600_000;
  /** The header `Date` is absent or comes from another clock: nothing shows that a clock was set back. */
  const hidden = [{ tellsDate: false }, { dateClock: { aheadMs: 3_600_000 } }, { dateClock: { aheadMs: 60_000 } }];

  test.each([{}, ...hidden])(
    "before the first answer, which is lost: nothing of ours has failed with %j",
    async (set) => {
      const call = (project: Project): WriteCall => {
        project.createTargeting("before", { name: "Old" });
        return { tool: "create_targetings", input: { items: [{ name: "Old" }, { name: "New" }] } };
      };
      const clocks = { ...set, jump: { afterMs: 0, byMs } };
      const outcomes = await outcomesOf(call, { faults: [{ on: 0, fault: lost("whole") }], clocks });
      expect(outcomes).toEqual(all(2, "unknown"));
    },
  );

  test.each([{}, ...hidden])("after an answer: nothing of ours has failed with %j", async (set) => {
    const clocks = { ...set, jump: { afterMs: 30, byMs } };
    const outcomes = await outcomesOf(targetings(150), { faults: [{ on: 1, fault: lost("whole") }], clocks });
    expect(outcomes).toEqual([...all(100, "succeeded"), ...all(50, "unknown")]);
  });

  test.each([{}, ...hidden])("in a list too long to be read whole: nothing of ours has failed with %j", async (set) => {
    const call = (project: Project): WriteCall => {
      const targetingId = spring(project);
      for (let number = 0; number <= 2000; number += 1) option(project, targetingId, `Old ${number}`);
      return { tool: "bulk_add_options", input: { targetingId, items: [{ name: "New" }] } };
    };
    const clocks = { ...set, jump: { afterMs: 0, byMs } };
    expect(await outcomesOf(call, { faults: [{ on: 0, fault: lost("whole") }], clocks })).toEqual(["unknown"]);
  });

  test("in a list too long to be read whole, what was there before has failed where the clocks agree", async () => {
    const call = (project: Project): WriteCall => {
      const targetingId = spring(project);
      for (let number = 0; number <= 2000; number += 1) option(project, targetingId, `Old ${number}`);
      return { tool: "bulk_add_options", input: { targetingId, items: [{ name: "New" }, { name: "Old 7" }] } };
    };
    const outcomes = await outcomesOf(call, { faults: [{ on: 0, fault: lost("whole") }], ageMs: 60_000 });
    expect(outcomes).toEqual(["succeeded", "failed"]);
  });
});

describe("found by the schedules", () => {
  test("a group is made although an older group has the name of a sub-option, whatever the clocks show", async () => {
    const call = (project: Project): WriteCall => {
      const targetingId = spring(project);
      option(project, targetingId, "Bags", group(project, targetingId, "Autumn", ["own"]));
      const items = [{ name: "New" }, { name: "Winter", children: [{ name: "Bags" }, { name: "Boots" }] }];
      return { tool: "bulk_add_options", input: { targetingId, items } };
    };
    for (const set of [{}, { tellsDate: false }, { dateClock: { aheadMs: -500 } }]) {
      const outcomes = await outcomesOf(call, { faults: [{ on: 0, fault: lost("none") }], clocks: set });
      expect(outcomes).toEqual(["succeeded", "succeeded", "failed", "succeeded"]);
    }
  });

  test("a resumed run whose first reading failed knows its own options", async () => {
    const outcomes = await outcomesOf(
      (project) => ({
        tool: "bulk_add_options",
        input: { targetingId: spring(project), items: [{ name: "New" }] },
      }),
      { failingReads: [0], faults: [{ on: 0, fault: lost("whole") }], retryBudgetMs: 100 },
    );
    expect(outcomes).toEqual(["succeeded"]);
  });

  test("a read that fails after an answer throws no answer away", async () => {
    const outcomes = await outcomesOf(
      (project) => {
        const targetingId = spring(project);
        option(project, targetingId, "Taken");
        const items = [{ name: "Made" }, { name: "Group", children: [{ name: "Taken" }, { name: "Free" }] }];
        return { tool: "bulk_add_options", input: { targetingId, items } };
      },
      { failingReads: [1] },
    );
    expect(outcomes).toEqual(["succeeded", "succeeded", "failed", "succeeded"]);
  });

  test("a group whose Context ID is taken does not keep its targeting from being made", async () => {
    const outcomes = await outcomesOf((project) => {
      group(project, spring(project), "Holder", ["taken"]);
      const options = [{ name: "Good" }, { name: "Bad", type: "collection" as const, contexts: ["taken"] }];
      return { tool: "create_targetings", input: { items: [{ name: "Summer", options }] } };
    });
    expect(outcomes).toEqual(["succeeded", "succeeded", "failed"]);
  });

  test("what somebody else deleted needs no taking back", async () => {
    const targeting = spring(emptyWorld().project);
    const request = { operation: "deleteTargetings" as const, items: [targeting] };
    const others = [{ on: 0, moment: "after" as const, write: { by: "api" as const, request } }];
    const outcomes = await outcomesOf(longOption, { others });
    expect(outcomes).toEqual(["failed"]);
  });

  test("the second part of an option fails every time: the first is taken back", async () => {
    const faults = [1, 2, 3, 4].map((on) => ({ on, fault: uncatched }));
    expect(await outcomesOf(longOption, { faults })).toEqual(["failed"]);
  });

  test("the key is withdrawn between two parts of an option", async () => {
    expect(await outcomesOf(longOption, { faults: [{ on: 1, fault: noKey }] })).toEqual(["succeeded"]);
  });

  test("the key is withdrawn before a temporary name is given", async () => {
    expect(await outcomesOf(swap, { faults: [{ on: 1, fault: noKey }] })).toEqual(["succeeded", "succeeded"]);
  });

  test("a run is cancelled between a temporary name and the rest", async () => {
    const stop = { on: 1, cause: "cancelled" as const };
    expect(await outcomesOf(swap, { stop })).toEqual(["succeeded", "succeeded"]);
  });

  test("a temporary name in doubt never travels beside the rename it is for", async () => {
    const faults = [{ on: 1, fault: lost("whole") }];
    expect(await outcomesOf(swap, { faults, retryBudgetMs: 100 })).toEqual(["succeeded", "succeeded"]);
  });

  test("a circle of names breaks at the option that is also moved, and not at all where it cannot be", async () => {
    const call =
      (withGroup: boolean) =>
      (project: Project): WriteCall => {
        const targeting = spring(project);
        const parent = withGroup ? group(project, targeting, "Group", ["own"]) : option(project, targeting, "No group");
        const [red, blue] = [option(project, targeting, "Red"), option(project, targeting, "Blue")];
        const items = [
          { _id: red, name: "Blue" },
          { _id: blue, name: "Red", parent },
          { _id: blue, name: "Red" },
        ];
        return { tool: "update_options", input: { items } };
      };
    expect(await outcomesOf(call(true))).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(await outcomesOf(call(false))).toEqual(["failed", "failed", "failed"]);
  });

  test("a full disk keeps nobody from taking the run up again", async () => {
    const call = (project: Project): WriteCall => ({
      tool: "delete_targeting",
      input: { ids: [spring(project)] },
    });
    expect(await outcomesOf(call, { diskFullAfter: 1 })).toEqual(["alreadyDone"]);
  });

  test("planning that was cut off by a death is done anew", async () => {
    for (let dieAt = 0; dieAt < 16; dieAt += 1) {
      expect(await outcomesOf(swap, { kills: [dieAt] })).toEqual(["succeeded", "succeeded"]);
    }
  });

  test("a run is cancelled while an update that failed unexpectedly, half added, waits to be sent again", async () => {
    const stop = { on: 0, cause: "cancelled" as const };
    const call = (project: Project): WriteCall => {
      const { id } = project.createOption("before", {
        targeting: spring(project),
        name: "Red",
        isGroup: false,
        contexts: ["old"],
      });
      return { tool: "update_contexts", input: { items: [{ _id: id, add: ["new"], remove: ["old"] }] } };
    };
    const faults = [{ on: 0, fault: { kind: "uncatched" as const, from: 0, addFirst: true } }];
    expect(await outcomesOf(call, { stop, faults })).toEqual(["succeeded"]);
  });

  test("a temporary name that is given late never follows the rename it is for", async () => {
    const { project } = emptyWorld();
    const call = swap(project);
    const [, blue] = call.tool === "update_options" ? call.input.items.map(({ _id }) => _id) : [];
    const rival = { call: { tool: "delete_options" as const, input: { ids: [blue ?? ""] } }, faults: [] };
    expect(await outcomesOf(swap, { rival, faults: [{ on: 1, fault: noKey }] })).toEqual(["succeeded", "failed"]);
  });

  test("a sub-option that is newer than every top-level option is not taken for a group that names it", async () => {
    const call = (project: Project): WriteCall => {
      const targetingId = spring(project);
      option(project, targetingId, "Hats", group(project, targetingId, "Clothes", ["own"]));
      const items = [{ name: "Winter", children: [{ name: "Gloves" }, { name: "Hats" }] }];
      return { tool: "bulk_add_options", input: { targetingId, items } };
    };
    const outcomes = await outcomesOf(call, { faults: [{ on: 0, fault: lost("whole") }], ageMs: 97 });
    expect(outcomes).toEqual(["succeeded", "succeeded", "failed"]);
  });

  test("options that follow their new targeting are told apart from those of others, whatever the clocks say", async () => {
    const options = ids(130).map((name) => ({ name: name.replace("article-", "Option ") }));
    const call = (): WriteCall => ({ tool: "create_targetings", input: { items: [{ name: "Spring", options }] } });
    const outcomes = await outcomesOf(call, { faults: [{ on: 1, fault: lost("whole") }] });
    expect(outcomes).toEqual(all(131, "succeeded"));
  });

  const call = (project: Project): WriteCall => {
    const red = option(project, spring(project), "Red");
    return { tool: "update_options", input: { items: [{ _id: red, name: "Blue" }] } };
  };
  const tooLarge: Fault = { kind: "refused", as: "tooLarge" };
  const invalid: Fault = { kind: "refused", as: "validation" };

  test("what is sent again and refused once was not refused the first time", async () => {
    for (const refused of [tooLarge, invalid]) {
      const faults = [
        { on: 0, fault: lost("whole") },
        { on: 1, fault: refused },
      ];
      expect(await outcomesOf(call, { faults })).toEqual(["succeeded"]);
    }
  });

  test("refused over and over, it may have been applied all the same", async () => {
    const faults = [{ on: 0, fault: lost("whole") }, ...[1, 2, 3].map((on) => ({ on, fault: tooLarge }))];
    // The run itself first ends as unknown. `outcomesOf` resumes it, which finds out what happened.
    expect(await outcomesOf(call, { faults })).toEqual(["succeeded"]);
  });

  test("a temporary name whose answer was lost, and whose resend was refused, is no name that stays", async () => {
    const faults = [
      { on: 1, fault: lost("whole") },
      { on: 2, fault: tooLarge },
    ];
    expect(await outcomesOf(swap, { faults })).toEqual(["succeeded", "succeeded"]);
  });

  test("an option that others name as their group is none without them", async () => {
    const items = [{ name: "Larch" }, { name: "Larch", contexts: ["a"], parentName: "Larch" }, { name: "Maple" }];
    const call = (project: Project): WriteCall => {
      return { tool: "bulk_add_options", input: { targetingId: spring(project), items } };
    };
    expect(await outcomesOf(call, {})).toEqual(["failed", "failed", "succeeded"]);
  });

  test("what failed unexpectedly was free: then the others of its unit were not made either", async () => {
    // Worlds that are filled in the same way have the same IDs, so this is the ID in the other world, too.
    const targeting = spring(emptyWorld().project);
    const items = [{ name: "Larch" }, { name: "Maple" }];
    const call = (project: Project): WriteCall => {
      return { tool: "bulk_add_options", input: { targetingId: spring(project), items } };
    };
    const write = {
      by: "api" as const,
      request: { operation: "addOptions" as const, items: [{ targeting, name: "Larch" }] },
    };
    const outcomes = await outcomesOf(call, {
      faults: [
        { on: 0, fault: lost("none") },
        { on: 1, fault: uncatched },
      ],
      others: [{ on: 1, moment: "before", write }],
    });
    expect(outcomes).toEqual(["unknown", "succeeded"]);
  });
});
