import type * as z from "zod";
import { type WriteCall, writeCall } from "./call.ts";
import { journalEntry, journalLine } from "./journal-format.ts";
import type { JournalEntry } from "./work.ts";

/** What the runs of a store are like: how their calls and the entries of their journals are read back. */
export interface RunForm<Call, Entry> {
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** An entry as a line of a journal, in pieces. */
  readonly line: (entry: Entry) => readonly (string | Uint8Array)[];
}

/** Runs that change targetings and options. */
export const WRITE_FORM: RunForm<WriteCall, JournalEntry> = {
  call: writeCall,
  entry: journalEntry,
  line: journalLine,
};
