import type { Attributes, Context, Span } from "@opentelemetry/api";
import type { Observer } from "./observer.ts";

export type OpenTelemetry = typeof import("@opentelemetry/api");

/**
 * Creates traces. A run may last longer than its call, so it has its own trace with a link to the call. Names follow
 * the semantic conventions for MCP. Spans contain no callers, objects or arguments.
 */
export function traces({ trace, context, propagation, ...api }: OpenTelemetry, version: string): Observer {
  const tracer = trace.getTracer("targeting-mcp", version);
  const inSpan = async <Result>(span: Span, from: Context, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await context.with(trace.setSpan(from, span), work);
    } catch (thrown) {
      fail(span, thrown instanceof Error ? thrown.name : "error");
      throw thrown;
    } finally {
      span.end();
    }
  };
  const fail = (span: Span, type: string): void => {
    span.setAttribute("error.type", type);
    span.setStatus({ code: api.SpanStatusCode.ERROR });
  };
  return {
    call({ tool, meta, jsonrpcId, protocolVersion, sessionId }, work) {
      const from = propagation.extract(context.active(), meta ?? {});
      const attributes: Attributes = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "jsonrpc.request.id": String(jsonrpcId),
        "mcp.protocol.version": protocolVersion,
        "mcp.session.id": sessionId,
      };
      const span = tracer.startSpan(`tools/call ${tool}`, { kind: api.SpanKind.SERVER, attributes }, from);
      return inSpan(span, from, async () => {
        const answer = await work();
        if (answer.isError === true) fail(span, "tool_error");
        return answer;
      });
    },
    run({ header, state }, work) {
      const caller = trace.getSpanContext(context.active());
      const attributes: Attributes = { "targeting.run.id": header.runId, "gen_ai.tool.name": header.call.tool };
      const links = caller === undefined ? [] : [{ context: caller }];
      const span = tracer.startSpan(`run ${header.call.tool}`, { root: true, attributes, links }, context.active());
      return inSpan(span, api.ROOT_CONTEXT, async () => {
        const status = await work();
        span.setAttribute("targeting.run.status", status ?? "taken_over");
        for (const [name, count] of Object.entries(state.requests)) span.setAttribute(`targeting.run.${name}`, count);
        if (status === "failed" || status === "unknown") fail(span, status);
        return status;
      });
    },
    request({ operation, method }, work) {
      const attributes: Attributes = { "http.request.method": method, "targeting.operation": operation };
      const span = tracer.startSpan(`${method} ${operation}`, { kind: api.SpanKind.CLIENT, attributes });
      return inSpan(span, context.active(), async () => {
        const answer = await work();
        span.setAttribute("http.response.status_code", answer.statusCode);
        if (answer.statusCode >= 400) fail(span, String(answer.statusCode));
        return answer;
      });
    },
  };
}
