import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Fence } from "../../platform/fence.ts";
import type { Intent, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting } from "../call.ts";
import type { JournalEntry, MadeRows, Settlement, Step, StepChange } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import type { ServerClock } from "./service-clock.ts";

/** The effects of an answer on a run: changes of its steps, additional steps, and outcomes of objects. */
export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
}

/** What a change run needs to send its requests and to decide their outcomes. */
export interface ChangeDriver {
  readonly api: ManagementApi;
  readonly state: RunState;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** How long one request may be retried, in milliseconds. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  /** Aborted when no further request may be sent. */
  readonly signal: AbortSignal;
  record(entry: JournalEntry): void;
  /** Records the effects of a finished request. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  /** Records that the last request was not sent, although it was announced in the journal. */
  withhold(): void;
  /**
   * Returns whether the previous run of the same call created this object. If it did, the result has its ID, if known.
   * Undefined if it did not.
   */
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  flush(): Promise<void>;
  /** Like `flush`, before a request is sent with the project's write lock. Also throws a LeaseLostError. */
  intend(turn: Turn): Promise<Intent>;
  /**
   * Returns whether a request may be announced in the journal. False once this process knows that the run must stop.
   */
  mayAnnounce(): boolean;
  /**
   * Returns whether an announced request may be sent. False once any process has asked the run to stop. Call it right
   * before sending, when the announcement is on disk.
   */
  mayLeave(intent: Intent): Promise<boolean>;
  readonly lease: Turn;
  /** Opens a connection for the next request if none is idle. Throws an ApiError. */
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request with these steps, if the fence permits it. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Returns a key for a step. Only steps with the same key may share a request. */
  readonly apartBy?: (step: number) => string;
  /** Notifies the watchers of the run that it pauses for this many milliseconds. */
  waiting(ms: number): void;
}
