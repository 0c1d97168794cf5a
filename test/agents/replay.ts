import * as z from "zod";
import { CLIENTS, type TestClient, type ToolResult, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import type { Recorded, RecordedCall } from "./recorded.ts";
import type { World } from "./world.ts";

const named = z.looseObject({ _id: z.string(), name: z.string() });
const told = z.looseObject({
  runId: z.string().optional(),
  suiteId: z.string().optional(),
  cursor: z.string().optional(),
  results: z.array(z.unknown()).default([]),
  confirmation: z.looseObject({ token: z.string() }).optional(),
});

/** The result of a call. */
export interface Replayed {
  readonly tool: string;
  readonly isError: boolean;
  readonly text: string;
  /** The data of the answer. If there are several pages, their lists are joined. */
  readonly structured: Readonly<Record<string, unknown>>;
}

/** Makes the calls of a recorded request, in order, with a new server over stdio. */
export async function replay(request: Recorded, world: World): Promise<readonly Replayed[]> {
  const client = await connected(world, request.canAsk);
  const runs = new Map<number, string>();
  let token = "";
  let suite = "";
  const learn = (result: ToolResult, at: number): string | undefined => {
    const { runId, suiteId, confirmation, results, cursor } = told.parse(result.structuredContent ?? {});
    if (runId !== undefined) runs.set(at, runId);
    token = confirmation?.token ?? token;
    suite = suiteId ?? suite;
    for (const row of results) {
      const { data } = named.safeParse(row);
      if (data !== undefined && !world.ids.has(data.name)) world.ids.set(data.name, data._id);
    }
    return cursor;
  };
  const filled = (given: unknown): Record<string, unknown> =>
    z.record(z.string(), z.unknown()).parse(
      JSON.parse(
        JSON.stringify(given).replace(
          /\{(id|run|token|suite|files)(?::([^}]*))?\}/g,
          (_all, kind: string, name = "") => {
            const value = { id: world.ids.get(name), run: runs.get(Number(name)), token, suite, files: world.folder }[
              kind
            ];
            if (value === undefined) throw new Error(`nothing is known as {${kind}:${name}}`);
            return JSON.stringify(value).slice(1, -1);
          },
        ),
      ),
    );
  const made = async (call: RecordedCall, at: number): Promise<Replayed> => {
    const args = filled(call.arguments);
    let result = await client.callTool(call.tool, args);
    let structured = result.structuredContent ?? {};
    for (let cursor = learn(result, at); call.toEnd && cursor !== undefined; cursor = learn(result, at)) {
      result = await client.callTool(call.tool, { ...args, cursor });
      structured = joined(structured, result.structuredContent ?? {});
    }
    return { tool: call.tool, isError: result.isError === true, text: textOf(result), structured };
  };
  for (const targetingId of world.seen) await client.callTool("get_targeting", { targetingId });
  for (const [at, call] of request.before.entries()) await made(call, at + 1 - request.before.length);
  const replayed: Replayed[] = [];
  for (const [at, call] of request.calls.entries()) replayed.push(await made(call, at + 1));
  await client.close();
  return replayed;
}

function joined(before: Readonly<Record<string, unknown>>, page: Readonly<Record<string, unknown>>) {
  const lists = Object.entries(page).map(([name, value]) => {
    const earlier = before[name];
    return [name, Array.isArray(value) && Array.isArray(earlier) ? [...earlier, ...value] : value] as const;
  });
  return Object.fromEntries(lists);
}

/** Returns a client of the built command. If it can ask the person, the person approves. */
export async function connected(world: World, canAsk: boolean): Promise<TestClient> {
  const env = cleanEnvironment({
    TARGETING_MCP_SANDBOX_URL: world.url,
    TARGETING_MCP_ALLOWED_DIRS: world.folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
  });
  return CLIENTS["2026 client, modern"]({
    args: [COMMAND],
    env,
    ...(canAsk && { answer: () => ({ action: "accept", content: { confirm: true } }) }),
  });
}
