import type { Clock } from "../platform/clock.ts";
import type { Run } from "./kind.ts";
import { ExecutionRefusedError } from "./kind.ts";
import { type OrphanedRun, type OrphanedRuns, StoreUnavailableError } from "./store.ts";

/** How often a process looks for runs that others left, in milliseconds; a notice, or room for more, makes it look at once. */
const LOOK_MS = 250;
/** It does not look more often than this, in milliseconds, whatever it is told. */
const SOONEST_MS = 20;
/** A look is followed by a pause of so many times as long as it took: where many runs wait, looking costs the store much. */
const PAUSE_PER_LOOK = 2;
/** How many runs are looked for at once: several processes look at the same time. */
const AT_ONCE = 8;
/** How long a run that this process may not execute is not looked at again, in milliseconds: settings and rights change. */
const REFUSED_MS = 5000;
/** A refused run that is not found again for this long is over, in milliseconds. */
const FORGOTTEN_MS = 60_000;
/** How soon it looks for more where it found as many, in milliseconds: those of a process that died wait. */
const LOOK_FOR_MORE_MS = 50;

interface ProjectRuns {
  claim(runId: string): Promise<Pick<Run, "rest"> | undefined>;
  leaveToCalls(runId: string): Promise<void>;
}

export interface TakingUp {
  readonly left: OrphanedRuns;
  /** By the ID of the project. */
  readonly projects: ReadonlyMap<string, () => ProjectRuns>;
  readonly clock: Clock;
  /** Aborted when no more are to be taken up. */
  readonly stopping: AbortSignal;
  readonly onProblem: (problem: unknown, runId?: string) => void;
  /** Called once for a run that this process may not execute: another one may. */
  readonly onRefused: (refused: ExecutionRefusedError, runId: string) => void;
}

/** Goes on with runs that other processes left, until it is stopped. Resolves once this process counts as one that does. */
export async function claimOrphans(of: TakingUp): Promise<void> {
  const { left, projects, clock, stopping, onProblem } = of;
  let woken = new AbortController();
  await left.takesUp([...projects.keys()], () => woken.abort());
  const driven = new Set<string>();
  /** The runs that this process may not execute, and until when they are not looked at again. */
  const refused = new Map<string, number>();
  const refuse = async (runId: string, thrown: ExecutionRefusedError): Promise<void> => {
    const isKnown = refused.has(runId);
    refused.set(runId, clock.monotonic() + REFUSED_MS);
    if (isKnown) return;
    of.onRefused(thrown, runId);
    await left.refuses([...refused.keys()]);
  };
  /**
   * Takes a run up; one that cannot be taken up waits until it is resumed by a call, and one that may not be executed here
   * is left to others.
   */
  const takeUp = async ({ runId, project }: OrphanedRun): Promise<Pick<Run, "rest"> | undefined> => {
    const runs = projects.get(project)?.();
    const note = (problem: unknown): void => onProblem(problem, runId);
    try {
      const taken = await runs?.claim(runId);
      if (refused.delete(runId)) await left.refuses([...refused.keys()]);
      return taken;
    } catch (problem) {
      if (problem instanceof StoreUnavailableError) return undefined;
      if (problem instanceof ExecutionRefusedError) {
        await refuse(runId, problem).catch(note);
        return undefined;
      }
      note(problem);
      await runs?.leaveToCalls(runId).catch(note);
      return undefined;
    }
  };
  const pause = async (ms: number, lookedMs: number): Promise<void> => {
    const soonest = Math.max(SOONEST_MS, Math.ceil(PAUSE_PER_LOOK * lookedMs));
    // Being woken while it looked counts, too: what it was told of may have come after.
    const awake = AbortSignal.any([woken.signal, stopping]);
    await clock.sleep(soonest, stopping).catch(() => undefined);
    if (ms > soonest) await clock.sleep(ms - soonest, awake).catch(() => undefined);
    woken = new AbortController();
  };
  /** Gives whether there may be more. */
  const look = async (): Promise<boolean> => {
    const wanted = [...projects.keys()].filter((project) => left.hasRoomFor(project));
    const now = clock.monotonic();
    for (const [runId, until] of refused) if (until + FORGOTTEN_MS < now) refused.delete(runId);
    const refusedNow = [...refused].flatMap(([runId, until]) => (until > now ? [runId] : []));
    const found = wanted.length === 0 ? [] : await left.found(wanted, AT_ONCE, refusedNow);
    for (const run of found) {
      if (stopping.aborted || driven.has(run.runId)) continue;
      // From here on its project counts, although the run is still to be read.
      const over = left.drives(run.project);
      if (over === undefined) continue;
      driven.add(run.runId);
      // Side by side, so that of the runs of a process that was killed none waits until the others were read.
      void takeUp(run)
        .then((taken) => taken?.rest)
        .finally(() => {
          driven.delete(run.runId);
          over();
        });
    }
    return found.length === AT_ONCE;
  };
  const loop = async (): Promise<void> => {
    let isAway = false;
    while (!stopping.aborted) {
      let mayBeMore = false;
      const began = clock.monotonic();
      try {
        mayBeMore = await look();
        isAway = false;
      } catch (problem) {
        if (!isAway) onProblem(problem);
        isAway = true;
      }
      await pause(mayBeMore ? LOOK_FOR_MORE_MS : LOOK_MS, clock.monotonic() - began);
    }
  };
  void loop();
}
