import { describe, expect, test } from "vitest";
import { checkRetentionClock, retentionWatch, type SeenClock } from "../../src/runs/retention-clock.ts";

const DAY_MS = 86_400_000;
const NOW = 1_800_000_000_000;
const KEEP_MS = 30 * DAY_MS;

const judge = (before: SeenClock | undefined, now: number, others: readonly number[] = [], newest?: number) =>
  checkRetentionClock(before, { now, others, newest }, KEEP_MS);

describe("runs are removed by the clock of this machine", () => {
  test("where it goes on from what was seen of it, or from the newest stored run", () => {
    const { seen, doubt } = judge(undefined, NOW, [], NOW - 2 * DAY_MS);
    expect(doubt).toBeUndefined();
    expect(judge(seen, NOW + 3 * DAY_MS).doubt).toBeUndefined();
    expect(judge(undefined, NOW).doubt).toBeUndefined();
  });

  test("where another clock agrees with it, and nothing was seen of it before", () => {
    expect(judge(undefined, NOW, [NOW - 60_000], NOW - 50 * DAY_MS).doubt).toBeUndefined();
  });
});

describe("no run is removed", () => {
  test("while another clock says something else, which leaves no trace once they agree", () => {
    const { seen } = judge(undefined, NOW, [NOW]);
    const ahead = judge(seen, NOW + 40 * DAY_MS, [NOW]);
    expect(ahead.doubt).toContain("the clock of this machine says 2027-02-24, but another clock says 2027-01-15");
    expect(judge(ahead.seen, NOW + DAY_MS, [NOW + DAY_MS]).doubt).toBeUndefined();
  });

  test("for a day after a jump that other clocks confirm", () => {
    const { seen } = judge(undefined, NOW, [NOW]);
    const back = NOW + 40 * DAY_MS;
    const after = judge(seen, back, [back]);
    expect(after.doubt).toContain("jumped from 2027-01-15 to 2027-02-24; no stored run is removed before 2027-02-25");
    expect(judge(after.seen, back + DAY_MS - 1, [back + DAY_MS]).doubt).toBeDefined();
    expect(judge(after.seen, back + DAY_MS).doubt).toBeUndefined();
  });

  test("for as long as runs are kept after a jump that nobody confirms, also since the newest stored run", () => {
    const ahead = NOW + 40 * DAY_MS;
    for (const { seen, doubt } of [judge(judge(undefined, NOW).seen, ahead), judge(undefined, ahead, [], NOW)]) {
      expect(doubt).toContain("before 2027-03-26");
      const stays = judge(seen, ahead + 6 * DAY_MS);
      expect(stays.doubt).toBeDefined();
      expect(judge(stays.seen, ahead + 12 * DAY_MS).doubt).toBeDefined();
    }
  });

  test("after a clock that was behind is right again: what was made meanwhile looks far too old", () => {
    const behind = judge(undefined, 0);
    const right = judge(behind.seen, NOW, [NOW]);
    expect(right.doubt).toContain("jumped from 1970-01-01");
    // The other clock did not confirm this clock before it jumped.
    expect(judge(right.seen, NOW + 5 * DAY_MS, [NOW + 5 * DAY_MS]).doubt).toBeDefined();
  });

  test("after a clock goes back", () => {
    expect(judge(judge(undefined, NOW).seen, NOW - 3 * DAY_MS).doubt).toContain("jumped from 2027-01-15 to 2027-01-12");
  });
});

test("a doubt is told once, and the clock is stored only where that says something new", async () => {
  let now = NOW;
  let kept: SeenClock | undefined;
  let stored = 0;
  const told: string[] = [];
  const watch = retentionWatch({
    clock: { now: () => now, monotonic: () => 0 },
    keepMs: KEEP_MS,
    read: async () => kept,
    async store(seen) {
      kept = seen;
      stored += 1;
    },
    newest: async () => undefined,
  });
  watch.onDoubt((doubt) => told.push(doubt));
  for (let look = 0; look < 3; look += 1) expect(await watch.doubt()).toBeUndefined();
  expect(stored).toBe(1);
  watch.noteService(NOW);
  // What the service said about the time stays valid when this machine's clock jumps.
  now += 40 * DAY_MS;
  for (let look = 0; look < 3; look += 1) expect(await watch.doubt()).toContain("until they agree");
  expect(await watch.peek()).toContain("until they agree");
  expect(told).toHaveLength(1);
});
