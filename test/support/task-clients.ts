import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import * as z from "zod";
import { atEnd } from "./ends.ts";
import { COMMAND, startNode } from "./server-process.ts";

export const DECLARES = {
  tasks: { "io.modelcontextprotocol/tasks": {} },
  nothing: {},
} as const;

/** The client capabilities of a request; absent: the client supports tasks, but cannot ask a person. */
export interface Declared {
  readonly extensions?: Readonly<Record<string, unknown>>;
  readonly elicitation?: Readonly<Record<string, unknown>>;
}

const reply = z.looseObject({
  id: z.union([z.number(), z.null()]).optional(),
  method: z.string().optional(),
  params: z.looseObject({ status: z.string().optional() }).optional(),
  result: z.looseObject({ resultType: z.string().optional() }).optional(),
  error: z.looseObject({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});
/** The response to a message. */
export type TaskReply = z.infer<typeof reply>;

const task = z.looseObject({
  taskId: z.string().min(30),
  status: z.enum(["working", "input_required", "completed", "cancelled"]),
  statusMessage: z.string(),
  createdAt: z.iso.datetime(),
  lastUpdatedAt: z.iso.datetime(),
  ttlMs: z.int(),
  pollIntervalMs: z.int(),
  result: z
    .looseObject({
      content: z.array(z.looseObject({ type: z.string() })),
      structuredContent: z.looseObject({ runId: z.string().optional(), status: z.string().optional() }).optional(),
      isError: z.boolean().optional(),
    })
    .optional(),
  inputRequests: z.record(z.string(), z.looseObject({ method: z.string(), params: z.looseObject({}) })).optional(),
});
export type Task = z.infer<typeof task>;

/** Sends one message of protocol version 2026-07-28 exactly as it is. Returns the response. */
export type Ask = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  declared?: Declared,
) => Promise<TaskReply>;

const VERSION = "2026-07-28";

function messageOf(id: number, method: string, params: Readonly<Record<string, unknown>>, declared: Declared) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "task-host", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { extensions: DECLARES.tasks, ...declared },
  };
  return JSON.stringify({ jsonrpc: "2.0", id, method, params: { _meta, ...params } });
}

/** Passes notifications from a stream to `hear` until the test ends. */
export type Listen = (
  notifications: Readonly<Record<string, unknown>>,
  hear: (message: TaskReply) => void,
  declared?: Declared,
  ended?: () => void,
) => Promise<void>;

/** Sends a message of protocol version 2026-07-28 over HTTP. */
function posted(
  {
    url,
    token,
    signal = null,
  }: { readonly url: string; readonly token?: string | undefined; readonly signal?: AbortSignal | null },
  [method, params, declared = {}]: Parameters<Ask>,
): Promise<Response> {
  const named = params.taskId ?? params.name ?? params.uri;
  return fetch(url, {
    method: "POST",
    signal,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": VERSION,
      "mcp-method": method,
      ...(typeof named === "string" && { "mcp-name": named }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: messageOf(1, method, params, declared),
  });
}

/** Returns a function that sends messages over HTTP. */
export function overHttp(url: string, token?: string): Ask {
  return async (...asked) => {
    const response = await posted({ url, token }, asked);
    const text = await response.text();
    const lines = text.startsWith("{") ? [text] : [...text.matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => data);
    const found = lines.map((line) => reply.parse(JSON.parse(line))).find(({ id }) => id !== undefined);
    if (found === undefined)
      throw new Error(`the response contains no answer to the request: ${response.status} ${text}`);
    return found;
  };
}

/** Returns a function that listens to notifications over HTTP. */
export function listenOverHttp(url: string, token?: string): Listen {
  return async (notifications, hear, declared, ended = () => undefined) => {
    const ending = new AbortController();
    atEnd(() => ending.abort());
    const asked = ["subscriptions/listen", { notifications }, declared] as const;
    const response = await posted({ url, token, signal: ending.signal }, [...asked]);
    if (response.headers.get("content-type")?.startsWith("application/json"))
      return hear(reply.parse(await response.json()));
    const lines = createInterface({ input: Readable.from(response.body ?? [], { objectMode: false }) });
    lines.on("line", (line) => line.startsWith("data: ") && hear(reply.parse(JSON.parse(line.slice("data: ".length)))));
    lines.on("error", () => undefined);
    lines.on("close", ended);
  };
}

/**
 * Starts a server over stdio. Returns functions that send messages and listen to notifications, and the server's
 * process.
 */
export function overStdio(env: Record<string, string>) {
  const { child } = startNode([COMMAND], env);
  const waiting = new Map<number, (found: TaskReply) => void>();
  let heard = (_message: TaskReply): void => undefined;
  createInterface({ input: child.stdout }).on("line", (line) => {
    const found = reply.parse(JSON.parse(line));
    heard(found);
    if (typeof found.id === "number" && found.method === undefined) waiting.get(found.id)?.(found);
  });
  let last = 0;
  const ask: Ask = (method, params, declared = {}) => {
    last += 1;
    const id = last;
    const found = new Promise<TaskReply>((resolve) => waiting.set(id, resolve));
    child.stdin.write(`${messageOf(id, method, params, declared)}\n`);
    return found;
  };
  const listen: Listen = async (notifications, hear, declared) => {
    heard = hear;
    void ask("subscriptions/listen", { notifications }, declared);
  };
  return { ask, child, listen };
}

/** Returns functions that use tasks as a host does that supports them. */
export function taskHost(ask: Ask, declared: Declared = {}) {
  const get = async (taskId: string): Promise<Task> => {
    const { result, error } = await ask("tasks/get", { taskId }, declared);
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return task.parse(result);
  };
  return {
    get,
    raw: ask,
    /** Calls a tool. Returns its result as it is. */
    result: async (
      name: string,
      args: Readonly<Record<string, unknown>>,
      more: Readonly<Record<string, unknown>> = {},
    ) => {
      const { result, error } = await ask("tools/call", { name, arguments: args, ...more }, declared);
      if (result === undefined) throw new Error(JSON.stringify(error));
      return result;
    },
    /** Calls a tool whose answer must be a task. */
    async call(name: string, args: Readonly<Record<string, unknown>>): Promise<Task> {
      const { result } = await ask("tools/call", { name, arguments: args }, declared);
      if (result?.resultType !== "task") throw new Error(`the result is not a task: ${JSON.stringify(result)}`);
      return task.parse(result);
    },
    update: (taskId: string, inputResponses: Readonly<Record<string, unknown>>) =>
      ask("tasks/update", { taskId, inputResponses }, declared),
    cancel: (taskId: string) => ask("tasks/cancel", { taskId }, declared),
    /** Requests the task until it is no longer `working`. With `over`, waits also until it needs no more input. */
    async settled(taskId: string, over?: "over"): Promise<Task> {
      for (;;) {
        const found = await get(taskId);
        if (found.status !== "working" && (over === undefined || found.status !== "input_required")) return found;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  };
}
