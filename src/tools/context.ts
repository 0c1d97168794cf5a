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

/** What event tests need: an event API to send to, and a sandbox that shows the verdicts. */
export interface TestBench {
  /** Returns the address of the sandbox for generated tests. Starts the sandbox if it is part of this process. */
  readonly url: () => Promise<string>;
  readonly events: EventApi;
  readonly sandbox: SandboxApi;
}

/** A line of the audit log about a person's decision. */
export interface DecisionLine {
  readonly at: string;
  readonly runId: string;
  readonly decision: "approved" | "declined";
  readonly where: "client" | "view" | "page" | "token" | "terminal";
  /** Who decided: the user of this machine, the name in the access file, or the issuer and subject of a login. */
  readonly who: string;
  readonly caller: string;
  readonly project: string;
}

/** The web page on which a person decides about runs that wait for approval. */
export interface DecisionPage {
  /** Returns whether a person can open the page at all. */
  readonly isOffered: () => boolean;
  /** Shows a waiting run to the person. Resolves to false if nobody opened the page. */
  readonly show: (run: { readonly runId: string; readonly tool: string }) => Promise<boolean>;
  /**
   * Returns whether people must not approve their own requests. If so, approvals through their client or a token do not
   * count. Absent: they may approve them.
   */
  readonly needsOther?: () => boolean;
  /** Returns the address if people open the page themselves. Absent: the server opens it for them. */
  readonly address?: () => string;
  /** What to do if neither the page nor another channel can ask a person. Absent: the text for stdio is used. */
  readonly remedy?: string;
}

/** What is the same for every call of a server. */
export interface ToolServices {
  readonly environment: "live" | "sandbox";
  /** Absent if the management API is not configured; its tools are then not listed. Failed reads are retried. */
  readonly management?: ManagementApi;
  /** Absent if the event API is not configured; its tools are then not listed. */
  readonly events?: EventApi;
  /** The incomplete settings of each API. Its tools are listed, and their answers say what is missing. */
  readonly half?: { readonly targeting?: HalfPair; readonly events?: HalfPair };
  /** An invalid setting that every tool needs. All answers say what is wrong with it. */
  readonly blocked?: HalfPair;
  readonly memory: TargetingMemory;
  /** Context IDs from earlier reads. Absent if none are stored. */
  readonly contents?: ContentsStore;
  readonly runs: Runs;
  /** Absent if the management API is not configured. */
  readonly changes?: Changes;
  /** Absent if the management API is not configured. */
  readonly saves?: SaveRuns;
  /** Approvals for work that is not a change. */
  readonly approvals: Approvals;
  /** Absent if the event API is not configured. */
  readonly sending?: EventRuns;
  /**
   * Where event tests run. A live server has a sandbox of its own for them. Absent if the event API is not configured.
   */
  readonly testBench?: TestBench;
  /** The sandbox whose events can be inspected. Absent if there is none. */
  readonly sandbox?: SandboxApi;
  readonly suites: SuiteStore;
  /** Whether no call may change an API. Tools that always change one are not listed; the other tools check this. */
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  /** Whether an approval in a view of the client counts even if `confirm` is `strict`. */
  readonly trustViews: boolean;
  /** The project of the keys: its ID in stored runs, and a name to show. */
  readonly project: { readonly id: string; readonly name: string };
  /** Absent if there is no page for decisions. */
  readonly page?: DecisionPage;
  /** The name of the person who decides on this machine. Absent if a login identifies the person. */
  readonly person?: string;
  readonly noteDecision?: (line: DecisionLine) => void;
  /** Returns the key that signs confirmations, of at least 32 bytes. */
  readonly sealKey: () => Promise<Uint8Array>;
  /** The IDs of the only targetings that may be changed. Absent: all may. */
  readonly allowedTargetings?: readonly string[];
  readonly maxDeletes: number;
  /**
   * For how many days finished runs are stored, and how many of each caller. A run can be undone while it is stored.
   */
  readonly keep: { readonly days: number; readonly runs: number };
  /** The highest percentage of a targeting's options that one plan may change, and the highest that it may delete. */
  readonly maxChangePercent: number;
  /**
   * The base address of the management API; a plan is valid for one address only. A fixed word if the service is part
   * of this process.
   */
  readonly apiUrl: string;
  /** The folders that `file` and `saveTo` may use, as absolute paths. Over HTTP they come from the caller's token. */
  readonly allowedDirs: readonly string[];
  /** The maximum length of a line or value of a file, in bytes. */
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** When a call must be answered, in milliseconds after it arrived. Work that takes longer continues as a run. */
  readonly waitMs: number;
  /** Aborted when the server stops. Running work finishes its current step, and nothing new is started. */
  readonly stopping: AbortSignal;
}

/** A person's reply to a ToolQuestion. */
export interface Reply {
  readonly token: string;
  readonly accepted: boolean;
}

/** What a tool can use during one call. */
export interface ToolContext extends ToolServices {
  /** Who makes the call. Runs and confirmations belong to one caller. */
  readonly caller: string;
  /** What the client calls itself, and the name of the input file. */
  readonly requested?: Requested;
  /**
   * When the call arrived, in milliseconds since 1970. Clients of the protocol 2026-07-28 repeat a call with the reply
   * to a question, which counts as a new call. With other clients, the question is part of the same call.
   */
  readonly arrivedAt: number;
  /** Reports progress to the client. Absent if the client did not request it. */
  readonly progress?: (done: number, total: number, message: string | undefined) => void;
  /**
   * Called when the call starts to wait for a run, with a promise that resolves when its execution ends. This may be
   * after the call was answered. Absent if nothing waits for that.
   */
  readonly goesOn?: ((rest: Promise<unknown>) => void) | undefined;
  /** Asks the client for its working folders and returns those that may be read. Absent if the client has none. */
  readonly roots?: (() => Promise<readonly string[]>) | undefined;
  readonly signal: AbortSignal;
  /**
   * Returns whether the client would show a ToolQuestion to a person. If not, a tool answers `needs_confirmation` or
   * refuses.
   */
  readonly canAsk: () => boolean;
  /**
   * Asks the client to open the page for a waiting run. Returns how the call continues: it is answered with that
   * request ("asked"), waits for a decision on the page ("page"), or shows the run in a view ("view"). Absent if the
   * client opens no pages.
   */
  readonly opens?: (runId: string, context: ToolContext) => Promise<"asked" | "page" | "view">;
  /** Whether the client shows the run of this call in a view, in which a person decides. Absent: it does not. */
  readonly inView?: boolean;
  /**
   * Whether the client follows the run of this call as a task. The call is then answered as soon as the run is stored.
   */
  readonly asTask?: boolean;
  /** Present if the tool is called again with the reply to its question. */
  readonly reply?: Reply;
}

/** The minimum time for a read, in milliseconds. In less time nothing could be read. */
export const LEAST_READ_MS = 1000;

/** Returns how many milliseconds are left until the call must be answered. */
export function timeLeft({ arrivedAt, waitMs, clock }: Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">): number {
  return Math.max(0, arrivedAt + waitMs - clock.now());
}
