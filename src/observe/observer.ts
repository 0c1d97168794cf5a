import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import type { HttpAnswer } from "../api/http.ts";
import type { AroundRun, Wrapper } from "../runs/kind.ts";

interface ObservedCall {
  readonly tool: string;
  /** The field `_meta` of the request, in which clients send the ID of their trace. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly jsonrpcId: string | number;
  readonly protocolVersion: string | undefined;
  readonly sessionId: string | undefined;
}

export type CallAnswer = CallToolResult | InputRequiredResult;

interface ObservedRequest {
  readonly operation: string;
  readonly method: string;
}

export interface Observer {
  readonly call: Wrapper<ObservedCall, CallAnswer>;
  readonly run: AroundRun;
  readonly request: Wrapper<ObservedRequest, HttpAnswer>;
}

/** Combines two observers, either of which may be absent. What `inner` does counts as part of what `outer` observes. */
export function combineObservers(outer: Observer | undefined, inner: Observer | undefined): Observer | undefined {
  if (outer === undefined || inner === undefined) return outer ?? inner;
  return {
    call: (about, work) => outer.call(about, () => inner.call(about, work)),
    run: (about, work) => outer.run(about, () => inner.run(about, work)),
    request: (about, work) => outer.request(about, () => inner.request(about, work)),
  };
}
