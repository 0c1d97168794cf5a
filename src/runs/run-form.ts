import type * as z from "zod";

/** What the runs of a store are like: how their calls and the entries of their journals are read back. */
export interface RunForm<Call, Entry> {
  readonly call: z.ZodType<Call>;
  readonly entry: z.ZodType<Entry>;
  /** An entry as a line of a journal, in pieces. */
  readonly line: (entry: Entry) => readonly (string | Uint8Array)[];
}
