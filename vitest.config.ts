import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { fastTests } from "./scripts/house/fast-tests.ts";

const fast = [...fastTests()];

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 15_000 } },
    // By default one core is left idle; tests wait for processes and pauses most of their time.
    maxWorkers: Math.max(2, availableParallelism()),
    projects: [
      { extends: true, test: { name: "fast", include: fast, isolate: false } },
      { extends: true, test: { name: "processes", include: ["test/**/*.test.ts"], exclude: [...fast, "test/cluster/**"] } },
    ],
  },
});
