import * as z from "zod";

/** An entry of a journal as its kind writes it: JSON without a line break, in pieces. */
export type Line = readonly (string | Uint8Array)[];

/** Headers and journals of this form are read; those of a newer version of the server are left alone. */
export const VERSION = 1;

/** The header of a run as every store keeps it: all that is needed to finish it without its caller. */
export const keptHeader = z.object({
  version: z.number(),
  runId: z.string(),
  /** The name of its kind. Versions before wrote none: then the tool of the call says it. */
  kind: z.string().exactOptional(),
  call: z.unknown(),
  /** The project behind the key: what the write lock is held for. */
  project: z.string(),
  /** Who made the call; only they see the run. */
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  /** The address of the sandbox that it works on; `embedded` for one inside its process. Versions before wrote none. */
  sandbox: z.string().exactOptional(),
  /** Milliseconds since 1970. */
  createdAt: z.number(),
  /** The same for the same call of the same caller. */
  fingerprint: z.string(),
  /** Its call had answered before it was planned, so that no person was asked to confirm it yet. */
  unplanned: z.literal(true).exactOptional(),
  /** It was made by a dry run: a plan that `apply_plan` applies, removed after a day, or for a newer dry run. */
  dryRun: z.literal(true).exactOptional(),
});

/** The summary of a run as every store keeps it. */
export const keptSummary = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  /** Versions before wrote `unattempted` for `notApplied`. */
  counts: z
    .record(z.string(), z.number())
    .transform(({ unattempted, ...counts }) =>
      unattempted === undefined ? counts : { ...counts, notApplied: unattempted },
    ),
  /** The one targeting that it changes, where that is known. */
  targetingId: z.string().exactOptional(),
  startedAt: z.number(),
  updatedAt: z.number(),
  /** Whether `resume_run` could continue the run. */
  open: z.boolean(),
  /** How long its journal was, in bytes: one that is shorter by now is damaged. Versions before wrote none. */
  journalBytes: z.number().exactOptional(),
  /** What is kept of the run is damaged; found when it is read, and not written. */
  isDamaged: z.literal(true).exactOptional(),
});

/** The header that was kept as this; undefined where it is damaged. */
export function headerIn(value: unknown) {
  const { data } = keptHeader.safeParse(value);
  if (data === undefined) return undefined;
  const { version: _, ...header } = data;
  return header;
}

/** Whether a text has the form of a run's ID. Only such names are looked up, so that no path leads out of a folder. */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/**
 * Whether a run that came to rest like this is not finished: a later call may go on with it, or ask what it came to.
 */
export function isUnfinished({ open, status, counts }: z.infer<typeof keptSummary>): boolean {
  // One that was interrupted before it was planned has nothing open, and is not done either. What is unknown can be
  // asked about by the same call, also where it cannot be resumed.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}

/** The number of groups in which calls take turns: calls of one group wait for each other. */
const GROUPS = 64;

/** The group of calls that a call takes turns with. */
export function groupOf(fingerprint: string): string {
  return String([...fingerprint].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % GROUPS);
}

/** An entry as bytes, with its line break. */
export function lineBytes(line: Line): Uint8Array[] {
  return [...line.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)), NEWLINE];
}

const NEWLINE = Buffer.from("\n");

/** Entries one after the other, each with its line break. */
export function* inLines(lines: Iterable<Line>): Generator<string | Uint8Array> {
  for (const line of lines) {
    yield* line;
    yield "\n";
  }
}
