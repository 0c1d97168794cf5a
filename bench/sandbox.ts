// Measures whether adding options and reading pages become slower in the sandbox as a targeting grows. Prints times and
// ratios.
import { startSandbox } from "../src/sandbox/index.ts";
import { median } from "./server-process.ts";

const BATCH = 5000;
const TARGETING_SIZE = 100_000;
const ROUNDS = 3;
const ROUTE = "/context-targeting";

/** Runs the measurements once, against a new sandbox over HTTP. All times are in milliseconds. */
async function measure() {
  const sandbox = await startSandbox();
  const call = async (method: string, path: string, body?: unknown): Promise<string> => {
    const response = await fetch(sandbox.url + path, {
      method,
      headers: { "x-api-key": "sandbox-key" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 200)}`);
    return text;
  };
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const start = performance.now();
    await work();
    return performance.now() - start;
  };
  const targetingNamed = async (name: string): Promise<string> =>
    /"_id":"(\w+)"/.exec(await call("POST", ROUTE, { name }))?.[1] ?? "";
  const addBatch = (targeting: string, from: number) => {
    const items = Array.from({ length: BATCH }, (_, index) => ({ targeting, name: `option ${from + index}` }));
    return timed(() => call("POST", `${ROUTE}/category/bulk/create`, { items }));
  };

  // The first batches of a process would measure the compiler, not the sandbox.
  const warmUp = await targetingNamed("Warm-up");
  for (let from = 0; from < 8 * BATCH; from += BATCH) await addBatch(warmUp, from);

  const targeting = await targetingNamed("News");
  const adds: number[] = [];
  for (let from = 0; from < TARGETING_SIZE; from += BATCH) adds.push(await addBatch(targeting, from));
  const page = (offset: number) =>
    timed(() => call("GET", `${ROUTE}/${targeting}/category?limit=1000&offset=${offset}`));
  const firstPages: number[] = [];
  const lastPages: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    firstPages.push(await page(0));
    lastPages.push(await page(TARGETING_SIZE - 1000));
  }
  await sandbox.close();
  return {
    firstAdd: adds[0] ?? 0,
    lastAdd: adds.at(-1) ?? 0,
    firstPage: median(firstPages),
    lastPage: median(lastPages),
  };
}

const rounds: Awaited<ReturnType<typeof measure>>[] = [];
for (let round = 0; round < ROUNDS; round += 1) rounds.push(await measure());
const report = (what: string, times: readonly (readonly [number, number])[], most: number) => {
  const [base, grown] = [median(times.map(([first]) => first)), median(times.map(([, last]) => last))];
  const ratio = median(times.map(([first, last]) => last / first));
  console.log(`${base.toFixed(1)} ms and ${grown.toFixed(1)} ms`);
  console.log(`sandbox, ${what}: ${ratio.toFixed(2)} (at most ${most})`);
};
report(
  "5,000 options added to 95,000, compared with the first 5,000",
  rounds.map((r) => [r.firstAdd, r.lastAdd]),
  1.5,
);
report(
  "last page of 100,000 options, compared with the first",
  rounds.map((r) => [r.firstPage, r.lastPage]),
  2,
);
