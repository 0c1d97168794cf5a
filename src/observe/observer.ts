import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import type { HttpAnswer } from "../api/http.ts";
import type { AroundRun, Wrapper } from "../runs/kind.ts";

interface ObservedCall {
  readonly tool: string;
  /** The `_meta` of the request. Clients pass on their trace in it. */
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

/** Combines two observers. `outer` also observes the work of `inner`. */
export function combineObservers(outer: Observer | undefined, inner: Observer | undefined): Observer | undefined {
  if (outer === undefined || inner === undefined) return outer ?? inner;
  return {
    call: (about, work) => outer.call(about, () => inner.call(about, work)),
    run: (about, work) => outer.run(about, () => inner.run(about, work)),
    request: (about, work) => outer.request(about, () => inner.request(about, work)),
  };
}
