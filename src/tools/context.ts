import type { EventApi, SandboxApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";
import type { Approvals } from "../approvals/approvals.ts";
import type { Changes } from "../changes/changes.ts";
import type { EventRuns } from "../events/run/event-runs.ts";
import type { SuiteStore } from "../events/suites/suite-store.ts";
import type { Clock } from "../platform/clock.ts";
import type { ContentsStore, TargetingMemory } from "../runs/backend.ts";
import type { Requested } from "../runs/kind-runs.ts";
import type { Runs } from "../runs/registry.ts";
import type { SaveRuns } from "../saves/save-runs.ts";
import type { HalfPair } from "../settings/environment.ts";

/** Where events are tried out: a sandbox's event API, and the look into it. */
export interface TestBench {
  /** The address at which a sandbox listens for the tests that are given out; starts it where that is this process. */
  readonly url: () => Promise<string>;
  readonly events: EventApi;
  readonly sandbox: SandboxApi;
}

/** A line of the audit about a person's decision on a run. */
export interface DecisionLine {
  /** As ISO 8601. */
  readonly at: string;
  readonly runId: string;
  readonly decision: "approved" | "declined";
  readonly where: "client" | "view" | "page" | "token" | "terminal";
  /** Who decided: the user of this machine, the entry of the access file, or the issuer and subject. */
  readonly who: string;
  readonly caller: string;
  readonly project: string;
}

/** The page on which a person decides about runs that wait. */
export interface DecisionPage {
  /** Whether a person may be reached there at all. */
  readonly isOffered: () => boolean;
  /** Shows a waiting run to the person; false where nobody came to look. */
  readonly show: (run: { readonly runId: string; readonly tool: string }) => Promise<boolean>;
  /** Whether nobody may approve what they asked for: then their client and a token decide nothing. Absent: they may. */
  readonly needsOther?: () => boolean;
  /** Where people go by themselves; absent: it is opened for them. It opens nothing by itself. */
  readonly address?: () => string;
  /** What can be done where it is not offered and nothing else is left; absent: what is said over stdio. */
  readonly remedy?: string;
}

/** What stays the same for every call that a server takes. */
export interface ToolServices {
  readonly environment: "live" | "sandbox";
  /** Absent where the management API is not configured; its tools are then not listed. Its reads are retried. */
  readonly management?: ManagementApi;
  /** Absent where the event API is not configured; its tools are then not listed. */
  readonly events?: EventApi;
  /** The APIs that are half set, by the toolset that works with them: its tools are listed, and say what is missing. */
  readonly half?: { readonly targeting?: HalfPair; readonly events?: HalfPair };
  /** A setting without which no tool can work: each says what is wrong with it. */
  readonly blocked?: HalfPair;
  /** The targetings that were seen before, by name. */
  readonly memory: TargetingMemory;
  /** Context IDs that were read before; absent where none are kept. */
  readonly contents?: ContentsStore;
  readonly runs: Runs;
  /** Plans and starts changes; absent where the management API is not configured. */
  readonly changes?: Changes;
  /** Saves what lists read; absent where the management API is not configured. */
  readonly saves?: SaveRuns;
  /** What a person is asked for on the page beside changes; absent: nothing is. */
  readonly approvals?: Approvals;
  /** Starts the sending of events; absent where the event API is not configured. */
  readonly sending?: EventRuns;
  /** The sandbox that events are tested against, in live mode one of its own; there where events are configured. */
  readonly testBench?: TestBench;
  /** The sandbox that can be looked at; absent where there is none. */
  readonly sandbox?: SandboxApi;
  readonly suites: SuiteStore;
  /** Nothing may change an API. Tools that could are not listed; those that only sometimes do look here. */
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  /** Whether an approval in a view of the client counts where `confirm` is `strict`. */
  readonly trustViews: boolean;
  /** The project behind the keys: what its runs name it by, and a name to show. */
  readonly project: { readonly id: string; readonly name: string };
  /** Absent: there is no page for decisions. */
  readonly page?: DecisionPage;
  /** Who the person is that decides on this machine; absent where that is said by a login. */
  readonly person?: string;
  readonly noteDecision?: (line: DecisionLine) => void;
  /** Gives the key that seals confirmations: at least 32 bytes. */
  readonly sealKey: () => Promise<Uint8Array>;
  /** The only targetings that may change; absent: all. */
  readonly allowedTargetings?: readonly string[];
  readonly maxDeletes: number;
  /** How long finished runs are kept, and how many of each caller: so long there is an undo plan. */
  readonly keep: { readonly days: number; readonly runs: number };
  /** Of a targeting's options that one plan may change, and that it may delete: percent. */
  readonly maxChangePercent: number;
  /** Base address of the management API, which a plan is bound to; a word where the service is inside this process. */
  readonly apiUrl: string;
  /** The folders that `file` and `saveTo` may use; over HTTP those that the caller's token names. Absolute paths. */
  readonly allowedDirs: readonly string[];
  /** The longest line or value of a file that is read, in bytes. */
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** How long a call may take, from its arrival, before it answers with what it has, in milliseconds. */
  readonly waitMs: number;
  /** Aborted when the server is about to end: what is under way finishes its step, and nothing new is started. */
  readonly stopping: AbortSignal;
}

/** What the person decided about a ToolQuestion. */
export interface Reply {
  readonly token: string;
  readonly accepted: boolean;
}

/** What tools use of the rest of the server. */
export interface ToolContext extends ToolServices {
  /** Who calls: runs and confirmations are theirs alone. */
  readonly caller: string;
  /** What the call says of itself: what its client calls itself, and the name of its file. */
  readonly requested?: Requested;
  /**
   * When the call arrived: milliseconds since 1970. A client of the 2026-07-28 era makes it again with the reply to a
   * question; for any other it is one call, questions included.
   */
  readonly arrivedAt: number;
  /** Tells the client how far a call is; absent where the client did not ask for it. */
  readonly progress?: (done: number, total: number, message: string | undefined) => void;
  /** Called with the end of each run that the call follows, which may come after its answer; absent: nobody waits for that. */
  readonly goesOn?: ((rest: Promise<unknown>) => void) | undefined;
  /** Asks the client for the folders that it works in, as far as they may be read; absent: it has none. */
  readonly roots?: (() => Promise<readonly string[]>) | undefined;
  /** Aborted when the caller gives up. */
  readonly signal: AbortSignal;
  /** Whether a ToolQuestion would reach a person. Where not, a tool answers `needs_confirmation` or refuses. */
  readonly canAsk: () => boolean;
  /**
   * Asks the client to open the page where a run waits, and gives how the call goes on: it is answered with that
   * request ("asked"), waits for the page, or is shown in a view. Absent: the client opens none.
   */
  readonly opens?: (runId: string, context: ToolContext) => Promise<"asked" | "page" | "view">;
  /** Whether the client shows the run of this call in a view, where a person decides on it; absent: it does not. */
  readonly inView?: boolean;
  /** Whether the client follows the run of this call by itself, as a task: it is answered once that is stored. */
  readonly asTask?: boolean;
  /** Present when the handler is called again because its question was answered. */
  readonly reply?: Reply;
}

/** Reads may take this long in any case, in milliseconds: with less time for a call nothing could be read. */
export const LEAST_READ_MS = 1000;

/** How long a call may still take before it answers with what it has, in milliseconds. */
export function timeLeft({ arrivedAt, waitMs, clock }: Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">): number {
  return Math.max(0, arrivedAt + waitMs - clock.now());
}

/** The name of a caller, as people know it: the owner of runs in another project begins with a digest of its keys. */
export function callerName(owner: string): string {
  return owner.replace(/^keys:\w+ /, "");
}
