import { emitCurl } from "./emit-curl.ts";
import { emitPlaywright } from "./emit-playwright.ts";
import { emitVitest } from "./emit-vitest.ts";
import type { EventSuite } from "./suite.ts";

/** A form of a suite: its writer, and the usual name and type of its file. */
interface Format {
  readonly fileName: string;
  readonly mimeType: string;
  readonly emit: (suite: EventSuite) => string;
}

/** The forms in which a suite is given out. */
export const SUITE_FORMATS = {
  json: {
    fileName: "events.suite.json",
    mimeType: "application/json",
    emit: (suite) => `${JSON.stringify(suite, null, 2)}\n`,
  },
  vitest: { fileName: "events.test.ts", mimeType: "text/typescript", emit: emitVitest },
  playwright: { fileName: "events.spec.ts", mimeType: "text/typescript", emit: emitPlaywright },
  curl: { fileName: "events.sh", mimeType: "application/x-sh", emit: emitCurl },
} as const satisfies Record<string, Format>;

/** The name of a form of a suite. */
export type SuiteFormat = keyof typeof SUITE_FORMATS;

/** Writes a suite in one of the forms; the files run as they are. */
export function emitSuite(suite: EventSuite, format: SuiteFormat): string {
  return SUITE_FORMATS[format].emit(suite);
}
