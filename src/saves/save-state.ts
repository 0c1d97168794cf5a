import type { RunView } from "../runs/kind.ts";
import type { Counts, Reason, ReportedObject, Standing, StopCause } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";

/** A read whose answer goes to a file: all that is needed to save it without its caller. */
export type SaveCall =
  | { readonly tool: "list_options"; readonly input: ListAsked }
  | { readonly tool: "get_option"; readonly input: OptionAsked };

/** Where a read is saved to. */
interface SavePlace {
  readonly saveTo: string;
  /** The folders that the caller may use. */
  readonly folders: readonly string[];
}

/** Which options of a targeting are saved. */
export interface ListAsked extends SavePlace {
  readonly targetingId: string;
  readonly parent?: string | undefined;
  readonly search?: string | undefined;
  readonly contextIds?: readonly string[] | undefined;
  readonly empty?: boolean | undefined;
  readonly fresh?: boolean | undefined;
}

/** Whose Context IDs are saved. */
export interface OptionAsked extends SavePlace {
  readonly optionId: string;
  readonly targetingId?: string | undefined;
}

/** An option as an answer about a file tells it. */
export type ToldOption = {
  readonly _id: string;
  readonly name: string;
  readonly type?: string | undefined;
  readonly contextCount?: number | undefined;
  readonly childCount?: number | undefined;
  readonly parent?: string | undefined;
};

/** What was saved: where, and what is in the file. */
export interface Saved {
  readonly savedTo: string;
  /** The base beside a whole targeting. */
  readonly base?: string;
  readonly counts: {
    readonly options: number;
    readonly contextIds: number;
    /** What follows is told of lists. */
    readonly groups?: number;
    readonly subOptions?: number;
    readonly withoutContexts?: number;
  };
  /** The options with the most Context IDs. */
  readonly largest?: readonly ToldOption[];
  /** The option whose Context IDs were saved, and how many these are. */
  readonly option?: ToldOption;
  readonly total?: number;
}

/** One line of the journal of a saved read. Applying all lines in order gives the state of the run. */
export type SaveEntry =
  | { readonly t: "begin"; readonly saveTo: string; readonly at: number }
  | { readonly t: "saved"; readonly saved: Saved; readonly at: number }
  | { readonly t: "stop"; readonly cause: StopCause; readonly reason?: Reason; readonly at: number }
  | { readonly t: "resume"; readonly at: number };

const NOTHING = { pending: 0, succeeded: 0, alreadyDone: 0, failed: 0, unattempted: 0, unknown: 0 };

/** Everything that is known about a saved read: its one object is the file. */
export class SaveState implements RunView<SaveEntry> {
  readonly objects: ReportedObject[] = [];
  readonly requests = { planned: 0, sent: 0, resent: 0, waitedMs: 0 };
  stopped: { readonly cause: StopCause } | undefined;
  updatedAt = 0;
  saved: Saved | undefined;
  #standing: Standing = "pending";
  #reason: Reason | undefined;

  apply(entry: SaveEntry): void {
    this.updatedAt = entry.at;
    switch (entry.t) {
      case "begin":
        this.objects.push({ index: 0, name: entry.saveTo });
        return;
      case "saved":
        this.saved = entry.saved;
        this.#standing = "succeeded";
        return;
      case "stop":
        this.stopped = { cause: entry.cause };
        if (this.#standing !== "pending") return;
        this.#standing = entry.cause === "ended" ? "failed" : "unattempted";
        this.#reason = entry.reason ?? ownReason(entry.cause === "cancelled" ? "CANCELLED" : "INTERRUPTED");
        return;
      case "resume":
        this.stopped = undefined;
        if (this.#standing === "unattempted") this.#standing = "pending";
        this.#reason = undefined;
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
    return this.#reason;
  }

  idOf(): undefined {
    return undefined;
  }
}
