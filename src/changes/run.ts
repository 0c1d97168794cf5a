import type { ManagementApi } from "../api/management.ts";
import type { Clock } from "../platform/clock.ts";
import type { Reason } from "../runs/outcome.ts";
import type { ProjectLock } from "../runs/project-lock.ts";
import type { ReportCounts, RunStatus } from "../runs/report.ts";
import type { RunSummary } from "../runs/store.ts";
import type { TargetingMemory } from "../runs/targeting-names.ts";
import type { RouteTable } from "../spec/routes.ts";
import type { Loss } from "./plan/plan.ts";
import type { ChangeHeader, ChangeStore } from "./run-form.ts";
import type { RunState } from "./state/change-state.ts";

/** What running needs of the world. */
export interface RunsContext {
  readonly api: ManagementApi;
  readonly routes: RouteTable;
  readonly store: ChangeStore;
  readonly lock: ProjectLock;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly newRunId: () => string;
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** How long one request is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Says in words why something failed, for reject files. */
  readonly words: (reason: Reason) => string;
  /** Learns the names of targetings that runs made, renamed or deleted. */
  readonly memory: TargetingMemory;
}

/** Who watches a run: told after every answer, and when the run waits for so many milliseconds. */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

/** A run: what it is, where it stands, and when it rests. */
export interface Run {
  readonly header: ChangeHeader;
  /** What is known of it by now; until it is planned what its caller gave. */
  readonly state: RunState;
  /** Where it stands as a whole. */
  status(): RunStatus;
  /** What it would take away, where it was planned and waits for a person's yes. */
  asks(): readonly Loss[] | undefined;
  /** Resolves when nobody drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher until the given function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops it between two requests; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** What listing the runs tells about each. */
export interface ListedRun extends RunSummary {
  readonly runId: string;
}
