import { join } from "node:path";
import * as z from "zod";
import { COMMAND, OPENING, startNode, toolCall } from "../support/server-process.ts";

const report = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  counts: z.record(z.string(), z.number()).default({}),
  /**
   * Empty for a plan that waits. In an undo plan, a row says how the object will be restored, instead of an outcome.
   */
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
 * Starts the built command. `DEADLY` in its environment says when its process is killed. A call answers only when its
 * work has ended, even on a slow machine.
 */
export function started(environment: Readonly<Record<string, string>>): Server {
  const server = startNode(["--import", join(import.meta.dirname, "deadly.mjs"), COMMAND], {
    TARGETING_MCP_WAIT_MS: "600000",
    ...environment,
  });
  // Writing to a killed process fails, which these tests expect.
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

/** Calls a tool. Returns the ID of its run, even if the answer is an error. */
export async function runOf(server: Server, name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
  calls += 1;
  server.send(toolCall(`call ${calls}`, name, args));
  const { structuredContent } = answered.parse(await server.answer(`call ${calls}`)).result;
  return z.looseObject({ runId: z.string() }).parse(structuredContent).runId;
}

/** Reads all parts of a resource that consists of JSON lines. */
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
