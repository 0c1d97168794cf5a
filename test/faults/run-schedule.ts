import { isApiError } from "../../src/api/errors.ts";
import type { WriteCall } from "../../src/bulk/call.ts";
import { memoryRunStore } from "../../src/bulk/memory-store.ts";
import type { Plan } from "../../src/bulk/plan/plan.ts";
import { processLock } from "../../src/bulk/project-lock.ts";
import { countsOf, objectResult } from "../../src/bulk/report.ts";
import { type Run, Runs } from "../../src/bulk/runs.ts";
import { ROUTES } from "../../src/spec/routes.ts";
import { ulidOf } from "./model/facts.ts";
import { ModelService } from "./model/service.ts";
import { Killed, mortalProcess, storeOnFullDisk } from "./mortal.ts";
import { type Ended, judge, snapshotOf } from "./oracle.ts";
import { writeAsOther } from "./others.ts";
import { randomFrom } from "./random.ts";
import { type Schedule, worldOf } from "./schedule.ts";

/** What a schedule came to: everything that went against the guarantee, and the report to look at. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly ended: Ended | undefined;
  /** Write requests that were sent. */
  readonly writes: number;
}

const PROJECT = "project";

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
    try {
      return await runs.resume(runId);
    } catch (thrown) {
      if (!isApiError(thrown)) throw thrown;
    }
  }
}

/**
 * Runs one schedule: plans and starts the call, lets faults, others, stops and deaths happen, judges; then everything is
 * quiet, the run is taken up again, and it is judged once more.
 */
export async function runSchedule(schedule: Schedule): Promise<Verdict> {
  const { settings, call } = schedule;
  const { project, time } = worldOf(schedule.seed, settings.skewMs);
  const before = snapshotOf(project);
  let current: Run | undefined;
  const service: ModelService = new ModelService({
    ...settings,
    project,
    time,
    faults: new Map(schedule.faults.map(({ on, fault }) => [on, fault])),
    failingReads: new Set(schedule.failingReads),
    others: (request, moment) => {
      for (const other of schedule.others) {
        if (other.on !== request || other.moment !== moment) continue;
        if (other.write.by === "console" || !service.isBusy()) writeAsOther(project, settings.limits, other.write);
      }
      if (moment === "before" && schedule.stop?.on === request) current?.stop(schedule.stop.cause);
    },
  });
  const store = memoryRunStore();
  const random = randomFrom(schedule.seed * 31 + 7);
  let runIds = 0;
  const processOf = (dieAt: number, diskFullAfter?: number) => {
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
      project: PROJECT,
      environment: "sandbox",
      retryBudgetMs: settings.retryBudgetMs,
    });
    return { runs, mortal };
  };

  service.disturbed = false;
  const planning = processOf(Number.POSITIVE_INFINITY).runs;
  const plan = await planned(planning, call);
  if (plan === undefined) return { violations: [], ended: undefined, writes: 0 };
  const header = await planning.keep(call, "tester");
  service.disturbed = true;
  const begin = async (runs: Runs, isFirst: boolean): Promise<void> => {
    try {
      current = isFirst ? await runs.start(header, plan) : await resumed(runs, header.runId);
      await current?.rest;
    } catch (thrown) {
      if (!(thrown instanceof Killed)) throw thrown;
    }
  };
  let isFirst = true;
  for (const dieAt of [...schedule.kills, Number.POSITIVE_INFINITY]) {
    const { runs, mortal } = processOf(dieAt, isFirst ? schedule.diskFullAfter : undefined);
    await begin(runs, isFirst);
    isFirst = false;
    if (!mortal.isDead()) break;
    await mortal.bury();
    current = undefined;
  }
  time.drain();
  const endOf = (run: Run): Ended => ({
    status: run.status(),
    counts: countsOf(run.state),
    results: run.state.objects.map((_, object) => objectResult(run.state, object)),
  });
  if (current === undefined) return { violations: ["the run was not found again"], ended: undefined, writes: 0 };
  const disturbed = endOf(current);
  const about = { schedule, service, project, before };
  const violations = judge({ ...about, ended: disturbed, isSettled: false }).map((each) => `disturbed: ${each}`);

  service.disturbed = false;
  await begin(processOf(Number.POSITIVE_INFINITY).runs, false);
  const settled = endOf(current);
  violations.push(...judge({ ...about, ended: settled, isSettled: true }).map((each) => `settled: ${each}`));
  return { violations: [...service.improper, ...violations], ended: settled, writes: service.writes };
}
