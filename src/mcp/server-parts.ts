import type { McpServer } from "@modelcontextprotocol/server";
import type { Redactor } from "../answers/fence.ts";
import type { RootGuard } from "../files/folders.ts";
import type { Audit } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import type { Observer } from "../observe/observer.ts";
import type { ToolAnswer, ToolContext, ToolServices } from "../tools/define-tool.ts";
import type { QuestionSeal } from "./elicitation.ts";
import type { Skills } from "./skills.ts";
import type { Hidden, ListedTool } from "./tool-list.ts";

/** What the server needs for clients that show views of runs (MCP Apps, 2026-01-26). */
export interface Views {
  readonly tools: readonly ListedTool[];
  /** Connects a tool with the view of its run. Undefined for other tools. */
  readonly metaOf: (tool: string) => Meta | undefined;
  readonly attach: (server: McpServer) => void;
  /** Returns the data for the view. It is sent in `_meta`, which the model does not see. */
  readonly beside: (answer: ToolAnswer, context: ToolContext) => Promise<Meta>;
}

type Meta = Readonly<Record<string, unknown>>;

/** What all MCP servers of one process or one caller share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly environment: "live" | "sandbox";
  /** Returns the services. They are loaded with the first call, because loading takes a fifth of the start-up time. */
  readonly services: () => Promise<ToolServices>;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Called with the end of each run that a call started. The run may end after the call is answered. */
  readonly goesOn?: ToolContext["goesOn"];
  readonly caller: string;
  readonly audit: Audit;
  /** Returns the folders that no root of a client may open. Absent if roots are ignored. */
  readonly rootGuard?: (() => Promise<RootGuard>) | undefined;
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  readonly loadViews?: () => Promise<Views>;
  readonly views?: Views | undefined;
  readonly observer?: Observer | undefined;
}

export type CallsUnderWay = ReturnType<typeof callsUnderWay>;

export function callsUnderWay() {
  const calls = new Set<Promise<unknown>>();
  return {
    async during<Result>(call: () => Promise<Result>): Promise<Result> {
      const running = call();
      calls.add(running);
      try {
        return await running;
      } finally {
        calls.delete(running);
      }
    },
    /** Resolves when no call is in progress, or after `withinMs`. */
    async idle(withinMs: number): Promise<void> {
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

/** Records when an HTTP request was completely received. The maximum wait of its calls starts then. */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
