import { expect, test } from "vitest";
import { withPostgres } from "../cluster.ts";
import { underChaos } from "./under-chaos.ts";

/** For how many milliseconds faults happen. */
const CHAOS_MS = Number(process.env.TARGETING_MCP_TEST_CHAOS_MS ?? 20_000);
/**
 * For how many milliseconds of another test processes are only suspended, with no other faults; 0: that test is
 * skipped.
 */
const PAUSES_MS = Number(process.env.TARGETING_MCP_TEST_PAUSES_MS ?? 0);
const SEED = Number(process.env.TARGETING_MCP_TEST_SEED ?? Date.now() % 1_000_000);
const NOTHING_WRONG = { wrong: [], late: [], overlaps: [] };

const cluster = withPostgres();

test("three replicas, two workers, and faults of everything: 0 lost, 0 doubled, 0 misreported, nothing beside another", async () => {
  const found = await underChaos(
    cluster.postgres,
    {
      seed: SEED,
      kinds: ["replica", "replica", "replica", "worker", "worker"],
      projects: 10,
      ms: CHAOS_MS,
      lanes: [["kill", "stop"], ["stop", "cut", "hang", "slow"], ["store"]],
      faults: [
        { kind: "slow", delayMs: 250, on: "write", probability: 0.5, seed: SEED },
        { kind: "reset", applied: true, on: "write", probability: 0.05, seed: SEED + 1 },
        { kind: "reset", on: "write", probability: 0.03, seed: SEED + 2 },
        { kind: "status", status: 503, on: "any", probability: 0.05, seed: SEED + 3 },
        { kind: "busy", retryAfterMs: 100, on: "write", probability: 0.05, seed: SEED + 4 },
      ],
    },
    cluster.closing,
  );
  expect(found).toMatchObject(NOTHING_WRONG);
});

test.runIf(PAUSES_MS > 0)(
  "workers that stand still again and again send nothing beside those that took over",
  async () => {
    const found = await underChaos(
      cluster.postgres,
      {
        seed: SEED,
        kinds: ["replica", "worker", "worker", "worker", "worker", "worker", "worker"],
        spared: "replica",
        projects: 10,
        ms: PAUSES_MS,
        lanes: [["stop"], ["stop"], ["stop"], ["stop"]],
        faults: [{ kind: "slow", delayMs: 200, on: "write", probability: 0.8, seed: SEED }],
        settings: { TARGETING_MCP_DRIVE: "off" },
      },
      cluster.closing,
    );
    expect(found).toMatchObject(NOTHING_WRONG);
  },
);
