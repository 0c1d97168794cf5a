import { createHash } from "node:crypto";
import type { SuiteFormat } from "./emit.ts";
import type { SuiteReport } from "./run-suite.ts";
import type { EventSuite } from "./suite.ts";

/** A suite that is kept, and the form in which its caller wants it. */
export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  /** What its last run gave, where it was run. */
  readonly report?: SuiteReport;
}

/** Where suites are kept; each is seen only by the caller who made it. */
export interface SuiteStore {
  /** Keeps a suite; the same one in the same form has the same ID. */
  keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite>;
  /** Keeps what a run of a suite gave, in place of its last report. */
  keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<void>;
  /** Runs once for each yes of a person: called again with the same one, it gives what the first call gave. */
  runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport>;
  /** Whether something was run for a yes. */
  wasRun(yes: string): Promise<boolean>;
  /** A suite by its ID; undefined where there is none, or no longer. */
  find(caller: string, suiteId: string): Promise<KeptSuite | undefined>;
  /** The caller's suites, the newest first. */
  list(caller: string): Promise<readonly KeptSuite[]>;
}

/** How many suites are kept, and how many letters of JSON they may have in all. */
const MOST_SUITES = 100;
const MOST_LETTERS = 64 * 1_048_576;
const MOST_RUNS = 1000;

interface Entry {
  readonly caller: string;
  readonly kept: KeptSuite;
  readonly letters: number;
}

/** Keeps suites for as long as the process lives, and forgets the oldest for room. */
export function memorySuiteStore(): SuiteStore {
  const entries = new Map<string, Entry>();
  const runs = new Map<string, Promise<SuiteReport>>();
  const keyOf = (caller: string, suiteId: string) => JSON.stringify([caller, suiteId]);
  let letters = 0;

  function put(entry: Entry): void {
    const key = keyOf(entry.caller, entry.kept.suiteId);
    remove(key);
    entries.set(key, entry);
    letters += entry.letters;
    for (const oldest of entries.keys()) {
      if (oldest === key || (entries.size <= MOST_SUITES && letters <= MOST_LETTERS)) return;
      remove(oldest);
    }
  }

  function remove(key: string): void {
    letters -= entries.get(key)?.letters ?? 0;
    entries.delete(key);
  }

  return {
    async keep(caller, suite, format) {
      const text = JSON.stringify([format, suite]);
      const suiteId = createHash("sha256").update(text).digest("hex").slice(0, 16);
      const known = entries.get(keyOf(caller, suiteId))?.kept;
      const kept = known ?? { suiteId, suite, format };
      put({ caller, kept, letters: text.length });
      return kept;
    },
    async keepReport(caller, kept, report) {
      const { letters: size } = entries.get(keyOf(caller, kept.suiteId)) ?? { letters: 0 };
      put({ caller, kept: { ...kept, report }, letters: size });
    },
    async runOnce(yes, run) {
      const running = runs.get(yes) ?? run();
      runs.set(yes, running);
      const [oldest] = runs.keys();
      if (runs.size > MOST_RUNS && oldest !== undefined) runs.delete(oldest);
      return running;
    },
    wasRun: async (yes) => runs.has(yes),
    find: async (caller, suiteId) => entries.get(keyOf(caller, suiteId))?.kept,
    list: async (caller) =>
      [...entries.values()]
        .filter((entry) => entry.caller === caller)
        .map(({ kept }) => kept)
        .reverse(),
  };
}
