import { createHash } from "node:crypto";
import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { SuiteTexts } from "../../runs/backend.ts";
import { RunStoreError } from "../../runs/store.ts";
import type { SUITE_FORMATS, SuiteFormat } from "./emit.ts";
import { type SuiteReport, suiteReport } from "./run-suite.ts";
import { type EventSuite, eventSuite } from "./suite.ts";

/** A suite that is kept, and the form in which its caller wants it. */
export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  /** What its last run gave, where it was run. */
  readonly report?: SuiteReport;
}

const plannedTests = z.object({ suiteId: z.string(), saveTo: z.string() });

/** Tests that wait for a person's yes: the suite, and the file for the report; empty where there is to be none. */
type PlannedTests = Readonly<z.output<typeof plannedTests>>;

/**
 * Where suites are kept; each is seen only by the caller who made it. Throws a RunStoreError where a file cannot be
 * used.
 */
export interface SuiteStore {
  /** Keeps a suite; the same one in the same form has the same ID. */
  keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite>;
  /** Keeps what a run of a suite gave, in place of its last report. */
  keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<void>;
  /**
   * Runs once for each yes of a person, whichever process is asked: called again with the same one, it gives what the
   * first call gave. Throws a RunStoreError where the first one has no report, or none yet.
   */
  runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport>;
  /** Whether something was run for a yes. */
  wasRun(yes: string): Promise<boolean>;
  /** Keeps tests that wait for a person's yes, which will be given as `yes`. */
  keepPlanned(caller: string, yes: string, planned: PlannedTests): Promise<void>;
  /** Tests that wait for a yes, or were run for it; undefined where there are none, or no longer. */
  planned(caller: string, yes: string): Promise<PlannedTests | undefined>;
  /** A suite by its ID; undefined where there is none, or no longer. */
  find(caller: string, suiteId: string): Promise<KeptSuite | undefined>;
  /** The caller's suites, the newest first. */
  list(caller: string): Promise<readonly KeptSuite[]>;
}

const keptSuite: z.ZodType<KeptSuite> = z.object({
  suiteId: z.string(),
  suite: eventSuite,
  format: z.enum(["json", "vitest", "playwright", "curl"] as const satisfies readonly (keyof typeof SUITE_FORMATS)[]),
  report: suiteReport.exactOptional(),
});

/** Tests that wait for a yes are kept beside the suites of a caller, by the hash of that yes. */
const plannedOf = (caller: string): string => `planned ${caller}`;

/** Keeps suites among texts that several processes may share. */
export function suiteStore(texts: SuiteTexts): SuiteStore {
  const find: SuiteStore["find"] = async (caller, suiteId) =>
    isSuiteId(suiteId) ? readAs(await texts.get(caller, suiteId), keptSuite) : undefined;
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
        const given = readAs(await texts.settled(yes), suiteReport);
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
    planned: async (caller, yes) => readAs(await texts.get(plannedOf(caller), hashOf(yes)), plannedTests),
    wasRun: async (yes) => (await texts.settled(yes)) !== undefined,
    list: async (caller) =>
      (await texts.list(caller)).map((text) => readAs(text, keptSuite)).filter((one) => one !== undefined),
  };
}

/** Only names that we make are ever looked up. */
function isSuiteId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What a text holds; undefined where there is none, or where it is empty or of another form. */
function readAs<T>(text: string | undefined, form: z.ZodType<T>): T | undefined {
  return text === undefined ? undefined : form.safeParse(parseJson(text)).data;
}
