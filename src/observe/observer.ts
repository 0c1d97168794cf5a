import type { CallToolResult, InputRequiredResult } from "@modelcontextprotocol/server";
import type { HttpAnswer } from "../api/http.ts";
import type { AroundRun, Wrapper } from "../runs/kind.ts";

interface ObservedCall {
  readonly tool: string;
  /** The `_meta` of the request, with which a client passes on its trace. */
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

function composeWrappers<About, Result>(
  outer: Wrapper<About, Result>,
  inner: Wrapper<About, Result>,
): Wrapper<About, Result> {
  return (about, work) => outer(about, () => inner(about, work));
}

export function combineObservers(observers: readonly Observer[]): Observer | undefined {
  const [first, ...others] = observers;
  return others.reduce<Observer | undefined>(
    (outer, inner) =>
      outer && {
        call: composeWrappers(outer.call, inner.call),
        run: composeWrappers(outer.run, inner.run),
        request: composeWrappers(outer.request, inner.request),
      },
    first,
  );
}
