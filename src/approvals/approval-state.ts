import type { Decided, RunFacts } from "../changes/rows/entries.ts";
import type { RunView } from "../runs/kind.ts";
import type { Counts, Reason, ReportedObject, Standing, StopCause } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";

/** What a person is asked for beside changes: that a run goes on, or that tests are sent to a live endpoint. */
export interface ApprovalCall {
  readonly tool: "resume_run" | "run_event_tests";
  readonly input: {
    /** The run that is to go on, or the suite of the tests. */
    readonly about: string;
    /** The file for the report of the tests; empty where there is none. */
    readonly saveTo: string;
  };
}

/** What is known of an approval beside its outcome. */
export type ApprovalFacts = Pick<RunFacts, "tool" | "effect" | "waits" | "asked" | "decided">;

/** One line of the journal of an approval. Applying all lines in order gives its state. */
export type ApprovalEntry =
  | { readonly t: "approval"; readonly facts: ApprovalFacts; readonly name: string; readonly at: number }
  | { readonly t: "agreed"; readonly asked: NonNullable<RunFacts["asked"]>; readonly decided: Decided }
  | { readonly t: "done"; readonly at: number }
  | { readonly t: "stop"; readonly cause: StopCause; readonly reason?: Reason; readonly at: number };

const NOTHING = { pending: 0, succeeded: 0, alreadyDone: 0, failed: 0, unattempted: 0, unknown: 0 };

/** Everything that is known about an approval: its one object is what is asked for. */
export class ApprovalState implements RunView<ApprovalEntry> {
  objects: readonly ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause; readonly reason?: Reason | undefined } | undefined;
  updatedAt = 0;
  facts: ApprovalFacts = {};
  #standing: Standing = "pending";

  apply(entry: ApprovalEntry): void {
    this.updatedAt = entry.t === "agreed" ? entry.decided.at : entry.at;
    switch (entry.t) {
      case "approval":
        this.objects = [{ index: 0, name: entry.name }];
        this.facts = { ...this.facts, ...entry.facts };
        return;
      case "agreed":
        this.facts = { ...this.facts, asked: entry.asked, decided: entry.decided };
        return;
      case "done":
        this.#standing = "succeeded";
        return;
      case "stop":
        this.stopped = { cause: entry.cause, reason: entry.reason };
        if (this.#standing === "pending") this.#standing = entry.cause === "ended" ? "failed" : "unattempted";
        return;
    }
  }

  counts(): Counts {
    return { ...NOTHING, [this.#standing]: this.objects.length };
  }

  standing(): Standing {
    return this.#standing;
  }

  reason(): Reason | undefined {
    if (this.#standing !== "failed" && this.#standing !== "unattempted") return undefined;
    return this.stopped?.reason ?? ownReason("INTERRUPTED");
  }

  idOf(): undefined {
    return undefined;
  }
}
