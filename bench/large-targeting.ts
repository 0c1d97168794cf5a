// Used by the benchmarks of reading and planning: a service with a large targeting that answers each request after 30
// ms, a bare loop that reads it with the fewest requests, 16 at a time, and a server with an empty state folder.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import * as z from "zod";
import { PROGRAMS, type ServerProcess, startServer } from "./server-process.ts";

const LATENCY_MS = 30;
const AT_A_TIME = 16;
const LIST_PAGE = 1000;

/** The number of groups, of sub-options in each group, and of options without a group. */
export interface Size {
  readonly groups: number;
  readonly children: number;
  readonly plain: number;
}

/** A running service, and the ID of its targeting. */
export interface Service {
  readonly child: ChildProcess;
  readonly url: string;
  readonly targetingId: string;
}

const page = z.object({
  items: z.array(z.object({ _id: z.string(), name: z.string(), childCount: z.number().optional() })),
  total: z.number(),
});
const contents = z.object({ contexts: z.array(z.string()) });
const answered = z.object({
  result: z.object({ structuredContent: z.looseObject({}), isError: z.boolean().optional() }),
});

/** Starts the service. The caller must end the process. */
export async function startService({ groups, children, plain }: Size): Promise<Service> {
  const args = [groups, children, plain, LATENCY_MS].map(String);
  const child = spawn(process.execPath, [join(import.meta.dirname, "slow-service.mjs"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const [url = "", targetingId = ""] = String(line).trim().split(" ");
  return { child, url, targetingId };
}

/** Calls `read` for all items, with limited concurrency. */
async function each<Item>(items: Iterable<Item>, read: (item: Item) => Promise<void>): Promise<void> {
  const all = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = all.next(); next.done !== true; next = all.next()) await read(next.value);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}

/**
 * Reads the targeting with the fewest requests: the pages of the top level, one list for each group, and with
 * `withContents` one request for each option. Returns the number of requests.
 */
export async function bareLoop({ url, targetingId }: Service, withContents: boolean): Promise<number> {
  const pool = new Pool(url, { connections: AT_A_TIME });
  let requests = 0;
  const get = async (path: string): Promise<unknown> => {
    requests += 1;
    const { body } = await pool.request({ method: "GET", path: `/context-targeting/${path}` });
    return body.json();
  };
  const ids: string[] = [];
  const groups: string[] = [];
  const take = ({ items }: z.infer<typeof page>): void => {
    for (const { _id, childCount } of items) {
      ids.push(_id);
      if (childCount !== undefined) groups.push(_id);
    }
  };
  const list = async (query: string) => page.parse(await get(`${targetingId}/category?limit=${LIST_PAGE}&${query}`));
  const first = await list("offset=0");
  take(first);
  const rest = Math.ceil(first.total / LIST_PAGE) - 1;
  await each(
    Array.from({ length: rest }, (_, at) => (at + 1) * LIST_PAGE),
    async (offset) => take(await list(`offset=${offset}`)),
  );
  await each([...groups], async (group) => take(await list(`offset=0&parent=${group}`)));
  if (withContents) {
    await each(ids, async (id) => void contents.parse(await get(`category/${id}?limit=10000&offset=0`)));
  }
  await pool.close();
  return requests;
}

/** Calls `work` with a new folder, and removes the folder afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns the settings of a server or command whose state is in a folder, and which may read and write files there. */
export function settingsOf(folder: string, url: string): Readonly<Record<string, string>> {
  return {
    TARGETING_API_URL: url,
    TARGETING_API_KEY: "bench",
    TARGETING_MCP_PROJECT: "bench",
    TARGETING_MCP_STATE_DIR: folder,
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_WAIT_MS: "600000",
  };
}

/** Calls `work` with a server whose state is in a folder, and which may read and write files there. */
export async function withServerIn<T>(
  folder: string,
  { url }: Service,
  work: (server: ServerProcess) => Promise<T>,
): Promise<T> {
  const server = startServer(PROGRAMS.ours, folder, settingsOf(folder, url));
  try {
    return await work(server);
  } finally {
    await server.end();
  }
}

/** Calls a tool and returns its structured answer. Throws if the answer is an error. */
export async function callTool(
  server: ServerProcess,
  name: string,
  args: object,
): Promise<Readonly<Record<string, unknown>>> {
  const { result } = answered.parse(JSON.parse(await server.ask("tools/call", { name, arguments: args })));
  if (result.isError === true) throw new Error(JSON.stringify(result));
  return result.structuredContent;
}

/** Returns the duration of some work, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Returns the peak memory of a process in mebibytes; undefined if the operating system does not report it. */
export async function peakOf(server: ServerProcess): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${server.child.pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}
