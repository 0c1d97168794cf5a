import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Fence } from "../../platform/fence.ts";
import type { Intent, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting } from "../call.ts";
import type { JournalEntry, MadeRows, Settlement, Step, StepChange } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import type { ServerClock } from "./service-clock.ts";

/** What an answer leads to: changes of steps, and further steps. */
export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
}

/** What sending and settling use while a run of changes is driven. */
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
  /** Records what the end of a request changed. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  /** Notes that the request announced last did not leave. */
  withhold(): void;
  flush(): Promise<void>;
  /** As `flush`, for a request that is to leave by a turn of the project; throws a LeaseLostError, too. */
  intend(turn: Turn): Promise<Intent>;
  /** Whether a request may be announced: false once this process knows that the run is to stop. */
  mayAnnounce(): boolean;
  /**
   * Whether a request may leave whose intent is on the disk: false once the run was asked to stop, in whatever process.
   * To be asked right before it leaves.
   */
  mayLeave(intent: Intent): Promise<boolean>;
  readonly lease: Turn;
  /** Opens a connection for the next request, where none is idle; throws an ApiError. */
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request that carries these steps, as far as the fence lets it; throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Steps with different keys may not share a request. */
  readonly apartBy?: (step: number) => string;
  /** Tells the watchers of the run that nothing is sent for so many milliseconds. */
  waiting(ms: number): void;
}
