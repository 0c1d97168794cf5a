import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { RunExecution } from "../../runs/kind.ts";
import type { Fence, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting, WriteCall } from "../call.ts";
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

type Execution = RunExecution<WriteCall, JournalEntry, RunState>;

/** What sending the requests of a run needs. */
export interface ChangeDriver
  extends Pick<
    Execution,
    "state" | "signal" | "record" | "flush" | "intend" | "mayAnnounce" | "mayLeave" | "progress"
  > {
  readonly api: ManagementApi;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** For how many milliseconds a request is retried. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  /** Records the effects of a finished request. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  /** Returns the object that the previous run of the same call created, with its ID if known. */
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  readonly lease: Turn;
  /** Opens a connection if none is idle. Throws an ApiError. */
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request, if the fence permits it. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Returns the key of a step. Only steps with the same key may share a request. */
  readonly apartBy?: (step: number) => string;
  /** When objects must be compared again before the next request, in milliseconds of the monotonic clock. */
  compareAt: number;
  /** Returns failures of the steps whose objects others have changed. Undefined if the run overwrites nothing more. */
  changedSince(): Promise<readonly StepChange[] | undefined>;
}
