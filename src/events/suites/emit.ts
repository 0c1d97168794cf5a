import { ANSWERS, BASES, CASE_KINDS, type EventSuite } from "./suite.ts";

/** A form of a suite: its writer, and the usual name and type of its file. */
interface Format {
  readonly fileName: string;
  readonly mimeType: string;
  /** `sandboxUrl` is where a page under test sends its events, unless the environment of the test names another address. */
  readonly emit: (suite: EventSuite, sandboxUrl: string) => Promise<string>;
}

/** The forms in which a suite is given out. Their writers are loaded when they are needed: no start pays for them. */
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

/** The name of a form of a suite. */
export type SuiteFormat = keyof typeof SUITE_FORMATS;

/** What an emitted file holds: how many tests, and how many of each kind. */
export interface EmittedContents {
  readonly cases: number;
  readonly byKind: Readonly<Record<string, number>>;
  /** How many cases of the suite expect which verdict, and how those are known. */
  readonly byVerdict: Readonly<Record<string, number>>;
  readonly byBasis: Readonly<Record<string, number>>;
}

/** Counts what a suite holds in one of the forms: its cases, but for Playwright the one test of a page. */
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

/**
 * Writes a suite in one of the forms; the files run as they are. A page test expects the events at the sandbox at
 * `sandboxUrl`; the tests of the service start a sandbox of their own.
 */
export function emitSuite(suite: EventSuite, format: SuiteFormat, sandboxUrl: string): Promise<string> {
  return SUITE_FORMATS[format].emit(suite, sandboxUrl);
}
