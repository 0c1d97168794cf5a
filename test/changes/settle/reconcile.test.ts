import { describe, expect, test } from "vitest";
import { RejectedError } from "../../../src/api/errors.ts";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { noteNewest } from "../../../src/changes/settle/drive.ts";
import { clockOrderOf, type ServerClock } from "../../../src/changes/settle/evidence.ts";
import { existingIds, reconcileCreates } from "../../../src/changes/settle/reconcile.ts";
import type { HeldOption } from "../../support/tool-context.ts";
import { entriesOf, fakeDriver, idAt, START } from "../fake-driver.ts";

const TARGETING = idAt(-60_000);
/** The newest option of the targeting before the run. */
const BEFORE = idAt(-5000);
/** Created by someone while the run was executed. */
const MEANWHILE = idAt(2000);

const noNames = async () => new Map<string, string>();

const taken = (...ids: string[]) => ({ code: "TARGETING_CATEGORY_NAME_DUPLICATE", detail: { existingIds: ids } });

/**
 * A run that adds the option `Shoes` with one Context ID. The first answer was lost, and the list now shows the options
 * in `held`.
 */
function metItsName(
  held: readonly HeldOption[],
  newest: string | null | undefined = BEFORE,
  latest?: readonly string[],
) {
  const make = StepMaker.after({ length: 0 });
  const item = { name: "Shoes", contexts: ["a"] };
  const step = make.addOption(item, { targeting: { id: TARGETING } }, { objects: [0] });
  const entries: JournalEntry[] = [
    ...entriesOf([step]),
    ...(newest === undefined
      ? []
      : [{ t: "newest", targeting: TARGETING, _id: newest, ...(latest && { latest }) } as const]),
    { t: "send", steps: [0], at: START + 1000, again: false },
    { t: "answer", at: START + 3000, changes: [{ step: 0, to: "suspect" }] },
  ];
  const faked = fakeDriver(entries, { held });
  faked.time.advance(5000);
  return { step, ...faked };
}

const shoes = (_id: string, contexts: readonly string[] = ["a"]): HeldOption => ({
  _id,
  name: "Shoes",
  type: "atomic",
  contextCount: contexts.length,
  contexts,
});

/**
 * A run that adds the option `Shoes` with one Context ID to `place`. The list showed `before`. Then the request got no
 * answer, and the list shows `now`.
 */
async function listedAndLost(place: NewPlace, before: readonly HeldOption[], now: readonly HeldOption[]) {
  const make = StepMaker.after({ length: 0 });
  const step = make.addOption({ name: "Shoes", contexts: ["a"] }, place, { objects: [0] });
  const entries = entriesOf([step]);
  const first = fakeDriver(entries, { held: before });
  await noteNewest(first.driver);
  const sent: JournalEntry[] = [
    { t: "send", steps: [0], at: START + 1000, again: false },
    { t: "answer", at: START + 3000, changes: [{ step: 0, to: "suspect" }] },
  ];
  const { driver, time } = fakeDriver([...entries, ...first.journal, ...sent], { held: now });
  time.advance(5000);
  return { driver, step };
}

/** Shows a driver that the clock inside IDs and the header `Date` agree with the clock of this machine. */
function compareClocks({ serverClock }: { readonly serverClock: ServerClock }): void {
  serverClock.observeMade([START + 100], START + 95, START + 105);
  serverClock.observe({ from: START + 5000, to: START + 5999, sentAt: START + 5400, receivedAt: START + 5410 });
}

type NewPlace = Parameters<StepMaker["addOption"]>[1];

async function verdict(held: readonly HeldOption[], existing: string, madeNow = false) {
  const { driver, step } = metItsName(held);
  return reconcileCreates(driver, [{ step, reason: taken(existing) }], madeNow, noNames);
}

describe("a resent create that meets its name", () => {
  test("is unknown where the service names an ID that does not tell when it was made", async () => {
    expect(await verdict([], "not-a-ulid")).toMatchObject([{ to: "unknown", reason: { code: "OWNER_UNCLEAR" } }]);
  });
});

describe("a resent create that meets its name, where the list cannot be read", () => {
  test.each([
    ["forbidden", 403, "NO_ANSWER"],
    ["business", 404, "OWNER_UNCLEAR"],
  ] as const)("%s", async (kind, statusCode, code) => {
    const { driver, step } = metItsName([]);
    const rejected = new RejectedError({ kind, statusCode, operation: "listOptions", route: "/" });
    const api = { ...driver.api, listOptions: () => Promise.reject(rejected) };
    const changes = await reconcileCreates({ ...driver, api }, [{ step, reason: taken(MEANWHILE) }], false, noNames);
    expect(changes).toMatchObject([{ to: "unknown", reason: { code } }]);
  });
});

describe("the clocks of the machines that make IDs differ by less than two seconds", () => {
  /**
   * Returns the verdict on an option with this ID. An earlier request of the process has already shown the service's
   * clock.
   */
  async function onOther(machine: string, newest: string, latest: readonly string[]) {
    const { driver, step } = metItsName([shoes(machine)], newest, latest);
    compareClocks(driver);
    return reconcileCreates(driver, [{ step, reason: taken(machine) }], false, noNames);
  }

  test("what was not there before is not reported as failed, although its ID looks older than the attempt", async () => {
    for (const ours of [idAt(400), idAt(-700)]) {
      expect(await onOther(ours, BEFORE, [BEFORE])).toMatchObject([
        { to: "unknown", reason: { code: "OWNER_UNCLEAR" } },
      ]);
    }
  });

  test("nor by the clock alone, where nothing was listed", async () => {
    const { driver, step, state } = metItsName([shoes(idAt(400))]);
    state.newest.clear();
    compareClocks(driver);
    const changes = await reconcileCreates(driver, [{ step, reason: taken(idAt(400)) }], false, noNames);
    expect(changes).toMatchObject([{ to: "unknown" }]);
  });

  test("nor where it looks older than the newest option, too", async () => {
    const newest = idAt(500);
    expect(await onOther(idAt(400), newest, [idAt(300), newest])).toMatchObject([{ to: "unknown" }]);
  });

  test("what was there before has failed", async () => {
    const newest = idAt(500);
    for (const theirs of [newest, idAt(300), idAt(-1600)]) {
      expect(await onOther(theirs, newest, [idAt(300), newest])).toMatchObject([{ to: "failed" }]);
    }
  });
});

describe("the newest option before a run", () => {
  const made = (count: number): readonly HeldOption[] =>
    Array.from({ length: count }, (_, at) => ({ ...shoes(idAt(at - 5000)), name: `N ${at}` }));
  /** In another order than that of creation: the newest option is first or in the middle. */
  const turned = (options: readonly HeldOption[]): readonly HeldOption[] => options.toReversed();
  const mixed = (options: readonly HeldOption[]): readonly HeldOption[] => [
    ...options.filter((_, at) => at % 2 === 0),
    ...options.filter((_, at) => at % 2 === 1).toReversed(),
  ];

  async function noted(options: readonly HeldOption[], tellsTotal = true): Promise<string | null | undefined> {
    return (await notedWhole(options, tellsTotal))?._id;
  }

  async function notedWhole(options: readonly HeldOption[], tellsTotal = true) {
    const make = StepMaker.after({ length: 0 });
    const step = make.addOption({ name: "Shoes" }, { targeting: { id: TARGETING } }, { objects: [0] });
    const listOptions = async (_: string, { limit = 1000, offset = 0 } = {}) => ({
      items: options.slice(offset, offset + limit),
      ...(tellsTotal && { total: options.length }),
    });
    const { driver, state } = fakeDriver(entriesOf([step]), { api: { listOptions } });
    await noteNewest(driver);
    return state.newest.get(TARGETING);
  }

  test.each([
    ["in creation order", (options: readonly HeldOption[]) => options],
    ["newest first", turned],
    ["in no order of time", mixed],
  ])("is found in a list of one page, %s, with and without a total", async (_, order) => {
    for (const tellsTotal of [true, false]) {
      expect(await noted([], tellsTotal)).toBeNull();
      expect(await noted(order(made(1)), tellsTotal)).toBe(idAt(-5000));
      expect(await noted(order(made(7)), tellsTotal)).toBe(idAt(-4994));
    }
  });

  test("is found in a longer list by its first and its last page, where these are in an order of time", async () => {
    const newest = idAt(-5000 + 2499);
    expect(await noted(made(2500))).toBe(newest);
    expect(await noted(turned(made(2500)))).toBe(newest);
  });

  test("comes with those that a clock set back could not be told from, where its page contains them all", async () => {
    const seconds = Array.from({ length: 2500 }, (_, at) => ({ ...shoes(idAt(1000 * (at - 5000))), name: `N ${at}` }));
    const latest = [2497, 2498, 2499].map((at) => idAt(1000 * (at - 5000)));
    expect(await notedWhole(seconds)).toMatchObject({ _id: latest[2], latest });
    expect(await notedWhole(turned(seconds))).toMatchObject({ _id: latest[2], latest });
    expect((await notedWhole(made(2500)))?.latest).toBeUndefined();
  });

  test("stays unknown in a longer list that has another order, or no total", async () => {
    expect(await noted(mixed(made(2500)))).toBeUndefined();
    expect(await noted(made(2500), false)).toBeUndefined();
  });
});

describe("a step that another machine has sent first", () => {
  /** The order of an object by the clock. This machine has readings of its own, and the other one sent at `START`. */
  function orderAt(afterMs: number, machine: string, ahead?: { readonly lowest: number; readonly highest: number }) {
    const { driver, step, state } = metItsName([]);
    state.newest.clear();
    const sent: JournalEntry = { t: "send", steps: [0], at: START, again: true, machine, ...(ahead && { ahead }) };
    const other = fakeDriver([...entriesOf([step]), sent, { t: "resume", at: START + 1 }]);
    other.driver.change([{ step: 0, to: "suspect" }]);
    const here = { ...other.driver, clock: { ...clockOf(driver), machine: "here" } };
    here.serverClock.observeMade([START + 4000], START + 4990, START + 5010);
    here.serverClock.observe({ from: START + 4000, to: START + 4999, sentAt: START + 5100, receivedAt: START + 5110 });
    return clockOrderOf(here, { id: idAt(afterMs), step });
  }
  const clockOf = ({ clock }: ReturnType<typeof fakeDriver>["driver"]) => ({
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: () => Promise.resolve(),
  });

  test("is judged by the readings of this machine only if this machine sent it", () => {
    // By the clock of this machine, the service is a second behind.
    expect(orderAt(-500, "here")).toBe("after");
    expect(orderAt(-60_000, "here")).toBe("before");
    expect(orderAt(-500, "there")).toBe("unclear");
    expect(orderAt(-60_000, "there")).toBe("unclear");
  });

  test("is judged by what the other machine knew, which never shows that an object is older", () => {
    const ahead = { lowest: 0, highest: 100 };
    expect(orderAt(-500, "there", ahead)).toBe("unclear");
    expect(orderAt(99, "there", ahead)).toBe("unclear");
    expect(orderAt(100, "there", ahead)).toBe("after");
    expect(orderAt(-60_000, "there", ahead)).toBe("unclear");
  });
});

describe("a clock that is set back by any time during a run", () => {
  /** An hour before the first attempt, as if the clock had been set back. */
  const SET_BACK = idAt(-3_600_000);

  /**
   * Returns the verdict on `found`. Before, the run has read the whole list (`before`), and another of its requests was
   * answered.
   */
  async function verdictAfter(before: readonly HeldOption[], found: HeldOption, madeNow = false) {
    const { driver, step } = await listedAndLost({ targeting: { id: TARGETING } }, before, [...before, found]);
    compareClocks(driver);
    return reconcileCreates(driver, [{ step, reason: taken(found._id) }], madeNow, noNames);
  }
  const others = [BEFORE, idAt(-4000)].map((_id, at) => ({ ...shoes(_id), name: `Other ${at}` }));

  test("does not make our own option a failed one, whatever the list had before", async () => {
    for (const before of [[], others]) {
      expect(await verdictAfter(before, shoes(SET_BACK))).toMatchObject([
        { to: "unknown", reason: { code: "OWNER_UNCLEAR" } },
      ]);
    }
  });

  test("changes nothing for an option that the list had before the run, or that differs from what was sent", async () => {
    expect(await verdictAfter([...others, shoes(SET_BACK)], shoes(SET_BACK))).toMatchObject([{ to: "failed" }]);
    expect(await verdictAfter(others, shoes(SET_BACK, ["b"]))).toMatchObject([{ to: "failed" }]);
  });

  test("changes nothing where the resend made others of its unit: the first attempt has made nothing", async () => {
    expect(await verdictAfter(others, shoes(SET_BACK), true)).toMatchObject([{ to: "failed" }]);
  });
});

describe("a sub-option that is created in an existing group", () => {
  const GROUP = idAt(-50_000);
  const group = (subOptions: readonly HeldOption[]): HeldOption => ({
    ...{ _id: GROUP, name: "Season", type: "collection", contexts: [], contextCount: 0 },
    subOptions: subOptions.map((option) => ({ ...option, parent: GROUP })),
  });

  /** Returns the verdict after the list showed `before`, the request got no answer, and the list shows `now`. */
  async function verdictOn(existing: string, before: readonly HeldOption[], now: readonly HeldOption[]) {
    const place = { targeting: { id: TARGETING }, parent: { id: GROUP } };
    const { driver, step } = await listedAndLost(place, before, now);
    return reconcileCreates(driver, [{ step, reason: taken(existing) }], false, noNames);
  }
  const old = { ...shoes(BEFORE), name: "Easter" };

  test("has failed where the group had that name before", async () => {
    const held = [group([old, shoes(idAt(-4000))])];
    expect(await verdictOn(idAt(-4000), held, held)).toMatchObject([{ to: "failed" }]);
  });

  test("is unknown where what has the name is not in the group, however new it is", async () => {
    const changes = await verdictOn(MEANWHILE, [group([old])], [group([old]), shoes(MEANWHILE)]);
    expect(changes).toMatchObject([{ to: "unknown", reason: { code: "OWNER_UNCLEAR" } }]);
  });
});

test("the IDs of a taken name are read in both forms of the documents, and nothing else is taken for one", () => {
  expect(existingIds(taken("a", "b"))).toEqual(["a", "b"]);
  expect(existingIds({ code: "TARGETING_NAME_DUPLICATE", detail: { existingId: "c" } })).toEqual(["c"]);
  expect(existingIds({ code: "X", detail: { existingIds: "a" } })).toEqual([]);
  expect(existingIds({ code: "X" })).toEqual([]);
});
