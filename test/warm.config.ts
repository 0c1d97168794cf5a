import { defineConfig } from "vitest/config";
import { fastTests, testsThatReplaceModules } from "../scripts/fast-tests.ts";
import { PATIENT } from "../vitest.config.ts";

/**
 * For tests of the built command that have a command of their own, because together they take long. Their folders are
 * given as arguments: `vitest run --config test/warm.config.ts test/undo/`.
 */
export default defineConfig({
  test: {
    ...PATIENT,
    globalSetup: ["test/support/setup.ts"],
    env: { TEST_PROCESSES: "warm" },
    include: ["test/**/*.test.ts"],
    exclude: [...fastTests(), ...testsThatReplaceModules()],
    isolate: false,
  },
});
