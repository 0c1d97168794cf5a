import type { Attributes, Context, Span } from "@opentelemetry/api";
import { AmbiguousError, NotSentError } from "../api/errors.ts";
import { addCount } from "../platform/by-key.ts";
import type { Backend, ProjectLock } from "../runs/backend.ts";
import { OUTCOMES } from "../runs/outcome.ts";
import type { RunStore } from "../runs/store.ts";
import type { Observer } from "./observer.ts";

/** Creates metrics of calls, runs, API requests, journal entries and write locks. `monotonic` returns milliseconds. */
export function instrument(version: string, monotonic: () => number) {
  const figures = newFigures();
  figures.gauge("build_info", "The version of the server.").add(1, { version });
  const observer: Observer = { ...observedRuns(figures), ...observedRequests(figures), ...observedCalls(figures) };
  const journal = measuredJournal(figures);
  const lock = measuredLock(figures, monotonic);
  return {
    observer,
    /** Returns a backend that also counts how often its journal and write lock are used. */
    over: (backend: Backend): Backend => ({ ...backend, runs: journal(backend.runs), lock: lock(backend.lock) }),
    text: figures.text,
  };
}

function observedCalls(figures: Figures): Pick<Observer, "call"> {
  const calls = figures.counter("calls_total", "Tool calls, by tool and result.");
  return {
    async call({ tool }, work) {
      let result = "error";
      try {
        const answer = await work();
        if (answer.isError !== true) result = "ok";
        return answer;
      } finally {
        calls.add(1, { tool, result });
      }
    },
  };
}

function observedRuns(figures: Figures): Pick<Observer, "run"> {
  const driven = figures.gauge("runs_driven", "Runs that this process executes now, including waiting ones.");
  const rested = figures.counter("runs_total", "Runs whose execution in this process stopped, by tool and status.");
  const items = figures.counter(
    "items_total",
    "Outcomes of items, by tool. An item of a resumed run counts again if its outcome changes.",
  );
  driven.add(0);
  return {
    async run({ header, state }, work) {
      const { tool } = header.call;
      driven.add(1);
      try {
        const status = await work();
        if (status === undefined) return status;
        rested.add(1, { tool, status });
        const before = state.resumed?.counts;
        const counts = state.counts();
        for (const outcome of OUTCOMES) {
          const more = (counts[outcome] ?? 0) - (before?.[outcome] ?? 0);
          if (more > 0) items.add(more, { tool, outcome });
        }
        return status;
      } finally {
        driven.add(-1);
      }
    },
  };
}

function observedRequests(figures: Figures): Pick<Observer, "request"> {
  const requests = figures.counter(
    "api_requests_total",
    "Requests to the APIs, by operation and result (HTTP status, not_sent, no_answer or stopped).",
  );
  return {
    async request({ operation }, work) {
      let result = "stopped";
      try {
        const answer = await work();
        result = String(answer.statusCode);
        return answer;
      } catch (thrown) {
        if (thrown instanceof NotSentError) result = "not_sent";
        if (thrown instanceof AmbiguousError) result = "no_answer";
        throw thrown;
      } finally {
        requests.add(1, { operation, result });
      }
    },
  };
}

function measuredJournal(figures: Figures): (store: RunStore) => RunStore {
  const appends = figures.counter("journal_appends_total", "Entries appended to journals of runs.");
  appends.add(0);
  return (store) => ({
    ...store,
    async journal(runId, lease, wasLeft) {
      const journal = await store.journal(runId, lease, wasLeft);
      return {
        ...journal,
        append(line) {
          appends.add(1);
          journal.append(line);
        },
      };
    },
  });
}

function measuredLock(figures: Figures, monotonic: () => number): (lock: ProjectLock) => ProjectLock {
  const turns = figures.counter("write_turns_total", "Requests for the write lock of a project.");
  const waited = figures.counter("write_wait_seconds_total", "Time spent waiting for write locks of projects.");
  const queued = figures.gauge("projects_waiting", "Projects whose write lock this process is waiting for.");
  const waiting = new Map<string, number>();
  for (const figure of [turns, waited, queued]) figure.add(0);
  const begin = (project: string): (() => void) => {
    const since = monotonic();
    if (addCount(waiting, project, 1) === 1) queued.add(1);
    turns.add(1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      waited.add((monotonic() - since) / 1000);
      if (addCount(waiting, project, -1) === 0) queued.add(-1);
    };
  };
  return (lock) => ({
    async hold(project, work, signal, caller) {
      const over = begin(project);
      try {
        return await lock.hold(
          project,
          (turn) => {
            over();
            return work(turn);
          },
          signal,
          caller,
        );
      } finally {
        over();
      }
    },
  });
}

type Labels = Readonly<Record<string, string>>;

interface Kept {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
  readonly values: Map<string, number>;
}

type Figures = ReturnType<typeof newFigures>;

const PREFIX = "targeting_mcp_";

function newFigures() {
  const all: Kept[] = [];
  const createFigure = (type: Kept["type"], name: string, help: string) => {
    const values = new Map<string, number>();
    all.push({ name: PREFIX + name, type, help, values });
    return {
      add(by: number, labels?: Labels): void {
        const written = labels === undefined ? "" : writtenLabels(labels);
        values.set(written, (values.get(written) ?? 0) + by);
      },
    };
  };
  return {
    /** Creates a metric that only increases. Its name must end in `_total`. */
    counter: (name: string, help: string) => createFigure("counter", name, help),
    gauge: (name: string, help: string) => createFigure("gauge", name, help),
    text: () => all.map(figureText).join(""),
  };
}

function figureText({ name, type, help, values }: Kept): string {
  const lines = [...values].map(([labels, value]) => `${name}${labels} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function writtenLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

export type OpenTelemetry = typeof import("@opentelemetry/api");

/**
 * Creates an observer that records traces. A run may last longer than its call, so it has its own trace, with a link to
 * that of the call. Spans of calls follow the semantic conventions for MCP. No span has callers, objects or arguments.
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
