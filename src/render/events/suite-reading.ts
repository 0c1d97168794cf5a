import type { RuleBasis } from "../../events/catalogue.ts";
import type { SuiteFormat } from "../../events/suites/emit.ts";
import { fenced, seen, shown } from "../fence.ts";
import { tokensOf } from "../page.ts";
import { inBasisWords } from "./basis.ts";

/** Where a suite is read as a resource. */
export function suiteUri(suiteId: string): string {
  return `targeting://suites/${suiteId}`;
}

/** Where the report of a suite's last run is read as a resource. */
export function suiteReportUri(suiteId: string): string {
  return `${suiteUri(suiteId)}/junit`;
}

/** What the first lines of a file may hold, as data and again as text. */
const PREVIEW_TOKENS = 1100;
const LINE_LETTERS = 160;

/** The first lines of a suite's file, long ones cut: enough to see what it is. */
export function previewOf(file: string): string {
  const lines: string[] = [];
  let left = PREVIEW_TOKENS;
  for (const whole of file.slice(0, PREVIEW_TOKENS * 10).split("\n")) {
    const line = whole.length <= LINE_LETTERS ? whole : `${whole.slice(0, LINE_LETTERS)}…`;
    left -= tokensOf(JSON.stringify(line)) + 1;
    if (left < 0) break;
    lines.push(line);
  }
  return lines.join("\n");
}

const HOW_TO_RUN = {
  json: "run_event_tests takes it as file.",
  vitest: "npx vitest run runs it, where vitest is installed and the name ends in .test.ts or .spec.ts.",
  playwright: "npx playwright test runs it, where @playwright/test is installed and the name ends in .spec.ts.",
  curl: "sh runs it.",
} as const satisfies Record<SuiteFormat, string>;

/** What the files that send events by themselves test, and where. */
const SERVICE_TESTS =
  "It tests the service, not the app, in a sandbox that it starts itself. To name another service, set EVENT_API_URL.";

/** What is to know of a file that does not hold the cases of its suite. */
export function pageTestNote(cases: number): string {
  return `the file opens a page and checks the events that the page itself sends; the ${cases} cases of the suite are not in it, and kinds, uid and seed do not change it`;
}

/** A suite that was generated, in words. */
export function suiteText(suite: {
  readonly suiteId: string;
  readonly resourceUri: string;
  readonly format: SuiteFormat;
  readonly cases: number;
  readonly byKind: Readonly<Record<string, number>>;
  readonly byVerdict: Readonly<Record<string, number>>;
  readonly byBasis: Readonly<Partial<Record<RuleBasis, number>>>;
  readonly notes?: readonly string[];
  readonly target?: string;
  readonly savedTo?: string;
  readonly note?: string;
  readonly preview: string;
}): string {
  const { suiteId, resourceUri, format, cases, byKind, byVerdict, byBasis, target, savedTo, note, preview } = suite;
  const { notes = [] } = suite;
  const counted = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  return [
    `${cases} ${cases === 1 ? "event test" : "event tests"}, suite ${suiteId}: ${counted(byKind)}.`,
    `Expected of its cases: ${counted(byVerdict)}; how that is known: ${counted(inBasisWords(byBasis))}.`,
    ...notes.map((one) => `${one}.`),
    ...(note === undefined ? [] : [`${note}.`]),
    ...(savedTo === undefined ? [] : [`Saved to ${shown(savedTo)}. ${HOW_TO_RUN[format]}`]),
    ...(target === undefined
      ? []
      : [`It checks what the page sends to the sandbox at ${target}. To name another address, set EVENT_API_URL.`]),
    ...(format === "vitest" || format === "curl" ? [SERVICE_TESTS] : []),
    `All of it as ${format} is the resource ${resourceUri}; it begins:`,
    fenced(preview.split("\n").map(seen)),
    `Next: run_event_tests with suiteId ${suiteId} runs ${note === undefined ? "them" : "the suite's cases"} against a sandbox.`,
  ].join("\n");
}
