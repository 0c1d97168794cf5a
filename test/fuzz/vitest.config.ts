import { randomInt } from "node:crypto";
import { defineConfig } from "vitest/config";

/**
 * The long run: more than 20,000 inputs, another seed each time unless FUZZ_SEED gives one. The quick one, with a fixed
 * seed, is a part of all tests.
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
