import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
import type { EventApi, SandboxApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";
import type { Approvals } from "../changes/approvals.ts";
import type { Changes } from "../changes/changes.ts";
import type { Decided } from "../changes/rows/entries.ts";
import type { EventRuns } from "../events/run/event-runs.ts";
import type { SuiteStore } from "../events/suites/suite-store.ts";
import type { Clock } from "../platform/clock.ts";
import type { ContentsStore, TargetingMemory } from "../runs/backend.ts";
import type { Requested } from "../runs/kind-runs.ts";
import type { Runs } from "../runs/registry.ts";
import type { SaveRuns } from "../saves/save-runs.ts";
import type { HalfPair } from "../settings/environment.ts";

/** The toolset of a tool. A tool of `either` is listed if one of the two toolsets is on and configured. */
export type Toolset = "targeting" | "events" | "either";

/** What a tool may change. Its annotations, and whether it is listed in read-only mode, depend on this. */
export type Effect =
  | "reads"
  | "adds"
  | "changes"
  /** Changes only data of this server or of a sandbox. */
  | "local"
  /** Changes a live API only if the arguments say so, and never in read-only mode. */
  | "tests";

export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** The secret with which a view sends a person's decision. It is in `_meta`, which models do not get. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The ID of a run that waits for approval. The client is asked to open the web page that shows it. */
  readonly opens?: string;
}

/** A question to the person, if `context.canAsk()`. The tool is called again with the answer: `context.reply`. */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /** A text of a few hundred bytes that comes back in `context.reply`. If it is sent to the client, it is signed. */
    readonly token: string;
    /**
     * Returns the answer if the person did not decide. After "closed", it must not ask in the client again: the client
     * may have closed the question without showing it.
     */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Asks on the web page after the client closed the question. Absent without a page, or if `undecided` does it. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why there is no decision. "unanswered": the call was answered first. "closed": the client closed the question. */
export type Undecided = "unanswered" | "closed";

export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Carries out a decision that comes after the call was answered. Absent if such decisions are ignored. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

export type ToolOutcome = ToolAnswer | ToolQuestion;

/** What is known about a tool before it is loaded. */
export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  readonly effect: Effect;
  readonly idempotent: boolean;
  readonly needsSandbox?: true;
}

export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> extends ToolFacts {
  /** Returns the strict schema of the arguments. Created at the first call, so that the server starts fast. */
  readonly input: () => Input;
  /** Returns the schema of structured answers. It must also accept a failed call's answer: `{environment, error}`. */
  readonly output: () => z.ZodObject;
  /** Handles a call. Errors that it throws become answers (`failureOf`). */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

export type Prepared =
  | { readonly fits: true; readonly input: unknown; readonly run: (context: ToolContext) => Promise<ToolOutcome> }
  | { readonly fits: false; readonly issues: readonly z.core.$ZodIssue[] };

/** A tool without the type of its arguments, so that one list can contain all tools. */
export interface Tool extends Omit<ToolDefinition, "handler"> {
  readonly prepare: (given: unknown) => Prepared;
}

export function toolOf<Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool {
  const input = once(definition.input);
  return {
    ...definition,
    input,
    prepare(given) {
      const parsed = input().safeParse(given);
      if (!parsed.success) return { fits: false, issues: parsed.error.issues };
      return { fits: true, input: parsed.data, run: (context) => definition.handler(parsed.data, context) };
    },
  };
}

/** A call that cannot be executed, for a reason that its schema cannot express. `remedy`: what to do instead. */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Returns a function that calls `make` once and always returns its value, even if that is a rejected promise. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A failure of a call. `errorCode` is only set for failures that programs must recognize. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  readonly runId?: string;
  /** Whether the failure may quote text from a file. */
  readonly isOfFile?: boolean;
  /** Set if the failure may quote text from the API or a proxy. `own`: the texts in it that are ours. */
  readonly ofService?: { readonly own: readonly string[] };
  /** The text of the answer. Default: the message and the remedy. */
  readonly text?: string;
}

export function failureAnswer(
  { message, remedy, errorCode, runId, text }: SummarizedFailure,
  environment: string,
): ToolAnswer {
  const error = { ...(errorCode !== undefined && { errorCode }), message, ...(remedy !== undefined && { remedy }) };
  return {
    structured: { environment, ...(runId !== undefined && { runId, status: "unknown" }), error },
    text: text ?? (remedy === undefined ? message : `${message}\n${remedy}`),
    isError: true,
  };
}

/** Where event tests run, unless they are live: an event API, and the sandbox behind it, which shows its events. */
export interface TestBench {
  /** Returns the address for generated tests: of the sandbox that people inspect, or else of one that this starts. */
  readonly url: () => Promise<string>;
  readonly events: EventApi;
  readonly sandbox: SandboxApi;
}

export interface DecisionLine {
  readonly at: string;
  readonly runId: string;
  readonly decision: "approved" | "declined";
  readonly where: Decided["where"];
  /** Who this person is: the user of this machine, a name in the access file, or the issuer and subject of a login. */
  readonly who: string;
  readonly caller: string;
  readonly project: string;
}

/** The web page on which a person approves or declines waiting runs. */
export interface DecisionPage {
  readonly isOffered: () => boolean;
  readonly show: (run: { readonly runId: string; readonly tool: string }) => Promise<boolean>;
  /** Returns whether a person other than the requester must approve. That is only possible on the page. */
  readonly needsOther?: () => boolean;
  /** Returns the address of the page, for people or clients to open. Absent if the server itself opens the page. */
  readonly address?: () => string;
  /** What to do if no person can be asked. Default: the remedy for stdio. */
  readonly remedy?: string;
}

/** What tools need from the server. It is the same for all calls of a caller. */
export interface ToolServices {
  readonly environment: "live" | "sandbox";
  /** Absent if the management API is not configured. Its tools are then not listed, unless `half` has this API. */
  readonly management?: ManagementApi;
  readonly events?: EventApi;
  /** APIs whose settings are incomplete. Their tools are listed, but only answer what is missing. */
  readonly half?: { readonly targeting?: HalfPair; readonly events?: HalfPair };
  readonly blocked?: HalfPair;
  readonly memory: TargetingMemory;
  readonly contents?: ContentsStore;
  readonly runs: Runs;
  readonly changes?: Changes;
  readonly saves?: SaveRuns;
  readonly approvals: Approvals;
  readonly sending?: EventRuns;
  /** Where event tests run, unless they are live. In live mode, this is a sandbox that the server starts itself. */
  readonly testBench?: TestBench;
  readonly sandbox?: SandboxApi;
  readonly suites: SuiteStore;
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  /** Whether a person may also approve in a view of the client if `confirm` is `strict`. */
  readonly trustViews: boolean;
  readonly project: { readonly id: string; readonly name: string };
  readonly page?: DecisionPage;
  /** The name of the person behind a call: the user of this machine or, over HTTP, the name of the caller. */
  readonly person?: string;
  readonly noteDecision?: (line: DecisionLine) => void;
  readonly sealKey: () => Promise<Uint8Array>;
  /** The IDs of the targetings that may be changed. Absent if all targetings may be. */
  readonly allowedTargetings?: readonly string[];
  readonly maxDeletes: number;
  /** How long the finished runs of a caller are stored, in days, and how many of them. */
  readonly keep: { readonly days: number; readonly runs: number };
  /** The maximum share of a targeting's options, in percent, that one plan may change, and that it may delete. */
  readonly maxChangePercent: number;
  /** The address of the management API, or a fixed text for the embedded sandbox. A plan is valid for one address. */
  readonly apiUrl: string;
  /** The absolute paths of the folders that `file` and `saveTo` may use. Over HTTP: those of the caller's token. */
  readonly allowedDirs: readonly string[];
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** After how many milliseconds a call must be answered. A run that takes longer goes on. */
  readonly waitMs: number;
  /** Aborted when the server stops. Runs then stop after their current step. */
  readonly stopping: AbortSignal;
}

export interface Reply {
  readonly token: string;
  readonly accepted: boolean;
}

export interface ToolContext extends ToolServices {
  /** Who makes the call: a user, a token or a login. Only the same caller can use its runs and confirmations. */
  readonly caller: string;
  /** What lists show people about the origin of a run: how the client names itself, and the file in the call. */
  readonly requested?: Requested;
  /** When the call arrived, in ms since 1970. In protocol version 2026-07-28, a person's reply is a new call. */
  readonly arrivedAt: number;
  /** Reports progress. `total` is undefined if it is unknown. Absent if the client did not ask for progress. */
  readonly progress?: (done: number, total: number | undefined, message: string | undefined) => void;
  /** Called with `rest`, which resolves when the run of this call ends, perhaps after the answer. */
  readonly goesOn?: ((rest: Promise<unknown>) => void) | undefined;
  /** Returns the client's folders (roots) that may be used. Absent if there are none or they are ignored. */
  readonly roots?: (() => Promise<readonly string[]>) | undefined;
  readonly signal: AbortSignal;
  readonly canAsk: () => boolean;
  /**
   * Asks the client to open the web page for a run or, if it does not, to show a form. Returns how the call goes on.
   * "asked": its answer contains the request. "page": it waits for a decision. "view": the client shows a view.
   */
  readonly opens?: (runId: string, context: ToolContext) => Promise<"asked" | "page" | "view">;
  /** Whether the client shows the run of this call in a view in which a person may decide. */
  readonly inView?: boolean;
  /** Whether the client follows the run as a task. The call is then answered as soon as the run is stored. */
  readonly asTask?: boolean;
  /** The reply to a question that the tool asked before. Absent if there is none. */
  readonly reply?: Reply;
}

/** The minimum time for the reads of a call, in milliseconds after its arrival. It applies if `waitMs` is shorter. */
export const LEAST_READ_MS = 1000;

export type Waiting = Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">;

export function timeLeft({ arrivedAt, waitMs, clock }: Waiting): number {
  return Math.max(0, arrivedAt + waitMs - clock.now());
}
