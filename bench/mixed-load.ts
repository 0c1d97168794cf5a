// Callers over HTTP that import, read, delete and send events at the same time, for a given time.
import * as z from "zod";

const REVISION = "2026-07-28";
const OPTIONS = 200;
const DELETED = 60;
const EVENTS = 25;

const answer = z.object({
  result: z.object({
    isError: z.boolean().optional(),
    structuredContent: z.looseObject({
      status: z.string().optional(),
      runId: z.string().default(""),
      results: z.array(z.looseObject({ _id: z.string().default("") })).default([]),
      options: z.array(z.looseObject({ _id: z.string() })).default([]),
      confirmation: z.object({ token: z.string() }).optional(),
      counts: z.record(z.string(), z.number()).default({}),
    }),
  }),
});
type Answer = z.infer<typeof answer>["result"]["structuredContent"];

/** Calls a tool and returns the data of its answer. Throws if the call did not succeed. */
export type CallTool = (name: string, args: Record<string, unknown>) => Promise<Answer>;

/** Creates a function that calls tools at an address with the token of one caller. */
export function callerAt(url: string, token: string): CallTool {
  return async (name, args) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientInfo": { name: "load", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { _meta, name, arguments: args };
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${token}`,
        "mcp-protocol-version": REVISION,
        "mcp-method": "tools/call",
        "mcp-name": name,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${name}: ${response.status} ${text.slice(0, 300)}`);
    const { isError, structuredContent } = answer.parse(JSON.parse(text)).result;
    const { status = "succeeded" } = structuredContent;
    if (isError || !["succeeded", "needs_confirmation"].includes(status))
      throw new Error(`${name}: ${status} ${text.slice(0, 600)}`);
    return structuredContent;
  };
}

/** Calls a tool that deletes, and confirms the call with the token of its answer. */
export async function confirmed(call: CallTool, name: string, args: Record<string, unknown>): Promise<Answer> {
  const { confirmation } = await call(name, args);
  if (confirmation === undefined) throw new Error(`${name} did not ask`);
  return call(name, { confirmation: confirmation.token });
}

/** Creates a targeting with the given number of options. Returns its ID. */
export async function imported(call: CallTool, name: string, options: number): Promise<string> {
  const { results } = await call("create_targetings", { items: [{ name }] });
  const targetingId = results[0]?._id ?? "";
  const items = Array.from({ length: options }, (_, n) => ({ name: `Option ${n}`, contexts: [`c${n}`, `d${n}`] }));
  await call("bulk_add_options", { targetingId, items });
  return targetingId;
}

/** Runs one round of a caller: creates a targeting, works with it, and deletes it. Returns the number of calls. */
async function round(call: CallTool, name: string): Promise<number> {
  const targetingId = await imported(call, name, OPTIONS);
  const events = Array.from({ length: EVENTS }, (_, n) => ({
    uid: `${name} ${n}`,
    eventName: "page_view",
    page_id: `p-${n}`,
    page_url: `https://example.com/${n}`,
  }));
  const sent = await call("track_events", { events });
  await call("track_event", { uid: name, eventName: "app_open" });
  await call("get_targeting", { targetingId });
  const { options } = await call("list_options", { targetingId, limit: DELETED });
  await call("get_option", { optionId: options[0]?._id });
  await call("get_run", { runId: sent.runId });
  const ids = options.map(({ _id }) => _id);
  await confirmed(call, "delete_options", { ids });
  await confirmed(call, "delete_targeting", { ids: [targetingId] });
  return 12;
}

/** The result of a load. */
export interface LoadResult {
  readonly calls: number;
  readonly errors: readonly string[];
}

/** Runs callers in repeated rounds until a point in time. All names that they create begin with `prefix`. */
export async function mixedLoad(callers: readonly CallTool[], until: number, prefix: string): Promise<LoadResult> {
  const errors: string[] = [];
  let calls = 0;
  const work = async (call: CallTool, who: number): Promise<void> => {
    for (let number = 1; Date.now() < until; number += 1) {
      try {
        const made = await round(call, `${prefix} ${who} ${number}`);
        calls += made;
      } catch (thrown) {
        errors.push(thrown instanceof Error ? thrown.message : String(thrown));
      }
    }
  };
  await Promise.all(callers.map(work));
  return { calls, errors };
}
