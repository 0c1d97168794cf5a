import { ANSWERS, BASES, CASE_KINDS, type EventSuite } from "./suite.ts";

/** A file format for suites: its writer, and the usual name and type of its file. */
interface Format {
  readonly fileName: string;
  readonly mimeType: string;
  /** Writes the suite. A page test expects events at `sandboxUrl`, or at the address in its environment. */
  readonly emit: (suite: EventSuite, sandboxUrl: string) => Promise<string>;
}

/** The file formats for suites. Their writers are loaded on first use, which keeps start-up fast. */
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
    emit: async (...given) => (await import("./emit-playwright.ts")).emitPlaywright(...given),
  },
  curl: {
    fileName: "events.sh",
    mimeType: "application/x-sh",
    emit: async (suite) => (await import("./emit-scripts.ts")).emitCurl(suite),
  },
} as const satisfies Record<string, Format>;

export type SuiteFormat = keyof typeof SUITE_FORMATS;

/** The contents of a generated file: how many tests, and how many of each kind. */
export interface EmittedContents {
  readonly cases: number;
  readonly byKind: Readonly<Record<string, number>>;
  /** The number of cases for each expected verdict and its basis. */
  readonly byVerdict: Readonly<Record<string, number>>;
  readonly byBasis: Readonly<Record<string, number>>;
}

/** Counts the contents of a suite in one format: its cases, or for Playwright the single test of a page. */
export function contentsOf({ cases }: EventSuite, format: SuiteFormat): EmittedContents {
  const counted = (names: readonly string[], of: (one: EventSuite["cases"][number]) => string) => {
    const counts = names.map((name) => [name, cases.filter((one) => of(one) === name).length] as const);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  };
  const byVerdict = counted(Object.keys(ANSWERS), ({ expected }) => expected);
  const byBasis = counted(BASES, ({ basis }) => basis);
  if (format === "playwright") return { cases: 1, byKind: { page: 1 }, byVerdict, byBasis };
  return { cases: cases.length, byKind: counted(CASE_KINDS, ({ kind }) => kind), byVerdict, byBasis };
}

/** Writes a suite in one format. Page tests expect events at `sandboxUrl`; tests of the service start a sandbox. */
export function emitSuite(suite: EventSuite, format: SuiteFormat, sandboxUrl: string): Promise<string> {
  return SUITE_FORMATS[format].emit(suite, sandboxUrl);
}
