import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import type { HttpAnswer } from "../api/http.ts";
import type { AroundRun, Wrapper } from "../runs/kind.ts";

interface ObservedCall {
  readonly tool: string;
  /** The field `_meta` of the request, which may contain the trace of the client. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly jsonrpcId: string | number;
  readonly protocolVersion: string | undefined;
  readonly sessionId: string | undefined;
}

export type CallAnswer = CallToolResult | InputRequiredResult;

export interface Observer {
  readonly call: Wrapper<ObservedCall, CallAnswer>;
  readonly run: AroundRun;
  readonly request: Wrapper<Readonly<Record<"operation" | "method", string>>, HttpAnswer>;
}

/** Combines two observers, each of which may be absent. `outer` also observes what `inner` does. */
export function combineObservers(outer: Observer | undefined, inner: Observer | undefined): Observer | undefined {
  if (outer === undefined || inner === undefined) return outer ?? inner;
  return {
    call: (about, work) => outer.call(about, () => inner.call(about, work)),
    run: (about, work) => outer.run(about, () => inner.run(about, work)),
    request: (about, work) => outer.request(about, () => inner.request(about, work)),
  };
}
