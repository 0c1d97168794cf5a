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

/** The result of a schedule: all violations of the guarantee, and the report. */
export interface Verdict {
  readonly violations: readonly string[];
  readonly ended: Ended | undefined;
  /** The number of write requests that were sent. */
  readonly writes: number;
}

/** A call of a schedule that is being executed. */
interface Driven {
  /** The schedule from the view of this call. */
  readonly schedule: Schedule;
  readonly actor: Actor;
  readonly service: ModelService;
  readonly header: ChangeHeader;
  readonly plan: Plan;
  run: ChangeRun | undefined;
}

/**
 * Runs one schedule. Plans and starts the call, and that of the rival if there is one, with all faults, other writes,
 * stops and deaths. Checks the reports. Then, without faults, lets two processes at once resume each run, and checks
 * the reports again, as stored on the disk.
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
    // The run is resumed once more. A request that was refused for its content while its outcome was unknown is then
    // sent and refused again.
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

/** Plans a call; undefined if it cannot be planned because its targeting does not exist. */
async function planned(changes: Changes, call: WriteCall): Promise<Plan | undefined> {
  try {
    return await changes.plan(call, new AbortController().signal);
  } catch (thrown) {
    if (isApiError(thrown)) return undefined;
    throw thrown;
  }
}

/**
 * Resumes a run until its planning does not fail because of a read. A run that can no longer be planned stays as it is.
 */
async function resumed(changes: Changes, runId: string): Promise<ChangeRun | undefined> {
  for (;;) {
    const run = await changes.runs.resume(runId);
    await run?.rest;
    const { planned, stopped } = run?.state ?? {};
    // If the service refuses a read, it refuses the next one, too, so planning again would not help.
    const mayBePlanned = stopped?.cause === "interrupted" && stopped.reason?.code === "NOT_PLANNED";
    if (planned !== false || !mayBePlanned) return run;
  }
}

/**
 * Returns the schedule from the view of the rival, whose own rival is the run under test. The rival is never killed or
 * stopped.
 */
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
  // Without a plan, nothing may have been sent.
  if (!run.state.planned) return service.writes === 0 ? [] : [`${actor}: requests left without a plan`];
  // For this run, all other actors are "other".
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

/** Creates the service of a schedule, with its faults, its other writers, and the stop of the run. */
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
