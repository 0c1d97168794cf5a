import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { fastTests, testsThatReplaceModules } from "../../scripts/fast-tests.ts";

/**
 * `npm run test:servers`: the tests that start a server or a command with settings of their own for each case, which
 * takes long: HTTP, log-ins, damaged state folders, commands in a terminal, random inputs.
 */
export default defineConfig({
  test: {
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: Math.max(3, availableParallelism() + 1),
    globalSetup: ["test/support/setup.ts"],
    env: { TEST_PROCESSES: "warm" },
    include: ["servers", "commands", "fuzz"].map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [...fastTests(), ...testsThatReplaceModules()],
    isolate: false,
  },
});
