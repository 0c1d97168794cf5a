import { readFile } from "node:fs/promises";
import * as z from "zod";
import { ulidSource } from "../spec/ulid.ts";
import { sampleSeed } from "./sample.ts";
import { type Seed, seedSchema } from "./seed.ts";

/** What a sandbox holds at its start: nothing, the sample data, or what a file in the form of a seed holds. */
export type SeedChoice = "none" | "sample" | { readonly file: string };

/** A seed that cannot be read or used; the message names the file. */
export class SeedError extends Error {}

/**
 * Reads a seed; undefined where there is none. Every targeting of it has an `_id`, so that its names can be told before
 * it is planted. Throws a SeedError where the file cannot be read, or is not in the form of a seed (docs/reference/sandbox.md).
 */
export async function readSeed(choice: SeedChoice, now: number = Date.now()): Promise<Seed | undefined> {
  if (choice === "none") return undefined;
  const newId = ulidSource(() => now, Math.random);
  if (choice === "sample") return seedSchema.parse(sampleSeed(newId, now));
  const { file } = choice;
  const result = seedSchema.safeParse(await contentOf(file));
  if (!result.success) throw new SeedError(`${file} is no seed of a sandbox: ${z.prettifyError(result.error)}`);
  const seed = result.data;
  return { ...seed, targetings: seed.targetings.map(({ _id = newId(), name }) => ({ _id, name })) };
}

async function contentOf(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new SeedError(`${file} cannot be read as a seed of a sandbox: ${why}`, { cause: thrown });
  }
}
