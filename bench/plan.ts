// Compares planning a file of 50,000 options with a bare loop that reads them with the fewest requests, 16 at a time.
// The service answers after 30 ms. It has 500 groups of 20 sub-options, and 39,500 options. Measures three cases: a
// file without changes, when nothing was read before; a new process that plans a file which another process has
// exported; and a file with 100 changes, for which the requests are counted. Prints ratios of one run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import {
  bareLoop,
  callTool,
  inFolder,
  peakOf,
  type Service,
  settingsOf,
  startService,
  timed,
  withServerIn,
} from "./large-targeting.ts";
import { PROGRAMS } from "./server-process.ts";

const LARGE = { groups: 500, children: 20, plain: 39_500 } as const;
const OPTIONS = 50_000;
const CHANGED = 100;
/** The fewest requests that could make all changes: one request can hold them all. */
const FEWEST = 1;

const planned = z.looseObject({
  runId: z.string(),
  status: z.literal("planned"),
  counts: z.object({ items: z.number() }),
});
const row = z.looseObject({ name: z.string(), contexts: z.array(z.string()) });

/** Exports the targeting with the command, in its own process, with its state in a folder. */
async function exportTo(folder: string, file: string, { url, targetingId }: Service): Promise<void> {
  const env = { PATH: process.env.PATH, ...settingsOf(folder, url) };
  const args = [PROGRAMS.ours, "export", targetingId, "--to", file];
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`export ended with ${code}`);
}

/** Changes some rows of a file: they alternately get a Context ID and another name. */
async function edit(path: string): Promise<void> {
  const [head, ...rows] = (await readFile(path, "utf8")).trimEnd().split("\n");
  if (rows.length !== OPTIONS) throw new Error(`the file has ${rows.length} rows`);
  const step = OPTIONS / CHANGED;
  const edited = rows.map((text, at) => {
    // Changes one row in 500. None of these is a group, because each group is the first of a hundred rows.
    if (at % step !== step / 2 - 10) return text;
    const { name, contexts, ...rest } = row.parse(JSON.parse(text));
    const isNamed = Math.floor(at / step) % 2 === 0;
    return JSON.stringify({
      ...rest,
      name: isNamed ? `${name} new` : name,
      contexts: isNamed ? contexts : [...contexts, "added"],
    });
  });
  await writeFile(path, `${[head, ...edited].join("\n")}\n`);
}

/** Plans a file in a new process. Returns the duration, the peak memory and the plan. */
function plan(folder: string, file: string, service: Service, items: number) {
  return withServerIn(folder, service, async (server) => {
    await server.ask("tools/list");
    let answer: unknown;
    const ms = await timed(async () => {
      answer = await callTool(server, "plan_targeting", { file });
    });
    const { runId, counts } = planned.parse(answer);
    if (counts.items !== items) throw new Error(`${counts.items} options would change instead of ${items}`);
    return { ms, runId, peak: await peakOf(server) };
  });
}

async function writesTo({ url }: Service): Promise<number> {
  return z.number().parse(await (await fetch(`${url}/writes`)).json());
}

const service = await startService(LARGE);
try {
  const bare = await timed(() => bareLoop(service, true));
  console.log(`bare loop ${bare.toFixed(0)} ms`);
  await inFolder(async (folder) => {
    const what = "a plan of 50,000 options";
    const file = join(folder, "large.ndjson");
    const exported = await timed(() => exportTo(folder, file, service));
    const seen = await plan(folder, file, service, 0);
    const first = await inFolder(async (empty) => {
      const copy = join(empty, "large.ndjson");
      await writeFile(copy, await readFile(file));
      await writeFile(join(empty, "large.base.ndjson"), await readFile(join(folder, "large.base.ndjson")));
      return plan(empty, copy, service, 0);
    });
    console.log(
      `export ${exported.toFixed(0)} ms, plan ${first.ms.toFixed(0)} ms, seen before ${seen.ms.toFixed(0)} ms`,
    );
    const ratio = (first.ms / bare).toFixed(2);
    console.log(`${what} of which nothing changed, compared with a bare loop that reads them: ${ratio} (at most 1.5)`);
    console.log(`${what} that were read before, compared with that loop: ${(seen.ms / bare).toFixed(2)} (at most 0.2)`);
    await edit(file);
    const changing = await plan(folder, file, service, CHANGED);
    const applied = await timed(() =>
      withServerIn(folder, service, (server) => callTool(server, "apply_plan", { runId: changing.runId })),
    );
    console.log(`plan of ${CHANGED} changes ${changing.ms.toFixed(0)} ms, applied in ${applied.toFixed(0)} ms`);
    const peaks = [first.peak, seen.peak, changing.peak].flatMap((peak) => peak ?? []);
    if (peaks.length > 0) console.log(`${what}, memory at its peak: ${Math.max(...peaks).toFixed(0)} MB (at most 300)`);
    console.log(`requests that change ${CHANGED} of them: ${await writesTo(service)} (at most ${FEWEST + 1})`);
  });
} finally {
  service.child.kill();
}
