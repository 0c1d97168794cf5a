import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Reason } from "../../runs/outcome.ts";
import type { ReportCounts, RunStatus } from "../../runs/report.ts";
import type { RunHeader, RunStore } from "../../runs/store.ts";
import type { Verdict } from "../check/rules.ts";
import type { EventCall, EventEntry, EventRunState } from "./event-run-state.ts";

/** Where runs of events are kept. */
export type EventRunStore = RunStore<EventCall, EventEntry>;

/** What running events needs of the world. */
export interface EventRunsContext {
  readonly api: EventApi;
  readonly store: EventRunStore;
  readonly clock: Clock;
  readonly newRunId: () => string;
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** How long one event is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Says in words why something failed, for reject files. */
  readonly words: (reason: Reason) => string;
  /** Looks for the verdict on an event that was accepted a moment ago; absent where there is nothing to look at. */
  readonly observe?: (event: unknown) => Promise<Verdict | undefined>;
}

/** A run of events: what it is, where it stands, and when it rests. */
export interface EventRun {
  readonly header: RunHeader<EventCall>;
  readonly state: EventRunState;
  /** Where it stands as a whole. */
  status(): RunStatus;
  /** Resolves when the disk holds the run, so that its ID may be told, or it is clear that it never will. */
  readonly kept: Promise<void>;
  /** Resolves when nobody drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher now and then, until the given function is called. */
  watch(watcher: (counts: ReportCounts) => void): () => void;
  /** Lets it finish the requests under way and send nothing more; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}
