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

/** The API and the sandbox that events are tested with. */
export interface TestBench {
  /**
   * Returns the address at which a sandbox listens for generated tests. Starts the sandbox if it is part of this
   * process.
   */
  readonly url: () => Promise<string>;
  readonly events: EventApi;
  readonly sandbox: SandboxApi;
}

/** A line of the audit log about a person's decision on a run. */
export interface DecisionLine {
  readonly at: string;
  readonly runId: string;
  readonly decision: "approved" | "declined";
  readonly where: "client" | "view" | "page" | "token" | "terminal";
  /** Who decided: the user of this machine, the entry of the access file, or the issuer and subject. */
  readonly who: string;
  readonly caller: string;
  readonly project: string;
}

/** The page on which a person decides about waiting runs. */
export interface DecisionPage {
  /** Whether a person can be reached through the page at all. */
  readonly isOffered: () => boolean;
  /** Shows a waiting run to the person. Resolves to false if nobody came to the page. */
  readonly show: (run: { readonly runId: string; readonly tool: string }) => Promise<boolean>;
  /**
   * Whether people may not approve their own requests. Their client and tokens then decide nothing. If absent, they
   * may.
   */
  readonly needsOther?: () => boolean;
  /**
   * Returns the address that people open themselves; the server then opens no page. If absent, the server opens it for
   * them.
   */
  readonly address?: () => string;
  /** What to do if the page is not offered and no other channel is left. If absent, the text for stdio is used. */
  readonly remedy?: string;
}

/** The services that are the same for every call of a server. */
export interface ToolServices {
  readonly environment: "live" | "sandbox";
  /** Absent if the management API is not configured; its tools are then not listed. Its reads are retried. */
  readonly management?: ManagementApi;
  /** Absent if the event API is not configured; its tools are then not listed. */
  readonly events?: EventApi;
  /** The incomplete settings of each API, by toolset. Its tools are listed, and report what is missing. */
  readonly half?: { readonly targeting?: HalfPair; readonly events?: HalfPair };
  /** A setting that no tool can work without. Every tool reports what is wrong with it. */
  readonly blocked?: HalfPair;
  readonly memory: TargetingMemory;
  /** Context IDs that were read before. Absent if none are stored. */
  readonly contents?: ContentsStore;
  readonly runs: Runs;
  /** Plans and starts changes. Absent if the management API is not configured. */
  readonly changes?: Changes;
  /** Saves lists to files. Absent if the management API is not configured. */
  readonly saves?: SaveRuns;
  /** Approvals for work that is not a change. */
  readonly approvals: Approvals;
  /** Starts sending events. Absent if the event API is not configured. */
  readonly sending?: EventRuns;
  /**
   * The sandbox that events are tested against. A live server has a separate one. Present if the event API is
   * configured.
   */
  readonly testBench?: TestBench;
  /** The sandbox that can be inspected. Absent if there is none. */
  readonly sandbox?: SandboxApi;
  readonly suites: SuiteStore;
  /** Whether no call may change an API. Tools that always change one are not listed; the others check this. */
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  /** Whether an approval in a view of the client counts if `confirm` is `strict`. */
  readonly trustViews: boolean;
  /** The project that the keys belong to: its ID in runs, and a name to show. */
  readonly project: { readonly id: string; readonly name: string };
  /** If absent, there is no page for decisions. */
  readonly page?: DecisionPage;
  /** The name of the person who decides on this machine. Absent if a login identifies the person. */
  readonly person?: string;
  readonly noteDecision?: (line: DecisionLine) => void;
  /** Returns the key that signs confirmations. It has at least 32 bytes. */
  readonly sealKey: () => Promise<Uint8Array>;
  /** The only targetings that may change. If absent, all may. */
  readonly allowedTargetings?: readonly string[];
  readonly maxDeletes: number;
  /** How long finished runs are stored, and how many of each caller. A run can be undone as long as it is stored. */
  readonly keep: { readonly days: number; readonly runs: number };
  /** The percentage of a targeting's options that one plan may change, and that it may delete. */
  readonly maxChangePercent: number;
  /**
   * The base address of the management API. A plan is valid only for its address. A plain word if the service is inside
   * this process.
   */
  readonly apiUrl: string;
  /** The folders that `file` and `saveTo` may use, as absolute paths. Over HTTP, those in the caller's token. */
  readonly allowedDirs: readonly string[];
  /** The maximum length of a line or value of a file, in bytes. */
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** The time in milliseconds from a call's arrival until its answer. Then the call answers with the facts it has. */
  readonly waitMs: number;
  /** Aborted when the server is about to end. Work in progress finishes its step, and nothing new is started. */
  readonly stopping: AbortSignal;
}

/** The person's reply to a ToolQuestion. */
export interface Reply {
  readonly token: string;
  readonly accepted: boolean;
}

/** The parts of the server that tools use. */
export interface ToolContext extends ToolServices {
  /** The caller. Runs and confirmations belong to one caller. */
  readonly caller: string;
  /** The client's name for itself, and the name of the input file. */
  readonly requested?: Requested;
  /**
   * When the call arrived, in milliseconds since 1970. A client of the 2026-07-28 era repeats the call with the reply
   * to a question. For other clients it is one call, including its questions.
   */
  readonly arrivedAt: number;
  /** Reports progress to the client. Absent if the client did not ask for it. */
  readonly progress?: (done: number, total: number, message: string | undefined) => void;
  /**
   * Called with the end of each run that the call follows; the end may come after the answer. If absent, nobody waits
   * for it.
   */
  readonly goesOn?: ((rest: Promise<unknown>) => void) | undefined;
  /** Asks the client for its working folders, and returns those that may be read. Absent if the client has none. */
  readonly roots?: (() => Promise<readonly string[]>) | undefined;
  readonly signal: AbortSignal;
  /** Whether a ToolQuestion would reach a person. If not, a tool answers `needs_confirmation` or refuses. */
  readonly canAsk: () => boolean;
  /**
   * Asks the client to open the page for a waiting run, and returns how the call continues: "asked" if the answer is
   * that request, "page" if the call waits for the page, "view" if the run is shown in a view. Absent if the client
   * opens no pages.
   */
  readonly opens?: (runId: string, context: ToolContext) => Promise<"asked" | "page" | "view">;
  /** Whether the client shows the run of this call in a view, where a person decides on it. If absent, it does not. */
  readonly inView?: boolean;
  /** Whether the client follows the run of this call as a task. The call is then answered once the run is stored. */
  readonly asTask?: boolean;
  /** Present if the handler is called again because its question was answered. */
  readonly reply?: Reply;
}

/** The minimum time for reads, in milliseconds. With less time, nothing could be read. */
export const LEAST_READ_MS = 1000;

/** Returns how long a call may still take before its answer, in milliseconds. */
export function timeLeft({ arrivedAt, waitMs, clock }: Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">): number {
  return Math.max(0, arrivedAt + waitMs - clock.now());
}
