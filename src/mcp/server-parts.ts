import type { McpServer } from "@modelcontextprotocol/server";
import type { Redactor } from "../answers/redact.ts";
import type { RootGuard } from "../files/folders.ts";
import type { Audit } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import type { Observer } from "../observe/observer.ts";
import type { ToolContext, ToolServices } from "../tools/context.ts";
import type { ToolAnswer } from "../tools/define-tool.ts";
import type { QuestionSeal } from "./elicitation.ts";
import type { Skills } from "./skills.ts";
import type { Hidden, ListedTool } from "./tool-list.ts";

/** What is added for clients that show views of runs (MCP Apps, 2026-01-26). */
export interface Views {
  /** The tools that only the views call, not the model. */
  readonly tools: readonly ListedTool[];
  /** Returns the `_meta` that connects a tool with the view of its run; undefined for all other tools. */
  readonly metaOf: (tool: string) => Meta | undefined;
  /** Registers the view with an MCP server. */
  readonly attach: (server: McpServer) => void;
  /**
   * Returns the data for the view, which is sent in the `_meta` of an answer about a run. The model does not see it.
   */
  readonly beside: (answer: ToolAnswer, context: ToolContext) => Promise<Meta>;
}

type Meta = Readonly<Record<string, unknown>>;

/** What all MCP servers of one process or caller share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  /** The tools that a setting hides, by name. */
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly environment: "live" | "sandbox";
  /**
   * Loads the services for calls. They are loaded with the first call, because that takes a fifth of the start-up time.
   */
  readonly services: () => Promise<ToolServices>;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Called with the end of each run that a call started. The run may end after the call is answered. */
  readonly goesOn?: ToolContext["goesOn"];
  /** The caller's name. Each caller sees only its own runs and confirmations. */
  readonly caller: string;
  readonly audit: Audit;
  /** Returns the folders that no root of a client may open; absent: the roots of clients are ignored. */
  readonly rootGuard?: (() => Promise<RootGuard>) | undefined;
  /** The names of the tools that change an API, including hidden ones. */
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  /** Loads `Views` for clients that show them. */
  readonly loadViews?: () => Promise<Views>;
  /** The loaded views; only for a client that shows them. */
  readonly views?: Views | undefined;
  readonly observer?: Observer | undefined;
}

/** The tool calls in progress. */
export interface CallsUnderWay {
  /** Counts a call as in progress until it ends. */
  during<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is in progress, or after `withinMs` milliseconds. */
  idle(withinMs: number): Promise<void>;
}

export function callsUnderWay(): CallsUnderWay {
  const calls = new Set<Promise<unknown>>();
  return {
    async during(call) {
      const running = call();
      calls.add(running);
      try {
        return await running;
      } finally {
        calls.delete(running);
      }
    },
    async idle(withinMs) {
      let timer: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([Promise.allSettled(calls), over]);
      clearTimeout(timer);
    },
  };
}

const arrivals = new WeakMap<Request, number>();

/**
 * Records when an HTTP request was received completely, in milliseconds since 1970. The maximum wait of its calls
 * starts then.
 */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

/** Returns when an HTTP request was received completely; undefined if that was not recorded. */
export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
