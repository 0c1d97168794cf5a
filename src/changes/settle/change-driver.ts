import type { BulkAnswer, ManagementApi } from "../../api/management.ts";
import type { Clock } from "../../platform/clock.ts";
import type { RunExecution } from "../../runs/kind.ts";
import type { Fence, Turn } from "../../runs/turn.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { OnExisting, WriteCall } from "../call.ts";
import type { JournalEntry, MadeRows, Settlement, Step, StepChange } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";
import type { ServerClock } from "./service-clock.ts";

export interface Consequences {
  readonly changes: readonly StepChange[];
  readonly steps?: readonly Step[];
  readonly settlements?: readonly Settlement[];
  readonly made?: MadeRows;
}

type Execution = RunExecution<WriteCall, JournalEntry, RunState>;

export interface ChangeDriver
  extends Pick<
    Execution,
    "state" | "signal" | "record" | "flush" | "intend" | "mayAnnounce" | "mayLeave" | "progress"
  > {
  readonly api: ManagementApi;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly random: () => number;
  /** The maximum time for the retries of one request, in milliseconds. */
  readonly retryBudgetMs: number;
  readonly onExisting: OnExisting;
  /** Records the effects of a finished request in the journal. */
  change(changes: readonly StepChange[], more?: Omit<Consequences, "changes">): void;
  madeBefore(object: number): Promise<{ readonly _id?: string | undefined } | undefined>;
  readonly lease: Turn;
  connect(operation: BulkOperation): Promise<void>;
  /** Sends one request if the fence permits it. Throws an ApiError. */
  send(operation: BulkOperation, steps: readonly number[], fence: Fence): Promise<BulkAnswer>;
  /** Returns a key for a step. Only steps with the same key may share a request. */
  readonly apartBy?: (step: number) => string;
  /** The monotonic time in milliseconds from which the objects must be compared again before the next request. */
  compareAt: number;
  /** Returns failures of steps whose objects others have changed. Undefined if no open step overwrites anything. */
  changedSince(): Promise<readonly StepChange[] | undefined>;
}
