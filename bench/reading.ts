// Compares searching, scanning and exporting a large targeting with a bare loop that makes the fewest requests, 16 at a
// time. The service answers each read after 30 ms. It has 200 groups of 20 sub-options, and 5,000 options. The second
// scan uses what the first one stored. Also compares the peak memory of a server that scans everything with that of one
// that scans a tenth. Prints ratios of one run.
import { join } from "node:path";
import {
  bareLoop,
  callTool,
  inFolder,
  peakOf,
  type Service,
  startService,
  timed,
  withServerIn,
} from "./large-targeting.ts";
import { median, type ServerProcess } from "./server-process.ts";

const LARGE = { groups: 200, children: 20, plain: 5000 } as const;
const SMALL = { groups: 20, children: 20, plain: 500 } as const;
const ROUNDS = 9;

/** Calls `work` with a server that has an empty state folder. */
function withServer<T>(service: Service, work: (server: ServerProcess, folder: string) => Promise<T>): Promise<T> {
  return inFolder((folder) => withServerIn(folder, service, (server) => work(server, folder)));
}

function listOptions(server: ServerProcess, args: object): Promise<Readonly<Record<string, unknown>>> {
  return callTool(server, "list_options", args);
}

/** Searches for the very last option, so that all options are read. */
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
  console.log(
    `search, compared with a bare loop with 16 requests at a time: ${ratio(searched.ours, searched.bare)} (at most 1.5)`,
  );
  console.log(`scan for Context IDs, compared with a bare loop: ${ratio(first, bareContents)} (at most 1.5)`);
  console.log(`export, compared with a bare loop: ${ratio(exported, bareContents)} (at most 1.5)`);
  console.log(`second scan, compared with the first: ${ratio(second, first)} (at most 0.2)`);
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
    console.log(`memory of a scan of 9,200 options, compared with one of 920: ${more} MB more (at most 40)`);
  }
} finally {
  for (const { child } of services) child.kill();
}
