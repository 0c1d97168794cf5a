import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  call,
  isLong,
  type Replica,
  restOf,
  runOf,
  startReplica,
  startService,
  startWorker,
  withPostgres,
} from "./cluster.ts";
import { openServiceGate } from "./service-gate.ts";

/**
 * The size of the body that is being sent when its process is suspended. It must be larger than the buffers of the
 * system. Smaller bodies are tested in pauses.test.ts.
 */
const BODY = Number(process.env.TARGETING_MCP_TEST_BODY ?? 8_000_000);
/** 1 Mbit/s. */
const BYTES_PER_SECOND = 125_000;
/**
 * How many bytes of the body are still missing when the process is suspended. To send them takes longer than any lease
 * lasts. If they were in the system's buffers, they would arrive after the next holder's first write.
 */
const LEFT = 2_800_000;
/** Longer than a lease lasts, plus the time after which another process takes the run. */
const STOPPED_MS = { store: 13_000, files: 17_000 };
const CONTEXT_IDS = 10_000;

const cluster = withPostgres();

/** Returns the items of a single request whose body has this many bytes. */
function largeItems(bytes: number) {
  // A control character has one byte in a Context ID and six in JSON, so a body can be large with few Context IDs.
  const each = Math.floor(bytes / CONTEXT_IDS) - 16;
  const text = "\u0001".repeat(Math.floor(each / 6));
  return Array.from({ length: 40 }, (_, option) => ({
    name: `Large ${option}`,
    contexts: Array.from({ length: CONTEXT_IDS / 40 }, (_, id) => `${option}-${id}${text}-`),
  }));
}

const listed = z.looseObject({ runs: z.array(z.looseObject({ runId: z.string() })) });

/** Two processes that write to the same project, and their addresses. */
interface Pair {
  readonly first: { readonly number: number; readonly signal: (signal: NodeJS.Signals) => void };
  readonly callFirst: Replica["url"];
  readonly callOther: Replica["url"];
}

async function upload(kind: "store" | "files", start: (settings: Record<string, string>, at: Gate) => Promise<Pair>) {
  const service = await startService();
  let arrivedAt = (_from: number, _arrived: number, _total: number): void => {};
  const gate = await openServiceGate(service.url, {
    onBytes: (from, arrived, total) => arrivedAt(from, arrived, total),
  });
  cluster.closing.push(gate.close, service.close);
  const pair = await start(
    {
      TARGETING_MCP_MODE: "live",
      TARGETING_API_URL: gate.url,
      TARGETING_API_KEY: "sandbox-key",
      TARGETING_MCP_WAIT_MS: "1500",
      TARGETING_MCP_REQUEST_TIMEOUT_MS: "180000",
    },
    gate,
  );
  const targetingId = await service.targeting("Large");
  const { first, callFirst, callOther } = pair;
  gate.slowTo(first.number, BYTES_PER_SECOND);
  const stopped = new Promise<number>((resolve) => {
    arrivedAt = (from, arrived, total) => {
      if (from !== first.number || total < BODY / 2 || total - arrived > LEFT) return;
      arrivedAt = () => {};
      first.signal("SIGSTOP");
      resolve(total);
    };
  });
  // The process may be suspended before it has answered.
  const calling = call(callFirst, "bulk_add_options", { targetingId, items: largeItems(BODY) });
  const bytes = await stopped;
  const [large] = listed.parse((await call(callOther, "get_run", {})).structuredContent).runs;
  const small = { targetingId, items: [{ name: "Small", contexts: ["small"] }] };
  const before = Date.now();
  const theirs = await runOf(callOther, "bulk_add_options", small);
  await delay(STOPPED_MS[kind] - (Date.now() - before));
  const byOthers = gate.writes.filter(({ from }) => from !== first.number).length;
  // If the system still had parts of the body, they would arrive within this time.
  await delay((1100 * LEFT) / BYTES_PER_SECOND - STOPPED_MS[kind]);
  const late = gate.writes.filter(({ from }) => from === first.number).length;
  gate.slowTo(first.number, undefined);
  first.signal("SIGCONT");
  await calling;
  const told = [await restOf(callOther, theirs.runId), await restOf(callOther, large?.runId ?? "")];
  process.stdout.write(`${kind}: a body of ${bytes} bytes was stopped; ${late} late, ${byOthers} writes of the next\n`);
  expect({ late, overlaps: gate.overlaps }).toEqual({ late: 0, overlaps: [] });
  expect(byOthers).toBeGreaterThan(0);
  expect(told.map(({ status }) => status)).toEqual(["succeeded", "succeeded"]);
  const names = [...largeItems(BODY).map(({ name }) => name), "Small"].sort();
  expect([...(await service.options(targetingId))].sort()).toEqual(names);
}

type Gate = Awaited<ReturnType<typeof openServiceGate>>;

test.runIf(isLong)(
  "a process of the store that stops in the middle of a slow upload sends nothing of its rest",
  async () => {
    await upload("store", async (settings, gate) => {
      const its = { ...settings, TARGETING_MCP_STORE: await cluster.postgres.database() };
      const replica = await startReplica({ ...its, TARGETING_MCP_DRIVE: "off" });
      const worker = await startWorker({ ...its, ...(await gate.routesOf(1)) });
      cluster.closing.push(() => worker.child.kill("SIGKILL"));
      return {
        first: {
          number: 1,
          signal: (signal) => {
            worker.child.kill(signal);
            // Now another process exists that takes the run.
            if (signal === "SIGSTOP") void gate.routesOf(2).then((routes) => startWorker({ ...its, ...routes }));
          },
        },
        callFirst: replica.url,
        callOther: replica.url,
      };
    });
  },
);

test.runIf(isLong)(
  "a process over files that stops in the middle of a slow upload sends nothing of its rest",
  async () => {
    await upload("files", async (settings, gate) => {
      const its = { ...settings, TARGETING_MCP_STATE_DIR: mkdtempSync(join(tmpdir(), "targeting-mcp-fence-")) };
      const [one, other] = [
        await startReplica({ ...its, ...(await gate.routesOf(1)) }),
        await startReplica({ ...its, ...(await gate.routesOf(2)) }),
      ];
      const signal = (given: NodeJS.Signals): void => void one.child.kill(given);
      return { first: { number: 1, signal }, callFirst: one.url, callOther: other.url };
    });
  },
);
