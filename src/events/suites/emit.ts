import { BASES } from "../catalogue.ts";
import { ANSWERS, CASE_KINDS, type EventSuite } from "./suite.ts";

interface Format {
  readonly fileName: string;
  readonly mimeType: string;
  /** Returns the text of the file. By default, a Playwright test expects events at `sandboxUrl`. */
  readonly emit: (suite: EventSuite, sandboxUrl: string) => Promise<string>;
}

/** The formats of suites. The code for a format is imported when it is first used, so that the server starts fast. */
export const SUITE_FORMATS = {
  json: {
    fileName: "events.suite.json",
    mimeType: "application/json",
    emit: async (suite) => `${JSON.stringify(suite, null, 2)}\n`,
  },
  vitest: {
    fileName: "events.test.ts",
    mimeType: "text/typescript",
    emit: async (suite) => (await import("./emit-scripts.ts")).emitVitest(suite),
  },
  playwright: {
    fileName: "events.spec.ts",
    mimeType: "text/typescript",
    emit: async (...given) => (await import("./emit-scripts.ts")).emitPlaywright(...given),
  },
  curl: {
    fileName: "events.sh",
    mimeType: "application/x-sh",
    emit: async (suite) => (await import("./emit-scripts.ts")).emitCurl(suite),
  },
} as const satisfies Record<string, Format>;

export type SuiteFormat = keyof typeof SUITE_FORMATS;

/**
 * Returns how many tests a file contains. A Playwright file has one test, which checks a page and sends no cases;
 * `byVerdict` and `byBasis` then count the cases of the suite. In other files, each case is a test.
 */
export function contentsOf({ cases }: EventSuite, format: SuiteFormat) {
  const counted = (names: readonly string[], of: (one: EventSuite["cases"][number]) => string) => {
    const counts = names.map((name) => [name, cases.filter((one) => of(one) === name).length] as const);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  };
  const byVerdict = counted(Object.keys(ANSWERS), ({ expected }) => expected);
  const byBasis = counted(BASES, ({ basis }) => basis);
  if (format === "playwright") return { cases: 1, byKind: { page: 1 }, byVerdict, byBasis };
  return { cases: cases.length, byKind: counted(CASE_KINDS, ({ kind }) => kind), byVerdict, byBasis };
}

/** Returns the text of a file. By default, a Playwright test uses the sandbox at `sandboxUrl`, others their own. */
export function emitSuite(suite: EventSuite, format: SuiteFormat, sandboxUrl: string): Promise<string> {
  return SUITE_FORMATS[format].emit(suite, sandboxUrl);
}
