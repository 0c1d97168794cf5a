import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { fastTests, testsThatReplaceModules } from "./scripts/fast-tests.ts";

/**
 * What takes long or needs other programs has a command of its own, which CI runs: deaths, clusters, power cuts, whole
 * servers.
 */
const OWN_COMMANDS = [
  ...["agents", "cluster", "commands", "durability", "fuzz", "kill", "load", "packaging", "pages", "programs"],
  "servers",
  "spreadsheets",
  "undo",
].map((folder) => `test/${folder}/**`);

const fast = [...fastTests()];
const replacing = [...testsThatReplaceModules()];

/** For all tests of the built command: how long a test may take, and how many run at a time. */
export const PATIENT = {
  // Only for what hangs: a machine that is busy with other work may take ten times as long as a quiet one.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 120_000 } },
  // One more than there are cores: tests wait for processes and pauses a good part of their time.
  maxWorkers: Math.max(3, availableParallelism() + 1),
};

export default defineConfig({
  test: {
    ...PATIENT,
    projects: [
      { extends: true, test: { name: "fast", include: fast, isolate: false } },
      { extends: true, test: { name: "replaced modules", include: replacing, exclude: ["test/load/**"] } },
      {
        extends: true,
        test: {
          name: "processes",
          globalSetup: ["test/support/setup.ts"],
          env: { TEST_PROCESSES: "warm" },
          include: ["test/**/*.test.ts"],
          exclude: [...fast, ...replacing, ...OWN_COMMANDS],
          isolate: false,
        },
      },
    ],
  },
});
