import type { RunForm } from "../runs/run-form.ts";
import type { RunHeader, RunJournal, RunStore } from "../runs/store.ts";
import { type WriteCall, writeCall } from "./call.ts";
import type { JournalEntry } from "./rows/entries.ts";
import { journalEntry, journalLine } from "./state/entry-schema.ts";

/** What is known of a run of changes before it starts. */
export type ChangeHeader = RunHeader<WriteCall>;

/** The journal of a run of changes. */
export type ChangeJournal = RunJournal<JournalEntry>;

/** Where runs of changes are kept. */
export type ChangeStore = RunStore<WriteCall, JournalEntry>;

/** Runs that change targetings and options. */
export const WRITE_FORM: RunForm<WriteCall, JournalEntry> = {
  call: writeCall,
  entry: journalEntry,
  line: journalLine,
};
