// What searching, scanning and exporting a large targeting costs against a bare loop that makes the fewest requests, 16
// at a time, with a service that answers each read after 30 ms: 200 groups of 20 sub-options, and 5,000 options. The
// second scan finds what the first one kept. Memory: the peak of a server that scans all of it, beside one that scans a
// tenth. Prints ratios of one run.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import * as z from "zod";
import { median, PROGRAMS, type ServerProcess, startServer } from "./server-process.ts";

const LATENCY_MS = 30;
const LARGE = { groups: 200, children: 20, plain: 5000 } as const;
const SMALL = { groups: 20, children: 20, plain: 500 } as const;
const AT_A_TIME = 16;
const LIST_PAGE = 1000;
const ROUNDS = 9;

type Size = { readonly groups: number; readonly children: number; readonly plain: number };

/** A running service, and its targeting. */
interface Service {
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

async function startService({ groups, children, plain }: Size): Promise<Service> {
  const args = [groups, children, plain, LATENCY_MS].map(String);
  const child = spawn(process.execPath, [join(import.meta.dirname, "slow-service.mjs"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const [url = "", targetingId = ""] = String(line).trim().split(" ");
  return { child, url, targetingId };
}

/** Reads a list of things, so many at a time. */
async function each<Item>(items: Iterable<Item>, read: (item: Item) => Promise<void>): Promise<void> {
  const all = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = all.next(); next.done !== true; next = all.next()) await read(next.value);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
}

/** The fewest requests: the pages of the top level, one list for each group, and where asked for one for each option. */
async function bareLoop({ url, targetingId }: Service, withContents: boolean): Promise<number> {
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

/** A server on an empty state folder. */
async function withServer<T>(
  { url }: Service,
  work: (server: ServerProcess, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
  const server = startServer(PROGRAMS.ours, folder, {
    TARGETING_API_URL: url,
    TARGETING_API_KEY: "bench",
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_WAIT_MS: "600000",
  });
  try {
    return await work(server, folder);
  } finally {
    await server.end();
    await rm(folder, { recursive: true });
  }
}

async function listOptions(server: ServerProcess, args: object): Promise<Readonly<Record<string, unknown>>> {
  const { result } = answered.parse(
    JSON.parse(await server.ask("tools/call", { name: "list_options", arguments: args })),
  );
  if (result.isError === true) throw new Error(JSON.stringify(result));
  return result.structuredContent;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** The most memory that a process has taken, in mebibytes; undefined where the system does not tell. */
async function peakOf(server: ServerProcess): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${server.child.pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

/** A search that finds the very last option, so that all are looked at. */
async function search(server: ServerProcess, { targetingId }: Service): Promise<void> {
  const { options } = await listOptions(server, { targetingId, search: `Option ${LARGE.groups - 1} 24` });
  if (!Array.isArray(options) || options.length !== 1) throw new Error("the option was not found");
}

async function scan(server: ServerProcess, { targetingId }: Service): Promise<void> {
  const { complete } = await listOptions(server, { targetingId, contextIds: ["context-1", "nowhere"] });
  if (complete !== true) throw new Error("the scan did not look at everything");
}

async function measure(service: Service) {
  const bareLists: number[] = [];
  const searches: number[] = [];
  const requests = await bareLoop(service, false);
  const bareContents = await timed(() => bareLoop(service, true));
  const [first, second, peak] = await withServer(service, async (server) => {
    await search(server, service);
    for (let round = 0; round < ROUNDS; round += 1) {
      bareLists.push(await timed(() => bareLoop(service, false)));
      searches.push(await timed(() => search(server, service)));
    }
    const scans = [await timed(() => scan(server, service)), await timed(() => scan(server, service))] as const;
    return [...scans, await peakOf(server)] as const;
  });
  const exported = await withServer(service, (server, folder) =>
    timed(() => listOptions(server, { targetingId: service.targetingId, saveTo: join(folder, "all.csv") })),
  );
  console.log(`${requests} requests for the lists`);
  const searched = { ours: median(searches), bare: median(bareLists) };
  console.log(`search ${searched.ours.toFixed(0)} ms, bare loop ${searched.bare.toFixed(0)} ms`);
  console.log(`scan ${first.toFixed(0)} ms, again ${second.toFixed(0)} ms, export ${exported.toFixed(0)} ms`);
  console.log(`bare loop with Context IDs ${bareContents.toFixed(0)} ms`);
  const ratio = (ours: number, bare: number): string => (ours / bare).toFixed(2);
  console.log(`search, beside a bare loop 16 at a time: ${ratio(searched.ours, searched.bare)} (at most 1.5)`);
  console.log(`scan for Context IDs, beside a bare loop: ${ratio(first, bareContents)} (at most 1.5)`);
  console.log(`export, beside a bare loop: ${ratio(exported, bareContents)} (at most 1.5)`);
  console.log(`second scan, beside the first: ${ratio(second, first)} (at most 0.2)`);
  return peak;
}

const services: Service[] = [];
try {
  const small = await startService(SMALL);
  services.push(small);
  const tenth = await withServer(small, async (server) => {
    await scan(server, small);
    await scan(server, small);
    return peakOf(server);
  });
  const large = await startService(LARGE);
  services.push(large);
  const peak = await measure(large);
  if (peak !== undefined && tenth !== undefined) {
    const more = (peak - tenth).toFixed(0);
    console.log(`memory of a scan of 9,200 options, beside one of 920: ${more} MB more (at most 40)`);
  }
} finally {
  for (const { child } of services) child.kill();
}
