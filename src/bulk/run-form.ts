import type * as z from "zod";
import { type WriteCall, writeCall } from "./call.ts";
import { journalEntry } from "./journal-format.ts";
import type { JournalEntry } from "./work.ts";

/** What the runs of a store are like: how their calls and the entries of their journals are read back. */
export interface RunForm<Call, Entry> {
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** An entry as one or more that say the same, so that no line of a journal grows with the call. */
  readonly parts: (entry: Entry) => readonly Entry[];
}

/** Runs that change targetings and options. */
export const WRITE_FORM: RunForm<WriteCall, JournalEntry> = {
  call: writeCall,
  entry: journalEntry,
  parts(entry) {
    if (entry.t === "steps") return inLines(entry.steps).map((steps) => ({ t: "steps", steps }));
    if (entry.t === "objects") return inLines(entry.objects).map((objects) => ({ t: "objects", objects }));
    return [entry];
  },
};

const ENTRIES_PER_LINE = 500;

/** A list in pieces that fit a line. */
export function inLines<T>(list: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(list.length / ENTRIES_PER_LINE);
  return Array.from({ length: count }, (_, line) => list.slice(line * ENTRIES_PER_LINE, (line + 1) * ENTRIES_PER_LINE));
}
