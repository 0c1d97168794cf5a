import { beyondCall } from "../platform/clock.ts";
import type { RunWatcher } from "../runs/kind.ts";
import type { RunStatus } from "../runs/report.ts";
import type { RunHeader } from "../runs/store.ts";
import type { WriteCall } from "./call.ts";
import { CHANGE_FORM, type ChangeRun } from "./change-run.ts";
import { RunState } from "./change-state.ts";
import type { Plan, Planning } from "./plan/plan.ts";

interface Then {
  readonly meanwhile: RunState;
  /** Starts a planned run. Returns undefined if the plan is only stored, for example until it is approved. */
  readonly begin: (plan: Plan) => Promise<ChangeRun | undefined>;
  /** Stores a plan that must not be started yet. Returns the new status of the run. */
  readonly propose: (plan: Plan) => Promise<"needs_confirmation" | "planned">;
  readonly startedElsewhere: () => Promise<ChangeRun | undefined>;
  readonly giveUp: (thrown: unknown) => Promise<ChangeRun | undefined>;
  readonly withdraw: () => Promise<ChangeRun | undefined>;
  readonly over: () => Promise<void>;
}

/** Returns a run that is planned in the background. It then starts, waits (for approval or as a plan), or ends. */
export function preparingRun(header: RunHeader<WriteCall>, planning: Planning, then: Then): ChangeRun {
  const watchers = new Map<RunWatcher, () => void>();
  let state = then.meanwhile;
  let started: ChangeRun | undefined;
  let status: RunStatus = "running";
  let stoppedBy: "cancelled" | "interrupted" | undefined;
  const goOn = async (plan: Plan): Promise<void> => {
    // If another process has planned and started the run meanwhile, that run is used.
    started = await then.startedElsewhere();
    if (started !== undefined) return;
    started = await then.begin(plan);
    if (started !== undefined) {
      if (stoppedBy !== undefined) started.stop(stoppedBy);
      return;
    }
    const waits = await then.propose(plan);
    started = await then.startedElsewhere();
    if (started !== undefined) return;
    state = new RunState(plan);
    if (stoppedBy === undefined) status = waits;
  };
  const prepare = async (): Promise<void> => {
    try {
      const plan = await planning.plan;
      if (stoppedBy === undefined) await goOn(plan);
    } catch (thrown) {
      if (stoppedBy === undefined) {
        started = await then.giveUp(thrown);
        status = "interrupted";
      }
    }
    if (stoppedBy === "cancelled" && started === undefined) started = await then.withdraw();
    if (stoppedBy !== undefined) status = stoppedBy;
    await then.over();
    for (const watcher of watchers.keys()) watchers.set(watcher, started?.watch(watcher) ?? NOTHING);
    await started?.rest;
  };
  return {
    kind: CHANGE_FORM.name,
    header,
    get state() {
      return started?.state ?? state;
    },
    status: () => started?.status() ?? status,
    kept: Promise.resolve(),
    rest: beyondCall(prepare),
    watch(watcher) {
      watchers.set(watcher, started?.watch(watcher) ?? NOTHING);
      return () => {
        watchers.get(watcher)?.();
        watchers.delete(watcher);
      };
    },
    stop(cause) {
      if (started !== undefined) return started.stop(cause);
      // The run waits for approval or has ended, so there is no planning to stop.
      if (status !== "running") return false;
      if (stoppedBy !== "cancelled") stoppedBy = cause;
      planning.stop();
      return true;
    },
  };
}

const NOTHING = (): void => {};
