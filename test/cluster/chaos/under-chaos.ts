import { setTimeout as delay } from "node:timers/promises";
import { randomFrom } from "../../faults/random.ts";
import type { TestPostgres } from "../postgres.ts";
import { type Caller, work } from "./callers.ts";
import { leaseWatch } from "./lease-watch.ts";
import { type Members, type Place, startMembers, type Trouble } from "./members.ts";
import { callerOf, manyProjects } from "./projects.ts";
import { allAtRest, truthOf } from "./truth.ts";

/** Which faults happen to a cluster while callers use it. */
export interface Schedule {
  readonly seed: number;
  readonly kinds: readonly Place["kind"][];
  readonly spared?: Place["kind"];
  readonly projects: number;
  /** For how many milliseconds faults happen. */
  readonly ms: number;
  /** Lists of faults. The lists are worked through at the same time. */
  readonly lanes: readonly (readonly Trouble[])[];
  readonly faults: readonly object[];
  readonly settings?: Readonly<Record<string, string>>;
}

/** Lets callers use a cluster while faults happen. Returns what was wrong afterwards. */
export async function underChaos(postgres: TestPostgres, schedule: Schedule, closing: (() => unknown)[]) {
  const { seed, kinds, projects, ms, lanes, faults } = schedule;
  const random = randomFrom(seed);
  const store = await postgres.database();
  let members: Members | undefined;
  const watch = leaseWatch(store, callerOf);
  const { service, gate, callers, settings, close } = await manyProjects(projects, (write) =>
    watch.look(write, members?.pidOf(write.from)),
  );
  closing.push(() => watch.close(), close);
  const its = { ...settings, ...schedule.settings };
  members = await startMembers({ postgres, gate: () => gate, settings: its, store, kinds, spared: schedule.spared });
  const { urls, trouble } = members;
  closing.push(members.close);
  const working: Caller[] = [];
  for (const { name, token, key } of callers) {
    const targetingId = await service.targeting(name, key);
    working.push({ name, token, targetingId, urls, random: randomFrom(seed + working.length) });
  }
  await service.faults(...faults);
  const until = Date.now() + ms;
  const [told] = await Promise.all([trouble(random, ms, lanes), ...working.map((caller) => work(caller, until))]);
  await service.calm();
  await delay(1000);
  const founds = await Promise.all(
    working.map(async (caller) => {
      await allAtRest(caller);
      const there = (await service.optionsThere()).filter(({ targeting }) => targeting === caller.targetingId);
      return truthOf(caller, there);
    }),
  );
  const sum = (count: (found: (typeof founds)[number]) => number): number =>
    founds.reduce((total, found) => total + count(found), 0);
  const wrong = founds.flatMap((found) => found.wrong);
  process.stdout.write(
    `seed ${seed}: ${told.length} faults (${told.join(" ")}); ${sum(({ runs }) => runs)} runs, ` +
      `${sum(({ items }) => items)} items, ${sum(({ unknown }) => unknown)} unknown; ${gate.writes.length} writes, ` +
      `${watch.looked} of them looked at: ${watch.late.length} late, ${watch.betweenHolders} between two holders, ` +
      `${gate.overlaps.length} overlapping; ${wrong.length} wrong\n`,
  );
  return { told, writes: gate.writes.length, wrong: wrong.slice(0, 10), late: watch.late, overlaps: gate.overlaps };
}
