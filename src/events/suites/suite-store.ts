import { hash } from "node:crypto";
import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import type { SuiteTexts } from "../../runs/backend.ts";
import { RunStoreError } from "../../runs/store.ts";
import type { SUITE_FORMATS, SuiteFormat } from "./emit.ts";
import { type EventSuite, eventSuite, type SuiteReport, suiteReport } from "./suite.ts";

export interface KeptSuite {
  readonly suiteId: string;
  readonly suite: EventSuite;
  readonly format: SuiteFormat;
  readonly report?: SuiteReport;
}

const plannedTests = z.object({ suiteId: z.string(), saveTo: z.string() });

/** Tests that wait for approval. `saveTo` is the file for the report; "" for none. */
type PlannedTests = Readonly<z.output<typeof plannedTests>>;

const keptSuite: z.ZodType<KeptSuite> = z.object({
  suiteId: z.string(),
  suite: eventSuite,
  format: z.enum(["json", "vitest", "playwright", "curl"] as const satisfies readonly (keyof typeof SUITE_FORMATS)[]),
  report: suiteReport.exactOptional(),
});

/** Returns the name under which a caller's planned tests are stored, apart from the caller's suites. */
const plannedOf = (caller: string): string => `planned ${caller}`;

/**
 * Stores suites in `texts`, which several processes may share. Each caller sees only their own. Throws a RunStoreError
 * if a stored text cannot be read or written. A text in another form counts as missing.
 */
export class SuiteStore {
  readonly #texts: SuiteTexts;
  /** The reports that could not be stored for their approval tokens, by token. */
  readonly #unsettled = new Map<string, SuiteReport>();

  constructor(texts: SuiteTexts) {
    this.#texts = texts;
  }

  /** Stores a suite. The same suite in the same format always gets the same ID. Its report, if any, stays stored. */
  async keep(caller: string, suite: EventSuite, format: SuiteFormat): Promise<KeptSuite> {
    const suiteId = hash("sha256", JSON.stringify([format, suite]), "hex").slice(0, 16);
    const kept = (await this.find(caller, suiteId)) ?? { suiteId, suite, format };
    await this.#put(caller, kept);
    return kept;
  }

  /** Stores a report and returns it. If that fails, returns it as `isUnstored`: its tests were sent all the same. */
  async keepReport(caller: string, kept: KeptSuite, report: SuiteReport): Promise<SuiteReport> {
    const isStored = await isDone(this.#put(caller, { ...kept, report }));
    return isStored ? report : { ...report, isUnstored: true };
  }

  async find(caller: string, suiteId: string): Promise<KeptSuite | undefined> {
    // Other texts cannot be the ID of a suite, so they are not looked up.
    if (!/^[0-9a-f]{16}$/.test(suiteId)) return undefined;
    return parseStored(await this.#texts.get(caller, suiteId), keptSuite);
  }

  async list(caller: string): Promise<readonly KeptSuite[]> {
    return (await this.#texts.list(caller)).flatMap((text) => parseStored(text, keptSuite) ?? []);
  }

  /**
   * Calls `run` only once for an approval token (`yes`), even if several processes get the token. A repeated call
   * returns the stored report. Throws a RunStoreError if there is no report yet.
   */
  async runOnce(yes: string, run: () => Promise<SuiteReport>): Promise<SuiteReport> {
    const unsettled = this.#unsettled.get(yes);
    if (unsettled !== undefined) return unsettled;
    if (!(await this.#texts.claim(yes))) {
      const given = parseStored(await this.#texts.settled(yes), suiteReport);
      if (given !== undefined) return given;
      throw new RunStoreError(
        "these tests were already started with this confirmation and have no report yet; this call sent nothing",
        "Call again later. If there is still no report, call without confirmation to plan the tests again.",
      );
    }
    const given = await run();
    if (!(await isDone(this.#texts.settle(yes, JSON.stringify(given))))) this.#unsettled.set(yes, given);
    return given;
  }

  async wasRun(yes: string): Promise<boolean> {
    return this.#unsettled.has(yes) || (await this.#texts.settled(yes)) !== undefined;
  }

  /** Stores tests that a person has to approve first. `yes` is the token of that approval. */
  keepPlanned(caller: string, yes: string, planned: PlannedTests): Promise<void> {
    return this.#texts.put(plannedOf(caller), hash("sha256", yes, "hex"), JSON.stringify(planned));
  }

  async planned(caller: string, yes: string): Promise<PlannedTests | undefined> {
    return parseStored(await this.#texts.get(plannedOf(caller), hash("sha256", yes, "hex")), plannedTests);
  }

  #put(caller: string, kept: KeptSuite): Promise<void> {
    return this.#texts.put(caller, kept.suiteId, JSON.stringify(kept));
  }
}

/** Returns false if the store fails. */
function isDone(storing: Promise<void>): Promise<boolean> {
  return storing.then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof RunStoreError) return false;
      throw thrown;
    },
  );
}

function parseStored<T>(text: string | undefined, form: z.ZodType<T>): T | undefined {
  return text === undefined ? undefined : form.safeParse(parseJson(text)).data;
}
