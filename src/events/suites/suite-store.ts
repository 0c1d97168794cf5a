import { createHash } from "node:crypto";
import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { SuiteTexts } from "../../runs/backend.ts";
import { RunStoreError } from "../../runs/store.ts";
import type { SUITE_FORMATS, SuiteFormat } from "./emit.ts";
import { type SuiteReport, suiteReport } from "./run-suite.ts";
import { type EventSuite, eventSuite } from "./suite.ts";

/** A stored suite, and the format that its caller chose. */
export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  /** The report of its last run; absent if it was never run. */
  readonly report?: SuiteReport;
}

const plannedTests = z.object({ suiteId: z.string(), saveTo: z.string() });

/** Tests that wait for approval: the suite, and the file for the report; empty if none is to be saved. */
type PlannedTests = Readonly<z.output<typeof plannedTests>>;

/** The store of suites. Each is visible only to its creator. Throws a RunStoreError if a file cannot be used. */
export interface SuiteStore {
  /** Stores a suite. The same suite in the same format has the same ID. */
  keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite>;
  /** Stores the report of a run of a suite, and replaces the last one. */
  keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<void>;
  /**
   * Runs tests once per approval token, in any process; another call with it returns the first report. Throws a
   * RunStoreError if the first call has no report yet, or never will.
   */
  runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport>;
  /** Returns whether tests were run with an approval token. */
  wasRun(yes: string): Promise<boolean>;
  /** Stores tests that wait for approval. `yes` is the token that will approve them. */
  keepPlanned(caller: string, yes: string, planned: PlannedTests): Promise<void>;
  /** Returns tests that wait for approval, or were run with it; undefined if there are none, or no longer. */
  planned(caller: string, yes: string): Promise<PlannedTests | undefined>;
  /** Returns a suite by its ID; undefined if it does not exist, or no longer. */
  find(caller: string, suiteId: string): Promise<KeptSuite | undefined>;
  /** Returns the caller's suites, the newest first. */
  list(caller: string): Promise<readonly KeptSuite[]>;
}

const keptSuite: z.ZodType<KeptSuite> = z.object({
  suiteId: z.string(),
  suite: eventSuite,
  format: z.enum(["json", "vitest", "playwright", "curl"] as const satisfies readonly (keyof typeof SUITE_FORMATS)[]),
  report: suiteReport.exactOptional(),
});

/** Tests that wait for approval are stored next to the caller's suites, under the hash of their token. */
const plannedOf = (caller: string): string => `planned ${caller}`;

/** Creates a store of suites in texts that several processes may share. */
export function suiteStore(texts: SuiteTexts): SuiteStore {
  const find: SuiteStore["find"] = async (caller, suiteId) =>
    isSuiteId(suiteId) ? parseStored(await texts.get(caller, suiteId), keptSuite) : undefined;
  const put = (caller: string, kept: KeptSuite) => texts.put(caller, kept.suiteId, JSON.stringify(kept));
  return {
    find,
    async keep(caller, suite, format) {
      const suiteId = createHash("sha256")
        .update(JSON.stringify([format, suite]))
        .digest("hex")
        .slice(0, 16);
      const kept = (await find(caller, suiteId)) ?? { suiteId, suite, format };
      await put(caller, kept);
      return kept;
    },
    keepReport: (caller, kept, given) => put(caller, { ...kept, report: given }),
    async runOnce(yes, run) {
      if (!(await texts.claim(yes))) {
        const given = parseStored(await texts.settled(yes), suiteReport);
        if (given !== undefined) return given;
        throw new RunStoreError(
          "these tests were begun with this confirmation before, and there is no report of them yet; nothing was sent",
          "Call again later. If there is still none, plan the tests again without confirmation.",
        );
      }
      const given = await run();
      await texts.settle(yes, JSON.stringify(given));
      return given;
    },
    keepPlanned: (caller, yes, tests) => texts.put(plannedOf(caller), hashOf(yes), JSON.stringify(tests)),
    planned: async (caller, yes) => parseStored(await texts.get(plannedOf(caller), hashOf(yes)), plannedTests),
    wasRun: async (yes) => (await texts.settled(yes)) !== undefined,
    list: async (caller) =>
      (await texts.list(caller)).map((text) => parseStored(text, keptSuite)).filter((one) => one !== undefined),
  };
}

/** Returns whether a text has the form of the IDs that this store creates. No other text is looked up. */
function isSuiteId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function parseStored<T>(text: string | undefined, form: z.ZodType<T>): T | undefined {
  return text === undefined ? undefined : form.safeParse(parseJson(text)).data;
}
