import { randomUUID } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";
import { hasCode, moveOver } from "../../platform/files.ts";
import {
  MOST_REMEMBERED,
  type NamesOptions,
  namedAmong,
  type SeenTargeting,
  type TargetingMemory,
} from "../backend.ts";

/** Where and how a memory is kept. */
interface MemoryOptions extends Pick<NamesOptions, "known" | "onProblem"> {
  /** Undefined: for this process only, as fits a sandbox that ends with it. */
  readonly file?: string | undefined;
  readonly now: () => number;
}

/** Unknown fields are allowed, since a later version may have added some. */
const memoryFile = z.object({
  targetings: z.array(z.object({ _id: z.string(), name: z.string(), seenAt: z.number() })),
});

/** Opens a memory; nothing is read or written before it is used. Several processes may share a file. */
export function targetingMemory(options: MemoryOptions): TargetingMemory {
  let known: ReadonlyMap<string, SeenTargeting> = new Map();
  let turn: Promise<unknown> = Promise.resolve();
  let beginning: Promise<void> | undefined;

  const begin = async (): Promise<void> => {
    const first = await options.known?.().catch(options.onProblem);
    // All at one time, so that they stay in their order.
    const seenAt = options.now();
    known = new Map(first?.map(({ _id, name }) => [_id, { _id, name, seenAt }]));
  };
  const load = async () => {
    beginning ??= begin();
    await beginning;
    const stored = await readMemory(options);
    if (stored !== undefined) known = new Map(stored.map((one) => [one._id, one]));
    return known;
  };
  /** Changes follow each other, and each begins with the content that the file has by then. */
  const change = (apply: (targetings: Map<string, SeenTargeting>) => void): Promise<void> => {
    const done = turn.then(async () => {
      const next = new Map(await load());
      apply(next);
      known = newest(next);
      await writeMemory(options, [...known.values()]);
    });
    turn = done;
    return done;
  };
  const recent = async () => {
    await turn;
    return [...(await load()).values()].sort((one, other) => other.seenAt - one.seenAt);
  };

  return {
    recent,
    remember: (targetings) =>
      change((next) => {
        const seenAt = options.now();
        for (const { _id, name } of targetings) next.set(_id, { _id, name, seenAt });
      }),
    forget: (ids) =>
      change((next) => {
        for (const id of ids) next.delete(id);
      }),
    resolve: async (name) => namedAmong(await recent(), name),
  };
}

function newest(targetings: ReadonlyMap<string, SeenTargeting>): ReadonlyMap<string, SeenTargeting> {
  if (targetings.size <= MOST_REMEMBERED) return targetings;
  const kept = [...targetings.values()].sort((one, other) => other.seenAt - one.seenAt).slice(0, MOST_REMEMBERED);
  return new Map(kept.map((one) => [one._id, one]));
}

/** The file's targetings; undefined where there is none to read. A damaged file counts as empty. */
async function readMemory({ file, onProblem }: MemoryOptions): Promise<readonly SeenTargeting[] | undefined> {
  if (file === undefined) return undefined;
  try {
    return memoryFile.parse(JSON.parse(await readFile(file, "utf8"))).targetings;
  } catch (problem) {
    if (!hasCode(problem, "ENOENT")) onProblem(problem);
    return undefined;
  }
}

/** Writes beside the file and moves it into place, so that no reader sees half of it. */
async function writeMemory({ file, onProblem }: MemoryOptions, targetings: readonly SeenTargeting[]): Promise<void> {
  if (file === undefined) return;
  const beside = `${file}.${randomUUID()}`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(beside, JSON.stringify({ targetings }), { mode: 0o600 });
    await moveOver(beside, file);
  } catch (problem) {
    onProblem(problem);
    await rm(beside, { force: true }).catch(onProblem);
  }
}
