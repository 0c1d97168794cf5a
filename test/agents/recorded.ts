import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

const FOLDER = join(import.meta.dirname, "requests");

/** An option; with `children`, a group. Names and Context IDs may hold counted parts (see `counted`). */
interface RecordedOption {
  readonly name: string;
  readonly contexts?: readonly string[] | undefined;
  readonly children?: readonly RecordedOption[] | undefined;
}

const option: z.ZodType<RecordedOption> = z.lazy(() =>
  z.strictObject({
    name: z.string(),
    contexts: z.array(z.string()).optional(),
    children: z.array(option).optional(),
  }),
);

const call = z.strictObject({
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** What the answer must hold, as data; a number where the answer has a list is its length. */
  gives: z.record(z.string(), z.unknown()).default({}),
  isError: z.boolean().default(false),
  /** The call is made again with each next cursor, to the end of the list. */
  toEnd: z.boolean().default(false),
});

/**
 * A request of a person, the calls that an agent made for it, and what was there before and after. In arguments,
 * `{id:Name}` stands for the ID of a targeting or option, `{run:2}` for the run of the second call (0 is that of the
 * last call before, -1 of the one before that), `{token}` for the last confirmation, `{suite}` for the last suite, and `{files}` for the folder
 * of the files.
 */
const recorded = z.strictObject({
  name: z.string(),
  request: z.string(),
  world: z.strictObject({
    targetings: z.record(z.string(), z.array(option)).default({}),
    /** Targetings that the server has not seen before. */
    unseen: z.array(z.string()).default([]),
    files: z.record(z.string(), z.array(z.string())).default({}),
    events: z.array(z.record(z.string(), z.unknown())).default([]),
    faults: z.array(z.record(z.string(), z.unknown())).default([]),
  }),
  /** Whether the client can ask the person, who then agrees; else confirmations are tokens. */
  canAsk: z.boolean().default(true),
  /** Calls of an earlier session. */
  before: z.array(call).default([]),
  calls: z.array(call).min(1),
  /** What all targetings hold at the end, where that is told: how many Context IDs each option has, by `group/option`. */
  holds: z.record(z.string(), z.record(z.string(), z.int())).optional(),
  /** How many events of each name arrived by then, with their verdict: `purchase recorded`. */
  arrived: z.record(z.string(), z.int()).default({}),
});
export type Recorded = z.output<typeof recorded>;
export type RecordedCall = Recorded["calls"][number];
export type RecordedWorld = Recorded["world"];
export type { RecordedOption };

/** Every recorded request, of all files of the folder. */
export const RECORDED: readonly Recorded[] = readdirSync(FOLDER)
  .sort()
  .flatMap((file) => z.array(recorded).parse(JSON.parse(readFileSync(join(FOLDER, file), "utf8"))));

const COUNTED = /\{(\d+)\.\.(\d+)\}/g;

/** The texts that one with counted parts stands for: `a{01..03}-{7..9}` are `a01-7`, `a02-8` and `a03-9`. */
export function counted(text: string): readonly string[] {
  const [first] = text.matchAll(COUNTED);
  if (first === undefined) return [text];
  const count = Number(first[2]) - Number(first[1]) + 1;
  return Array.from({ length: count }, (_, at) =>
    text.replace(COUNTED, (_part, from: string) => String(Number(from) + at).padStart(from.length, "0")),
  );
}
