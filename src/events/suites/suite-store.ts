import { createHash } from "node:crypto";
import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { SuiteTexts } from "../../runs/backend.ts";
import { RunStoreError } from "../../runs/store.ts";
import type { SUITE_FORMATS, SuiteFormat } from "./emit.ts";
import { type SuiteReport, suiteReport } from "./run-suite.ts";
import { type EventSuite, eventSuite } from "./suite.ts";

export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  readonly report?: SuiteReport;
}

const plannedTests = z.object({ suiteId: z.string(), saveTo: z.string() });

/** Tests that wait for approval. `saveTo` is the file for the report; "" for none. */
type PlannedTests = Readonly<z.output<typeof plannedTests>>;

/**
 * Stores suites. Each caller sees only their own. Throws a RunStoreError if a stored text cannot be read or written.
 */
export interface SuiteStore {
  /** Stores a suite. The same suite in the same format always gets the same ID. */
  keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite>;
  keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<void>;
  /**
   * Calls `run` only once for an approval token (`yes`), even if several processes get the token. A repeated call
   * returns the stored report. Throws a RunStoreError if there is no report yet.
   */
  runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport>;
  wasRun(yes: string): Promise<boolean>;
  /** Stores tests until a person approves them. `yes` is the token of that approval. */
  keepPlanned(caller: string, yes: string, planned: PlannedTests): Promise<void>;
  planned(caller: string, yes: string): Promise<PlannedTests | undefined>;
  find(caller: string, suiteId: string): Promise<KeptSuite | undefined>;
  list(caller: string): Promise<readonly KeptSuite[]>;
}

const keptSuite: z.ZodType<KeptSuite> = z.object({
  suiteId: z.string(),
  suite: eventSuite,
  format: z.enum(["json", "vitest", "playwright", "curl"] as const satisfies readonly (keyof typeof SUITE_FORMATS)[]),
  report: suiteReport.exactOptional(),
});

/**
 * Returns the name under which a caller's planned tests are stored. It keeps them separate from the caller's suites.
 */
const plannedOf = (caller: string): string => `planned ${caller}`;

/** Creates the store of suites. Several processes may share its `texts`. */
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
          "these tests were already started with this confirmation and have no report yet; nothing was sent",
          "Call again later. If there is still no report, plan the tests again without confirmation.",
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

/** Returns whether a text has the form of a suite's ID. Other texts are not looked up. */
function isSuiteId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function parseStored<T>(text: string | undefined, form: z.ZodType<T>): T | undefined {
  return text === undefined ? undefined : form.safeParse(parseJson(text)).data;
}
