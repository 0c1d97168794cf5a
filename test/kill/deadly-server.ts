import { join } from "node:path";
import * as z from "zod";
import { COMMAND, OPENING, startNode, toolCall } from "../support/server-process.ts";

const report = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  counts: z.record(z.string(), z.number()).default({}),
  /** A plan that waits has none, and a way back says how each object goes back in place of its outcome. */
  results: z
    .array(z.looseObject({ outcome: z.string().optional(), _id: z.string().optional(), name: z.string().optional() }))
    .default([]),
});
/** The answer of a tool that writes: the report of a run. */
export type Report = z.infer<typeof report>;
const answered = z.looseObject({ result: z.looseObject({ structuredContent: z.looseObject({}) }) });
const read = z.looseObject({ result: z.looseObject({ contents: z.array(z.looseObject({ text: z.string() })) }) });

export type Server = ReturnType<typeof startNode>;

/**
 * Starts the real command. `DEADLY` in its environment says where its process is killed. It answers a call only when
 * the work of the call has ended, however slow the machine is.
 */
export function started(environment: Readonly<Record<string, string>>): Server {
  const server = startNode(["--import", join(import.meta.dirname, "deadly.mjs"), COMMAND], {
    TARGETING_MCP_WAIT_MS: "600000",
    ...environment,
  });
  // Writing to a killed process fails. The error is expected.
  server.child.stdin.on("error", () => {});
  for (const message of OPENING) server.send(message);
  return server;
}

/** Returns the server's answer to a call. Undefined if the process was killed before it answered. */
export async function answer(server: Server, id: string): Promise<Report | undefined> {
  try {
    const line = answered.safeParse(await server.answer(id));
    return line.success ? report.safeParse(line.data.result.structuredContent).data : undefined;
  } catch {
    return undefined;
  }
}

let calls = 0;

/** Calls a tool. An answer that is not the report of a run is returned as `refused`. */
export async function tool(server: Server, name: string, args: Readonly<Record<string, unknown>>): Promise<Report> {
  calls += 1;
  server.send(toolCall(`call ${calls}`, name, args));
  const { result } = answered.parse(await server.answer(`call ${calls}`));
  const told = report.safeParse(result.structuredContent);
  return told.success && told.data.runId !== undefined
    ? told.data
    : { results: [], counts: {}, refused: result.structuredContent };
}

/** Calls a tool and returns the ID of its run, also if the answer is an error. */
export async function runOf(server: Server, name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
  calls += 1;
  server.send(toolCall(`call ${calls}`, name, args));
  const { structuredContent } = answered.parse(await server.answer(`call ${calls}`)).result;
  return z.looseObject({ runId: z.string() }).parse(structuredContent).runId;
}

/** Reads a resource of JSON lines to its end. */
export async function linesAt(server: Server, uri: string): Promise<readonly unknown[]> {
  const lines: unknown[] = [];
  for (let next: string | undefined = uri; next !== undefined; ) {
    calls += 1;
    server.send({ jsonrpc: "2.0", id: `call ${calls}`, method: "resources/read", params: { uri: next } });
    const { contents } = read.parse(await server.answer(`call ${calls}`)).result;
    const page = contents.flatMap(({ text }) => text.trim().split("\n")).map((line): unknown => JSON.parse(line));
    const link = z.object({ next: z.string() }).safeParse(page.at(-1));
    lines.push(...(link.success ? page.slice(0, -1) : page));
    next = link.data?.next;
  }
  return lines;
}
