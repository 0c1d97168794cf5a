import { emitCurl } from "./emit-curl.ts";
import { emitPlaywright } from "./emit-playwright.ts";
import { emitVitest } from "./emit-vitest.ts";
import type { EventSuite } from "./suite.ts";

/** The forms in which a suite is given out, each with its writer and the usual name of its file. */
export const SUITE_FORMATS = {
  json: { fileName: "events.suite.json", emit: (suite: EventSuite) => `${JSON.stringify(suite, null, 2)}\n` },
  vitest: { fileName: "events.test.ts", emit: emitVitest },
  playwright: { fileName: "events.spec.ts", emit: emitPlaywright },
  curl: { fileName: "events.sh", emit: emitCurl },
} as const satisfies Record<string, { readonly fileName: string; readonly emit: (suite: EventSuite) => string }>;

/** The name of a form of a suite. */
export type SuiteFormat = keyof typeof SUITE_FORMATS;

/** Writes a suite in one of the forms; the files run as they are. */
export function emitSuite(suite: EventSuite, format: SuiteFormat): string {
  return SUITE_FORMATS[format].emit(suite);
}
