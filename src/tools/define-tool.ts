import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
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

/** The toolset of a tool. A tool of `either` is listed if `targeting` or `events` is on. */
export type Toolset = "targeting" | "events" | "either";

/** What a tool may change. This decides its annotations, and whether it is listed in read-only mode. */
export type Effect =
  | "reads"
  /** Only adds data. */
  | "adds"
  /** May overwrite or delete data. */
  | "changes"
  /** Changes only data of this server or of the sandbox. */
  | "local"
  /** May change an API only if the call requests that, and never in read-only mode. */
  | "tests";

export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** What the view in a host needs to send a person's decision. It is in `_meta`, which models do not read. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The waiting run for which the client is asked to open the page. */
  readonly opens?: string;
}

/**
 * A tool may return this instead of an answer if `context.canAsk()` is true. After the reply, the tool is called again
 * with `context.reply`.
 */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /**
     * The text that `context.reply` returns with the person's answer. The server signs it. At most a few hundred
     * bytes.
     */
    readonly token: string;
    /** Returns the answer if nobody decided. Perhaps no person saw a "closed" question, so it is not asked again. */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Asks the person on the web page after the question was closed. Absent if `undecided` asks there. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why nobody decided: the call had to be answered first, or the question was closed. */
export type Undecided = "unanswered" | "closed";

export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Carries out a decision that is made after the call was answered. Absent if the question ends with the call. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

export type ToolOutcome = ToolAnswer | ToolQuestion;

/** What is known about a tool without loading it. */
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
  /** Returns the strict schema of the arguments. Created at the first call, which makes the start faster. */
  readonly input: () => Input;
  /** Returns the advertised schema of the structured answer. It must also allow errors: `{environment, error}`. */
  readonly output: () => z.ZodObject;
  /**
   * Handles a call. May throw a ToolError, an ApiError or an UnsupportedEventError, which the server turns into
   * answers.
   */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

export type Prepared =
  | { readonly fits: true; readonly input: unknown; readonly run: (context: ToolContext) => Promise<ToolOutcome> }
  | { readonly fits: false; readonly issues: readonly z.core.$ZodIssue[] };

/** Hides the type of the arguments, so that tools can be in one list. */
export interface Tool extends Omit<ToolDefinition, "handler"> {
  readonly prepare: (given: unknown) => Prepared;
}

export function toolOf<Input extends z.ZodObject>(definition: ToolDefinition<Input>): Tool {
  let schema: Input | undefined;
  const input = () => {
    schema ??= definition.input();
    return schema;
  };
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

/** A call that cannot be executed as requested, for reasons that no schema can detect. `remedy` is the next step. */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Returns a function that calls `make` once and then returns the same value, even if that is a rejected promise. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A failure of a call, with a code if programs must recognise it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  readonly runId?: string;
}

export function failureAnswer(
  { message, remedy, errorCode, runId }: SummarizedFailure,
  environment: string,
): ToolAnswer {
  const error = { ...(errorCode !== undefined && { errorCode }), message, ...(remedy !== undefined && { remedy }) };
  return {
    structured: { environment, ...(runId !== undefined && { runId, status: "unknown" }), error },
    text: remedy === undefined ? message : `${message}\n${remedy}`,
    isError: true,
  };
}

/** An event API to send to, and a sandbox that shows the verdicts. */
export interface TestBench {
  /** Returns the sandbox's address. Starts the sandbox if it is part of this process. */
  readonly url: () => Promise<string>;
  readonly events: EventApi;
  readonly sandbox: SandboxApi;
}

export interface DecisionLine {
  readonly at: string;
  readonly runId: string;
  readonly decision: "approved" | "declined";
  readonly where: "client" | "view" | "page" | "token" | "terminal";
  /** The user of this machine, the name in the access file, or the issuer and subject of a login. */
  readonly who: string;
  readonly caller: string;
  readonly project: string;
}

/** The web page on which a person decides about runs that wait for approval. */
export interface DecisionPage {
  /** Returns whether a person can open the page at all. */
  readonly isOffered: () => boolean;
  /** Shows a waiting run. Resolves to false if nobody opened the page. */
  readonly show: (run: { readonly runId: string; readonly tool: string }) => Promise<boolean>;
  /** Returns whether a person's approval of their own request, through the client or a token, does not count. */
  readonly needsOther?: () => boolean;
  /** Returns the address, if people open the page themselves. Absent if the server opens it for them. */
  readonly address?: () => string;
  /** What to do if no channel can ask a person. Absent if the text for stdio is used. */
  readonly remedy?: string;
}

/** What is the same for every call of a server. */
export interface ToolServices {
  readonly environment: "live" | "sandbox";
  /** The management API. Absent if it is not configured; its tools are then not listed. */
  readonly management?: ManagementApi;
  readonly events?: EventApi;
  /**
   * The incomplete settings of each API. The tools of such an API are listed, and their answers say what is missing.
   */
  readonly half?: { readonly targeting?: HalfPair; readonly events?: HalfPair };
  /** An invalid setting that every tool needs. */
  readonly blocked?: HalfPair;
  readonly memory: TargetingMemory;
  /** Context IDs from earlier reads. Absent if none are stored. */
  readonly contents?: ContentsStore;
  readonly runs: Runs;
  readonly changes?: Changes;
  readonly saves?: SaveRuns;
  readonly approvals: Approvals;
  readonly sending?: EventRuns;
  /** Where event tests run. A live server has a sandbox of its own for them. */
  readonly testBench?: TestBench;
  /** The sandbox whose events can be inspected. */
  readonly sandbox?: SandboxApi;
  readonly suites: SuiteStore;
  /** Whether no call may change an API. */
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  /** Whether an approval in a view of the client counts even if `confirm` is `strict`. */
  readonly trustViews: boolean;
  /** The project of the keys: its ID in stored runs, and a name to show. */
  readonly project: { readonly id: string; readonly name: string };
  readonly page?: DecisionPage;
  /** The name of the person who decides on this machine. Absent if a login identifies the person. */
  readonly person?: string;
  readonly noteDecision?: (line: DecisionLine) => void;
  /** Returns the key that signs confirmations, of at least 32 bytes. */
  readonly sealKey: () => Promise<Uint8Array>;
  /** The IDs of the only targetings that may be changed. Absent if all may be changed. */
  readonly allowedTargetings?: readonly string[];
  readonly maxDeletes: number;
  /** For how many days finished runs are stored, and how many of each caller. */
  readonly keep: { readonly days: number; readonly runs: number };
  /** The highest percentage of a targeting's options that one plan may change or delete. */
  readonly maxChangePercent: number;
  /**
   * The management API's address, or a fixed word if it is part of this process. A plan is valid for one address only.
   */
  readonly apiUrl: string;
  /** The folders that `file` and `saveTo` may use, as absolute paths. Over HTTP they come from the caller's token. */
  readonly allowedDirs: readonly string[];
  readonly maxLineBytes: number;
  readonly clock: Clock;
  /** How long a call may take, in milliseconds. Work that takes longer continues as a run. */
  readonly waitMs: number;
  /** Aborted when the server stops. Running work finishes its current step. */
  readonly stopping: AbortSignal;
}

export interface Reply {
  readonly token: string;
  readonly accepted: boolean;
}

export interface ToolContext extends ToolServices {
  /** Who makes the call. Runs and confirmations belong to one caller. */
  readonly caller: string;
  /** The name that the client gives itself, and the name of the input file. */
  readonly requested?: Requested;
  /** When the call arrived, in ms since 1970. In protocol 2026-07-28, a reply to a question is a new call. */
  readonly arrivedAt: number;
  /** Reports progress. Absent if the client did not request progress. */
  readonly progress?: (done: number, total: number, message: string | undefined) => void;
  /** Called when the call waits for a run. `rest` resolves when its execution ends, perhaps after the answer. */
  readonly goesOn?: ((rest: Promise<unknown>) => void) | undefined;
  /** Returns the client's working folders that may be read. Absent if it has none. */
  readonly roots?: (() => Promise<readonly string[]>) | undefined;
  readonly signal: AbortSignal;
  /** Returns whether the client would show a ToolQuestion to a person. */
  readonly canAsk: () => boolean;
  /**
   * Asks the client to open the page. Returns whether the call is answered with that request, waits for a decision on
   * the page, or shows a view.
   */
  readonly opens?: (runId: string, context: ToolContext) => Promise<"asked" | "page" | "view">;
  /** Whether the client shows the run of this call in a view, in which a person decides. */
  readonly inView?: boolean;
  /** Whether the client follows the run as a task. The call is then answered as soon as the run is stored. */
  readonly asTask?: boolean;
  /** The reply to the tool's question. Present if the tool is called again with it. */
  readonly reply?: Reply;
}

/** The minimum time that is left for a read, in milliseconds. In less time nothing could be read. */
export const LEAST_READ_MS = 1000;

/** What determines when a call must be answered. */
export type Waiting = Pick<ToolContext, "arrivedAt" | "waitMs" | "clock">;

/** Returns how many milliseconds are left until the call must be answered. */
export function timeLeft({ arrivedAt, waitMs, clock }: Waiting): number {
  return Math.max(0, arrivedAt + waitMs - clock.now());
}
