import type { PlannedRequest, StaleField } from "../changes/rows/entries.ts";
import type { StrandedName } from "../changes/settle/take-back.ts";
import type { InputFile } from "../files/input-file.ts";
import type { Refusal } from "../runs/kind.ts";
import type { Counts, Did, NearIds, OtherCount, RowCounts, TakenName } from "../runs/outcome.ts";
import type { ObjectResult, ReportCounts, RunStatus } from "../runs/report.ts";
import type { Approval } from "./effects.ts";
import type { VerdictRow } from "./event-messages.ts";
import type { SummarizedFailure } from "./failures.ts";

/** A run as an answer reports it. */
export interface ReportedRun {
  readonly environment: "live" | "sandbox";
  /** Absent where nothing is stored: a declined call, a dry run of events, or one while the store is away. */
  readonly runId?: string;
  readonly tool: string;
  readonly status: RunStatus;
  readonly counts: ReportCounts;
  readonly requests?: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  /** Of events: how many left, or were about to leave, and have no answer yet; `requests` does not count them. */
  readonly unanswered?: number;
  readonly failures: readonly SummarizedFailure[];
  /** The objects that say most, or the page that was asked for. */
  readonly results: readonly (ObjectResult & { readonly input?: unknown })[];
  /** Present when the results are a page that was asked for: then all of them are shown, and fewer failures. */
  readonly page?: {
    readonly cursor: string | undefined;
    /** How many objects there are within the filter that was asked for. */
    readonly matching?: number;
  };
  /** The requests that would go out. */
  readonly plan?: readonly PlannedRequest[];
  /** Of events, each of which is a request: how many would go out, and how long they are. */
  readonly eventRequests?: { readonly items: number; readonly bytes: number };
  /** Of events: what was predicted and observed. */
  readonly verdicts?: readonly VerdictRow[];
  readonly confirmation?: { readonly token?: string; readonly effect: string; readonly expiresAt: string };
  readonly nextSteps?: readonly string[];
  /** Things that have a temporary name, which a resumed run has to settle. */
  readonly strandedNames?: readonly StrandedName[];
  /** Whether the failed rows of its file are kept. */
  readonly hasRejects?: boolean;
  /** What was done with the objects that succeeded. */
  readonly did?: Readonly<Record<Did, number>>;
  /** Who approved or declined it, and where; reported where a tool asks. */
  readonly approval?: Approval | undefined;
  /** Whether that is shown whatever the tool of the run: the answer is one of `resume_run`. */
  readonly tellsAsked?: boolean;
  /** What the targeting holds after a change of its options. */
  readonly totals?: { readonly targetingId: string; readonly name: string; readonly optionCount: number };
  /** Its file, and how that was read. */
  readonly file?: InputFile | undefined;
  /** What the rows of its file came to. */
  readonly rows?: RowCounts;
  /** Names that did not match exactly, and what they were taken for. */
  readonly takenFor?: readonly TakenName[];
  readonly nearIds?: NearIds;
  /** How many options got Context IDs without being read before. */
  readonly unread?: number;
  /** Options that hold another number of Context IDs than expected. */
  readonly otherCounts?: readonly OtherCount[];
  /** Where it was resumed: how everything stood then. */
  readonly resumed?: Counts;
  /** How many names had to be given in between, since names were passed round. */
  readonly temporaryNames?: number;
  /** When anything of it changed last: milliseconds since 1970. */
  readonly lastAt?: number;
  /** What has changed since it was planned, so that nothing was sent. */
  readonly stale?: readonly StaleField[];
  /** Why the server that answers may not execute it. */
  readonly blocked?: Refusal | undefined;
  /** What else is to be said of what happened. */
  readonly notes?: readonly string[];
  /** Whether its server ended before it was planned: it is not resumed. */
  readonly neverPlanned?: boolean | undefined;
  /** Whether what is unknown stays so: it is not sent again, and nothing else could tell. */
  readonly unknownIsFinal?: boolean;
}
