import type { Clock } from "../platform/clock.ts";
import { ExecutionRefusedError, type Run } from "./kind.ts";
import { type OrphanedRun, type OrphanedRuns, StoreUnavailableError } from "./store.ts";

/** How often a process looks for runs whose process has ended, in milliseconds. Notifications make it look earlier. */
const LOOK_MS = 250;
const MIN_PAUSE_MS = 20;
/** The minimum pause after a search for runs, as a multiple of its duration. It limits the load of the database. */
const PAUSE_PER_LOOK = 2;
/** The maximum number of runs to take over after one search, so that other processes get some, too. */
const AT_ONCE = 8;
const REFUSED_MS = 5000;
/**
 * A run that this process may not execute is tried again after `REFUSED_MS`. If it is refused again within this many
 * further milliseconds, the refusal is not reported again.
 */
const FORGOTTEN_MS = 60_000;
const LOOK_FOR_MORE_MS = 50;

interface ProjectRuns {
  claim(runId: string): Promise<Pick<Run, "rest"> | undefined>;
  leaveToCalls(runId: string): Promise<void>;
}

export interface ClaimOptions {
  readonly left: OrphanedRuns;
  readonly projects: ReadonlyMap<string, () => ProjectRuns>;
  readonly clock: Clock;
  readonly stopping: AbortSignal;
  readonly onProblem: (problem: unknown, runId?: string) => void;
  readonly onRefused: (refused: ExecutionRefusedError, runId: string) => void;
}

/** Continues runs whose process has ended, until `stopping` is aborted. Resolves once this is announced to others. */
export async function claimOrphans(of: ClaimOptions): Promise<void> {
  const { left, projects, clock, stopping, onProblem } = of;
  let woken = new AbortController();
  await left.startClaiming([...projects.keys()], () => woken.abort());
  const driven = new Set<string>();
  const refused = new Map<string, number>();
  const refuse = async (runId: string, thrown: ExecutionRefusedError): Promise<void> => {
    const isKnown = refused.has(runId);
    refused.set(runId, clock.monotonic() + REFUSED_MS);
    if (isKnown) return;
    of.onRefused(thrown, runId);
    await left.refuses([...refused.keys()]);
  };
  /** Takes over and continues a run, if possible. After an unexpected error, the run waits for a call to resume it. */
  const claimRun = async ({ runId, project }: OrphanedRun): Promise<Pick<Run, "rest"> | undefined> => {
    const runs = projects.get(project)?.();
    const note = (problem: unknown): void => onProblem(problem, runId);
    try {
      const taken = await runs?.claim(runId);
      // The run continues, although other processes do not know it yet: the next announcement tells them.
      if (refused.delete(runId)) await left.refuses([...refused.keys()]).catch(note);
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
    // A notification during the last search also ends the pause, because that search may have missed the new run.
    const awake = AbortSignal.any([woken.signal, stopping]);
    await clock.sleep(soonest, stopping).catch(() => undefined);
    if (ms > soonest) await clock.sleep(ms - soonest, awake).catch(() => undefined);
    woken = new AbortController();
  };
  const look = async (): Promise<boolean> => {
    const wanted = [...projects.keys()].filter((project) => left.hasRoomFor(project));
    const now = clock.monotonic();
    for (const [runId, until] of refused) if (until + FORGOTTEN_MS < now) refused.delete(runId);
    const refusedNow = [...refused].flatMap(([runId, until]) => (until > now ? [runId] : []));
    const found = wanted.length === 0 ? [] : await left.found(wanted, AT_ONCE, refusedNow);
    for (const run of found) {
      if (stopping.aborted || driven.has(run.runId)) continue;
      const over = left.drives(run.project);
      if (over === undefined) continue;
      driven.add(run.runId);
      // The runs are claimed in parallel, so that none waits until another one is read.
      void claimRun(run)
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
