import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

const FOLDER = join(import.meta.dirname, "requests");

/** An option; with `children`, a group. Names and Context IDs may have counted parts (see `counted`). */
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
  /** What the data of the answer must contain. Where the answer has a list, a number is the list's length. */
  gives: z.record(z.string(), z.unknown()).default({}),
  isError: z.boolean().default(false),
  /** Whether the call is repeated with each next cursor until the end of the list. */
  toEnd: z.boolean().default(false),
});

/**
 * A person's request, the calls that an agent made for it, and the data before and after. In arguments, `{id:Name}`
 * means the ID of a targeting or option, `{token}` the last confirmation, `{suite}` the last suite, and `{files}` the
 * folder of the files. `{run:2}` means the run of the second call, `{run:0}` that of the call before this one, and
 * `{run:-1}` that of the call before that.
 */
const recorded = z.strictObject({
  name: z.string(),
  request: z.string(),
  world: z.strictObject({
    targetings: z.record(z.string(), z.array(option)).default({}),
    /** The targetings that the server has not read before. */
    unseen: z.array(z.string()).default([]),
    files: z.record(z.string(), z.array(z.string())).default({}),
    events: z.array(z.record(z.string(), z.unknown())).default([]),
    faults: z.array(z.record(z.string(), z.unknown())).default([]),
  }),
  /** Whether the client can ask the person, who then approves; otherwise, calls are confirmed with tokens. */
  canAsk: z.boolean().default(true),
  /** The calls of an earlier session. */
  before: z.array(call).default([]),
  calls: z.array(call).min(1),
  /** If set: how many Context IDs each option of each targeting must have at the end, by `group/option`. */
  holds: z.record(z.string(), z.record(z.string(), z.int())).optional(),
  /** How many events with each name and verdict must have arrived at the end, such as `purchase recorded`. */
  arrived: z.record(z.string(), z.int()).default({}),
});
export type Recorded = z.output<typeof recorded>;
export type RecordedCall = Recorded["calls"][number];
export type RecordedWorld = Recorded["world"];
export type { RecordedOption };

/** All recorded requests, from all files of the folder. */
export const RECORDED: readonly Recorded[] = readdirSync(FOLDER)
  .sort()
  .flatMap((file) => z.array(recorded).parse(JSON.parse(readFileSync(join(FOLDER, file), "utf8"))));

const COUNTED = /\{(\d+)\.\.(\d+)\}/g;

/** Returns the texts for a text with counted parts: `a{01..03}-{7..9}` gives `a01-7`, `a02-8` and `a03-9`. */
export function counted(text: string): readonly string[] {
  const [first] = text.matchAll(COUNTED);
  if (first === undefined) return [text];
  const count = Number(first[2]) - Number(first[1]) + 1;
  return Array.from({ length: count }, (_, at) =>
    text.replace(COUNTED, (_part, from: string) => String(Number(from) + at).padStart(from.length, "0")),
  );
}
