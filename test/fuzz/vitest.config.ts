import { randomInt } from "node:crypto";
import { defineConfig } from "vitest/config";

/**
 * The long run: more than 20,000 inputs, with a random seed unless FUZZ_SEED is set. The ordinary tests include a quick
 * run with a fixed seed.
 */
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

declare module "vitest" {
  export interface ProvidedContext {
    /** The seed, and how many times as many inputs as in the quick run. */
    readonly fuzz?: { readonly seed: number; readonly times: number };
  }
}

export default defineConfig({
  test: {
    include: ["test/fuzz/fuzz.test.ts"],
    testTimeout: 1_200_000,
    provide: { fuzz: { seed, times: 24 } },
  },
});
