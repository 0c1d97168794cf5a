import { mkdtempSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test, vi } from "vitest";
import * as z from "zod";
import { fileAt } from "../../scripts/packaging/generated.ts";
import { post, startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const ids = z.object({ traceId: z.string(), spanId: z.string() });
const spans = z.array(
  z.object({
    name: z.string(),
    kind: z.number(),
    attributes: z.record(z.string(), z.unknown()),
    /** 2 means an error (OpenTelemetry, `SpanStatusCode`). */
    status: z.number(),
    ids,
    parent: z.string().optional(),
    links: z.array(ids),
  }),
);
const answer = z.looseObject({
  result: z.looseObject({ structuredContent: z.looseObject({ results: z.array(z.looseObject({ _id: z.string() })) }) }),
});

/** Kinds of spans (OpenTelemetry, `SpanKind`). */
const [INTERNAL, SERVER, CLIENT] = [0, 1, 2];
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

async function start() {
  const service = await startService();
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "spans.json");
  const sdk = pathToFileURL(join(import.meta.dirname, "../support/otel-sdk.mjs")).href;
  const server = await startHttp({ ...service.live, SPANS_FILE: file }, [], ["--import", sdk]);
  /** Waits until a span with this name has ended. Returns all spans so far. */
  const until = (name: string) =>
    vi.waitFor(
      async () => {
        const all = spans.parse(JSON.parse(await readFile(file, "utf8")));
        expect(all.map((one) => one.name)).toContain(name);
        return all;
      },
      { timeout: 120_000, interval: 20 },
    );
  const call = (name: string, args: Record<string, unknown>, meta: Record<string, unknown> = {}) =>
    post(server.url, "tools/call", {
      name,
      arguments: args,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "test-client", version: "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
        ...meta,
      },
    }).then((got) => got.text());
  return { service, server, until, call };
}

/** Returns the message of an answer, which is JSON or the last event of a stream. */
function messageOf(text: string): unknown {
  const data = text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .at(-1);
  return JSON.parse(data === undefined ? text : data.slice("data: ".length));
}

test("a call, its run and each request make spans, in the trace that the client names", async () => {
  const { call, until } = await start();
  const made = await call("create_targetings", { items: [{ name: "Secret spring" }] });
  const [{ _id: targetingId } = { _id: "" }] = answer.parse(messageOf(made)).result.structuredContent.results;
  await call("bulk_add_options", { targetingId, items: optionItems(2) }, { traceparent: `00-${TRACE}-${PARENT}-01` });
  const all = await until("tools/call bulk_add_options");
  const named = (name: string) => all.filter((one) => one.name === name);

  const [asked] = named("tools/call bulk_add_options");
  expect(asked).toMatchObject({
    kind: SERVER,
    parent: PARENT,
    ids: { traceId: TRACE },
    status: 0,
    attributes: {
      "mcp.method.name": "tools/call",
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "bulk_add_options",
      "jsonrpc.request.id": "1",
      "mcp.protocol.version": "2026-07-28",
    },
  });
  const [run] = named("run bulk_add_options");
  expect(run).toMatchObject({
    kind: INTERNAL,
    links: [{ traceId: TRACE, spanId: asked?.ids.spanId }],
    attributes: { "targeting.run.status": "succeeded", "targeting.run.sent": 1 },
  });
  expect(run?.parent).toBeUndefined();
  expect(run?.ids.traceId).not.toBe(TRACE);
  const [sent] = named("POST addOptions");
  expect(sent).toMatchObject({
    kind: CLIENT,
    parent: run?.ids.spanId,
    ids: { traceId: run?.ids.traceId },
    attributes: { "http.request.method": "POST", "http.response.status_code": 200 },
  });
  // The reads for planning belong to the trace of the call.
  const reads = all.filter((one) => one.kind === CLIENT && one.ids.traceId === TRACE);
  expect(reads.map(({ parent }) => parent)).toContain(asked?.ids.spanId);
  // This call has no trace of a client, so it starts its own.
  expect(named("tools/call create_targetings")[0]?.parent).toBeUndefined();
  for (const secret of ["Secret spring", targetingId, "Option 1", "sandbox-key"]) {
    expect(JSON.stringify(all)).not.toContain(secret);
  }
});

test("calls and requests that failed are marked", async () => {
  const { call, until, service } = await start();
  await service.control("POST", "/faults", { faults: [{ kind: "status", status: 403, on: "getTargeting" }] });
  await call("get_targeting", { targetingId: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
  const all = await until("tools/call get_targeting");
  const byName = new Map(all.map((one) => [one.name, one]));
  expect(byName.get("tools/call get_targeting")).toMatchObject({
    status: 2,
    attributes: { "error.type": "tool_error" },
  });
  expect(byName.get("GET getTargeting")).toMatchObject({ status: 2, attributes: { "error.type": "403" } });
});

test("without an SDK the package of OpenTelemetry is not read", async () => {
  const files = await Promise.all(["main.js"].map((file) => readFile(fileAt(`dist/${file}`), "utf8")));
  for (const text of files) expect(text).not.toContain("@opentelemetry/api");
  const service = await startService();
  // Makes every import of this package fail. The server starts nevertheless, so it imports nothing from the package.
  const { url, logged } = await startHttp(
    service.live,
    [],
    [
      "--import",
      "data:text/javascript,import { register } from 'node:module'; register('data:text/javascript,' + encodeURIComponent(`export async function resolve(name, context, next) { if (name.startsWith('@opentelemetry')) throw new Error('not here'); return next(name, context); }`));",
    ],
  );
  expect((await post(url, "tools/list", {})).status).toBe(200);
  expect(logged().filter(({ message }) => message.includes("OpenTelemetry"))).toEqual([]);
});
