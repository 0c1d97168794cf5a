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

/** The additions for a client that shows views (MCP Apps, 2026-01-26). */
export interface Views {
  /** The tools that only views call. */
  readonly tools: readonly ListedTool[];
  /** Returns the `_meta` of a tool that shows its run in a view; undefined if it has none. */
  readonly metaOf: (tool: string) => Meta | undefined;
  /** Registers the view with a server. */
  readonly attach: (server: McpServer) => void;
  /** Returns what a view gets in the `_meta` of an answer about a run, for the person only. */
  readonly beside: (answer: ToolAnswer, context: ToolContext) => Promise<Meta>;
}

type Meta = Readonly<Record<string, unknown>>;

/** The parts that the servers of one process share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  /** The tools that a setting hides, by name; none if absent. */
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly environment: "live" | "sandbox";
  /** Returns the services for calls, loaded with the first call, because that takes a fifth of the start-up time. */
  readonly services: () => Promise<ToolServices>;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Called with the end of each run that a call follows, which may come after its answer. */
  readonly goesOn?: ToolContext["goesOn"];
  /** The caller. Runs and confirmations are visible to their caller only. */
  readonly caller: string;
  readonly audit: Audit;
  /** Returns what no root of a client may open; absent: roots are ignored. */
  readonly rootGuard?: (() => Promise<RootGuard>) | undefined;
  /** The names of the tools that change an API, listed or not. */
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  /** Loads the additions for clients that show views. */
  readonly loadViews?: () => Promise<Views>;
  /** These additions, once loaded, in the parts of a server for such a client. */
  readonly views?: Views | undefined;
  readonly observer?: Observer | undefined;
}

/** The tool calls that have not been answered yet. */
export interface CallsUnderWay {
  /** Counts a call until it ends. */
  during<Result>(call: () => Promise<Result>): Promise<Result>;
  /** Resolves when no call is in progress, or after `withinMs` milliseconds. */
  idle(withinMs: number): Promise<void>;
}

/** Starts counting. */
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

/** Records when an HTTP request was received completely, in milliseconds since 1970: its calls wait since then. */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

/** Returns when a request was received completely; undefined if that was not recorded. */
export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
