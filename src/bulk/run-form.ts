import type * as z from "zod";
import { type WriteCall, writeCall } from "./call.ts";
import { journalEntry } from "./journal-format.ts";
import type { JournalEntry } from "./work.ts";

/** What the runs of a store are like: how their calls and the entries of their journals are read back. */
export interface RunForm<Call, Entry> {
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** An entry as lines of a journal. */
  readonly lines: (entry: Entry) => readonly (string | Uint8Array)[];
}

/** Runs that change targetings and options. */
export const WRITE_FORM: RunForm<WriteCall, JournalEntry> = {
  call: writeCall,
  entry: journalEntry,
  lines(entry) {
    if (entry.t !== "rows" || !(entry.items instanceof Uint8Array)) return [JSON.stringify(entry)];
    // The items are JSON already.
    const { items, ...rest } = entry;
    const start = Buffer.from(`${JSON.stringify(rest).slice(0, -1)},"items":`);
    return [Buffer.concat([start, items, Buffer.from("}")])];
  },
};
