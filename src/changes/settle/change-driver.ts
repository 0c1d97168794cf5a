import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Fence } from "../../platform/fence.ts";
import type { Intent, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting } from "../call.ts";
import type { JournalEntry, MadeRows, Settlement, Step, StepChange } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import type { ServerClock } from "./service-clock.ts";

/** The effects of an answer: changes of steps, and further steps. */
export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
}

/** What sending requests and resolving their outcomes need while a change run executes. */
export interface ChangeDriver {
  readonly api: ManagementApi;
  readonly state: RunState;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** How long one request is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  /** Aborted when nothing new may start. */
  readonly signal: AbortSignal;
  record(entry: JournalEntry): void;
  /** Records the effects of a finished request. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  /** Records that the last announced request was not sent. */
  withhold(): void;
  /**
   * Returns the ID of what the previous run of the same call created for an object of this run. Undefined if that run
   * created nothing for it; the ID is absent if it is unknown.
   */
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  flush(): Promise<void>;
  /** Like `flush`, for a request that is sent under the project's write lock. Also throws a LeaseLostError. */
  intend(turn: Turn): Promise<Intent>;
  /** Returns whether a request may be announced. False once this process knows that the run must stop. */
  mayAnnounce(): boolean;
  /**
   * Whether an announced request may be sent: false once any process has asked the run to stop. Call it right before
   * sending, with the announcement on disk.
   */
  mayLeave(intent: Intent): Promise<boolean>;
  readonly lease: Turn;
  /** Opens a connection for the next request if none is idle. Throws an ApiError. */
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request with these steps, if the fence permits it. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Steps with different keys may not share a request. */
  readonly apartBy?: (step: number) => string;
  /** Notifies the watchers of the run that nothing is sent for this many milliseconds. */
  waiting(ms: number): void;
}
