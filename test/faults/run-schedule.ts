import { isApiError } from "../../src/api/errors.ts";
import type { WriteCall } from "../../src/changes/call.ts";
import type { ChangeRun } from "../../src/changes/change-run.ts";
import type { ChangeHeader, Changes } from "../../src/changes/changes.ts";
import type { Plan } from "../../src/changes/plan/plan.ts";
import { countsOf } from "../../src/runs/report.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { objectResults } from "../support/object-results.ts";
import { wasStarted } from "../support/records.ts";
import type { Actor } from "./model/project.ts";
import { ModelService, type Traffic } from "./model/service.ts";
import { Killed } from "./mortal.ts";
import { type Ended, judge, type Snapshot, snapshotOf } from "./oracle.ts";
import { writeAsOther } from "./others.ts";
import { newMachine, processesFor } from "./processes.ts";
import { type Schedule, type World, worldOf } from "./schedule.ts";

/** What a schedule came to: everything that went against the guarantee, and the report to look at. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly ended: Ended | undefined;
  /** Write requests that were sent. */
  readonly writes: number;
}

/** One call of a schedule, on its way. */
interface Driven {
  /** The schedule as it looks from this call. */
  readonly schedule: Schedule;
  readonly actor: Actor;
  readonly service: ModelService;
  readonly header: ChangeHeader;
  readonly plan: Plan;
  run: ChangeRun | undefined;
}

/**
 * Runs one schedule: plans and starts the call, and the one of the rival, if there is one; lets faults, others, stops and
 * deaths happen, and judges; then everything is quiet, the runs are taken up again, by two processes at once, and are
 * judged once more, by what the disk says.
 */
export async function runSchedule(
  schedule: Schedule,
  world: World = worldOf(schedule.seed, schedule.settings),
): Promise<Verdict> {
  const { project, time } = world;
  const before = snapshotOf(project);
  const store = memoryRunStore(time);
  const processOf = processesFor(schedule, newMachine(store, time));
  const traffic: Traffic = { busyUntil: 0, isWriting: false };

  const begin = async (of: Schedule, actor: Actor): Promise<Driven | undefined> => {
    const driven: { run: ChangeRun | undefined } = { run: undefined };
    const service = serviceFor(of, world, { actor, traffic, running: () => driven.run });
    service.disturbed = false;
    const { changes } = processOf(service);
    const plan = await planned(changes, of.call);
    if (plan === undefined) return undefined;
    const header = await changes.keep(of.call, actor);
    service.disturbed = true;
    return Object.assign(driven, { schedule: of, actor, service, header, plan });
  };
  const drive = async (driven: Driven, changes: Changes): Promise<void> => {
    const { runId } = driven.header;
    const isStarted = await wasStarted(store, runId);
    try {
      driven.run = isStarted ? await resumed(changes, runId) : await changes.start(driven.header, driven.plan);
      await driven.run?.rest;
    } catch (thrown) {
      if (!(thrown instanceof Killed)) throw thrown;
    }
  };
  const driveThroughDeaths = async (driven: Driven): Promise<void> => {
    for (const [number, dieAt] of [...driven.schedule.kills, Number.POSITIVE_INFINITY].entries()) {
      const fate = { dieAt, diskFullAfter: number === 0 ? driven.schedule.diskFullAfter : undefined };
      const { changes, mortal } = processOf(driven.service, fate);
      await drive(driven, changes);
      if (!mortal.isDead()) break;
      await mortal.bury();
      driven.run = undefined;
    }
  };

  const first = await begin(schedule, "run");
  const rival = schedule.rival && (await begin(seenByRival(schedule, schedule.rival), "rival"));
  const all = [first, rival].flatMap((each) => each ?? []);
  await Promise.all(all.map(driveThroughDeaths));
  time.drain();
  const disturbed = all.flatMap((driven) => judged(driven, { world, before, isSettled: false }));
  for (const { service } of all) service.disturbed = false;
  for (const driven of all) {
    const processes = [processOf(driven.service), processOf(driven.service)];
    await Promise.all(processes.map(({ changes }) => drive(driven, changes)));
    // What was in doubt when it was refused for what it is, is refused once more.
    await drive(driven, processOf(driven.service).changes);
    driven.run = await processOf(driven.service).changes.runs.find(driven.header.runId);
  }
  const settled = all.flatMap((driven) => judged(driven, { world, before, isSettled: true }));
  return {
    violations: [...disturbed, ...settled, ...all.flatMap(({ service }) => service.improper)],
    ended: first?.run && endOf(first.run),
    writes: first?.service.writes ?? 0,
  };
}

/** The plan of a call; undefined where it cannot be planned, since its targeting is none. */
async function planned(changes: Changes, call: WriteCall): Promise<Plan | undefined> {
  try {
    return await changes.plan(call, new AbortController().signal);
  } catch (thrown) {
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/** Takes a run up again, as often as a read for its planning fails; what cannot be planned any more stays as it is. */
async function resumed(changes: Changes, runId: string): Promise<ChangeRun | undefined> {
  for (;;) {
    const run = await changes.runs.resume(runId);
    await run?.rest;
    const { planned, stopped } = run?.state ?? {};
    // A read that the service refused is refused again.
    const mayBePlanned = stopped?.cause === "interrupted" && stopped.reason?.code === "NOT_PLANNED";
    if (planned !== false || !mayBePlanned) return run;
  }
}

/** To a rival the run under test is the rival; it dies of nothing, and nobody stops it. */
function seenByRival(schedule: Schedule, { call, faults }: NonNullable<Schedule["rival"]>): Schedule {
  const quiet = { others: [], failingReads: [], stop: undefined, kills: [], diskFullAfter: undefined };
  return { ...schedule, ...quiet, call, faults, rival: { call: schedule.call, faults: schedule.faults } };
}

function judged(
  { schedule, service, run, actor }: Driven,
  { world, before, isSettled }: { readonly world: World; readonly before: Snapshot; readonly isSettled: boolean },
): readonly string[] {
  if (run === undefined) return [`${actor}: the run was not found again`];
  const { project } = world;
  // Nothing leaves before there is a plan, and what is gone needs none.
  if (!run.state.planned) return service.writes === 0 ? [] : [`${actor}: requests left without a plan`];
  // Everybody else is somebody else.
  const log = project.log.map((change) => {
    const by = change.actor === actor ? "run" : change.actor === "before" ? "before" : "other";
    return { ...change, actor: by } as const;
  });
  const about = { schedule, service, project, log, before, isSettled, ended: endOf(run) };
  return judge(about).map((violation) => `${actor}, ${isSettled ? "settled" : "disturbed"}: ${violation}`);
}

function endOf(run: ChangeRun): Ended {
  return {
    status: run.status(),
    counts: countsOf(run.state),
    results: objectResults(run.state),
  };
}

/** The service of a schedule, with its faults, its other writers, and a stop of the run. */
function serviceFor(
  { settings, others, stop, faults, failingReads }: Schedule,
  { project, time }: World,
  client: { readonly actor: Actor; readonly traffic: Traffic; running(): ChangeRun | undefined },
): ModelService {
  const { actor, traffic } = client;
  const service: ModelService = new ModelService({
    ...settings,
    ...{ project, time, actor, traffic },
    faults: new Map(faults.map(({ on, fault }) => [on, fault])),
    failingReads: new Set(failingReads),
    others: (request, moment) => {
      for (const other of others) {
        if (other.on !== request || other.moment !== moment) continue;
        if (other.write.by === "console" || !service.isBusy()) writeAsOther(project, settings.limits, other.write);
      }
      if (moment === "before" && stop?.on === request) client.running()?.stop(stop.cause);
    },
  });
  return service;
}
