import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Fence } from "../../platform/fence.ts";
import type { Intent, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting } from "../call.ts";
import type { JournalEntry, MadeRows, Settlement, Step, StepChange } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import type { ServerClock } from "./service-clock.ts";

/** The effects of an answer on a run. */
export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
}

export interface ChangeDriver {
  readonly api: ManagementApi;
  readonly state: RunState;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** In milliseconds. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  /** Aborted when no further request may be sent. */
  readonly signal: AbortSignal;
  record(entry: JournalEntry): void;
  /** Records the effects of a finished request. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  /** Records that the last announced request was not sent. */
  withhold(): void;
  /** Returns the object that the previous run of the same call created, with its ID if known. */
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  flush(): Promise<void>;
  /** Like `flush`, before a request is sent. Also throws a LeaseLostError. */
  intend(turn: Turn): Promise<Intent>;
  /** False once this process knows that the run must stop. */
  mayAnnounce(): boolean;
  /**
   * Returns whether an announced request may be sent: false once any process has asked the run to stop. Call it right
   * before sending, when the announcement is on disk.
   */
  mayLeave(intent: Intent): Promise<boolean>;
  readonly lease: Turn;
  /** Opens a connection if none is idle. Throws an ApiError. */
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request, if the fence permits it. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Only steps with the same key may share a request. */
  readonly apartBy?: (step: number) => string;
  waiting(ms: number): void;
}
