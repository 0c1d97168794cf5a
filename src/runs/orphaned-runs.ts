import type { Clock } from "../platform/clock.ts";
import type { Run } from "./kind.ts";
import { ExecutionRefusedError } from "./kind.ts";
import { type OrphanedRun, type OrphanedRuns, StoreUnavailableError } from "./store.ts";

/**
 * How often a process looks for orphaned runs, in milliseconds. A notification, or a free slot for another project,
 * makes it look at once.
 */
const LOOK_MS = 250;
/** The minimum time between two looks, in milliseconds, even after a notification. */
const MIN_PAUSE_MS = 20;
/**
 * The pause after a look is at least this many times as long as the look took, because a look costs the store much if
 * many runs wait.
 */
const PAUSE_PER_LOOK = 2;
/** How many runs a look returns at most. Several processes look at the same time. */
const AT_ONCE = 8;
/**
 * How long a run that this process may not execute is not tried again, in milliseconds. Settings and rights can change.
 */
const REFUSED_MS = 5000;
/** A refused run that was not found again for this time, in milliseconds, is forgotten. */
const FORGOTTEN_MS = 60_000;
/** The pause after a look that found the maximum, in milliseconds: more runs of a dead process may be waiting. */
const LOOK_FOR_MORE_MS = 50;

interface ProjectRuns {
  claim(runId: string): Promise<Pick<Run, "rest"> | undefined>;
  leaveToCalls(runId: string): Promise<void>;
}

export interface ClaimOptions {
  readonly left: OrphanedRuns;
  /** By project ID. */
  readonly projects: ReadonlyMap<string, () => ProjectRuns>;
  readonly clock: Clock;
  /** Aborted when no more runs may be claimed. */
  readonly stopping: AbortSignal;
  readonly onProblem: (problem: unknown, runId?: string) => void;
  /** Called once for each run that this process may not execute. Another process may. */
  readonly onRefused: (refused: ExecutionRefusedError, runId: string) => void;
}

/** Continues orphaned runs until it is stopped. Resolves once other processes count this one as a worker. */
export async function claimOrphans(of: ClaimOptions): Promise<void> {
  const { left, projects, clock, stopping, onProblem } = of;
  let woken = new AbortController();
  await left.takesUp([...projects.keys()], () => woken.abort());
  const driven = new Set<string>();
  /** The runs that this process may not execute, and until when they are not tried again. */
  const refused = new Map<string, number>();
  const refuse = async (runId: string, thrown: ExecutionRefusedError): Promise<void> => {
    const isKnown = refused.has(runId);
    refused.set(runId, clock.monotonic() + REFUSED_MS);
    if (isKnown) return;
    of.onRefused(thrown, runId);
    await left.refuses([...refused.keys()]);
  };
  /**
   * Claims a run. A run that cannot be continued waits until a call resumes it. A run that this process may not execute
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
    const soonest = Math.max(MIN_PAUSE_MS, Math.ceil(PAUSE_PER_LOOK * lookedMs));
    // Being woken during the look counts, too: the run may have been left after the look had read the store.
    const awake = AbortSignal.any([woken.signal, stopping]);
    await clock.sleep(soonest, stopping).catch(() => undefined);
    if (ms > soonest) await clock.sleep(ms - soonest, awake).catch(() => undefined);
    woken = new AbortController();
  };
  /** Returns whether there may be more runs. */
  const look = async (): Promise<boolean> => {
    const wanted = [...projects.keys()].filter((project) => left.hasRoomFor(project));
    const now = clock.monotonic();
    for (const [runId, until] of refused) if (until + FORGOTTEN_MS < now) refused.delete(runId);
    const refusedNow = [...refused].flatMap(([runId, until]) => (until > now ? [runId] : []));
    const found = wanted.length === 0 ? [] : await left.found(wanted, AT_ONCE, refusedNow);
    for (const run of found) {
      if (stopping.aborted || driven.has(run.runId)) continue;
      // The project counts as being written to from here on, although the run is not read yet.
      const over = left.drives(run.project);
      if (over === undefined) continue;
      driven.add(run.runId);
      // Claimed in parallel, so that no run of a killed process waits until the others were read.
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
