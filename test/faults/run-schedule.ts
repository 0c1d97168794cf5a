import { isApiError } from "../../src/api/errors.ts";
import type { WriteCall } from "../../src/bulk/call.ts";
import { targetingMemory } from "../../src/bulk/memory.ts";
import { memoryRunStore } from "../../src/bulk/memory-store.ts";
import type { Plan } from "../../src/bulk/plan/plan.ts";
import { processLock } from "../../src/bulk/project-lock.ts";
import { countsOf, objectResults } from "../../src/bulk/report.ts";
import { WRITE_FORM } from "../../src/bulk/run-form.ts";
import { type Run, Runs } from "../../src/bulk/runs.ts";
import type { RunStore } from "../../src/bulk/store.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import { ulidOf } from "./model/facts.ts";
import { ModelService } from "./model/service.ts";
import { Killed, mortalProcess, storeOnFullDisk } from "./mortal.ts";
import { type Ended, judge, snapshotOf } from "./oracle.ts";
import { writeAsOther } from "./others.ts";
import { randomFrom } from "./random.ts";
import { type Schedule, type World, worldOf } from "./schedule.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** What a schedule came to: everything that went against the guarantee, and the report to look at. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly ended: Ended | undefined;
  /** Write requests that were sent. */
  readonly writes: number;
}

/** The plan of a call; undefined where it cannot be planned, since its targeting is none. */
async function planned(runs: Runs, call: WriteCall): Promise<Plan | undefined> {
  try {
    return await runs.plan(call, new AbortController().signal);
  } catch (thrown) {
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/** Takes a run up again, as often as a read for its planning fails. */
async function resumed(runs: Runs, runId: string): Promise<Run | undefined> {
  for (;;) {
    const run = await runs.resume(runId);
    await run?.rest;
    if (!isApiError(run?.problem())) return run;
  }
}

/**
 * Runs one schedule: plans and starts the call, lets faults, others, stops and deaths happen, judges; then everything is
 * quiet, the run is taken up again, and it is judged once more.
 */
export async function runSchedule(
  schedule: Schedule,
  world: World = worldOf(schedule.seed, schedule.settings.skewMs),
): Promise<Verdict> {
  const { project, time } = world;
  const before = snapshotOf(project);
  const driven: Driven = { run: undefined };
  const service = serviceFor(schedule, world, driven);
  const store = memoryRunStore(WRITE_FORM);
  const processOf = processesFor(schedule, { store, service, time });

  service.disturbed = false;
  const planning = processOf(Number.POSITIVE_INFINITY).runs;
  const plan = await planned(planning, schedule.call);
  if (plan === undefined) return { violations: [], ended: undefined, writes: 0 };
  const { runId, ...header } = await planning.keep(schedule.call, "tester");
  service.disturbed = true;
  const drive = async (runs: Runs): Promise<void> => {
    const isStarted = (await store.read(runId))?.started ?? false;
    try {
      driven.run = isStarted ? await resumed(runs, runId) : await runs.start({ runId, ...header }, plan);
      await driven.run?.rest;
    } catch (thrown) {
      if (!(thrown instanceof Killed)) throw thrown;
    }
  };
  for (const [number, dieAt] of [...schedule.kills, Number.POSITIVE_INFINITY].entries()) {
    const { runs, mortal } = processOf(dieAt, number === 0 ? schedule.diskFullAfter : undefined);
    await drive(runs);
    if (!mortal.isDead()) break;
    await mortal.bury();
    driven.run = undefined;
  }
  time.drain();
  const judged = (isSettled: boolean): readonly string[] => {
    if (driven.run === undefined) return ["the run was not found again"];
    const moment = isSettled ? "settled" : "disturbed";
    const about = { schedule, service, project, before, isSettled, ended: endOf(driven.run) };
    return judge(about).map((violation) => `${moment}: ${violation}`);
  };
  const disturbed = judged(false);
  service.disturbed = false;
  await drive(processOf(Number.POSITIVE_INFINITY).runs);
  return {
    violations: [...disturbed, ...judged(true), ...service.improper],
    ended: driven.run && endOf(driven.run),
    writes: service.writes,
  };
}

/** The run that is being driven, once it is known. */
interface Driven {
  run: Run | undefined;
}

function endOf(run: Run): Ended {
  return {
    status: run.status(),
    counts: countsOf(run.state),
    results: objectResults(run.state),
  };
}

/** The service of a schedule, with its faults, its other writers, and a stop of the run. */
function serviceFor(schedule: Schedule, { project, time }: World, driven: Driven): ModelService {
  const { settings, others, stop } = schedule;
  const service: ModelService = new ModelService({
    ...settings,
    project,
    time,
    faults: new Map(schedule.faults.map(({ on, fault }) => [on, fault])),
    failingReads: new Set(schedule.failingReads),
    others: (request, moment) => {
      for (const other of others) {
        if (other.on !== request || other.moment !== moment) continue;
        if (other.write.by === "console" || !service.isBusy()) writeAsOther(project, settings.limits, other.write);
      }
      if (moment === "before" && stop?.on === request) driven.run?.stop(stop.cause);
    },
  });
  return service;
}

/** Makes processes with an engine in them, one after the other, that share a disk. */
function processesFor(
  { seed, settings }: Schedule,
  { store, service, time }: { readonly store: RunStore; readonly service: ModelService; readonly time: VirtualTime },
) {
  const random = randomFrom(seed * 31 + 7);
  const memory = targetingMemory({ now: () => time.now(), onProblem: () => {} });
  let runIds = 0;
  return (dieAt: number, diskFullAfter?: number) => {
    const disk = diskFullAfter === undefined ? store : storeOnFullDisk(store, diskFullAfter);
    const mortal = mortalProcess({ store: disk, api: service }, dieAt, random);
    const runs = new Runs({
      api: mortal.api,
      routes: ROUTES,
      store: mortal.store,
      lock: processLock(),
      clock: time,
      random: random.next,
      newRunId: () => {
        runIds += 1;
        return ulidOf(time.now(), runIds);
      },
      project: "project",
      environment: "sandbox",
      retryBudgetMs: settings.retryBudgetMs,
      words: ({ code }) => code,
      memory,
    });
    return { runs, mortal };
  };
}
