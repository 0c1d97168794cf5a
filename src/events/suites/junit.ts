import { BASIS_WORDS } from "../catalogue.ts";
import type { CaseResult, SuiteReport } from "./run-suite.ts";

/** Cases that cannot be observed are skipped tests. */
export function junitXml(report: SuiteReport, name: string): string {
  const { cases, mismatched, unobservable, results } = report;
  const time = seconds(results.reduce((sum, { milliseconds }) => sum + milliseconds, 0));
  const counts = `tests="${cases}" failures="${mismatched}" errors="0" skipped="${unobservable}" time="${time}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${escaped(name)}" ${counts}>`,
    ...results.map(testCase),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function testCase(result: CaseResult): string {
  const { id, title, kind, milliseconds } = result;
  const head = `    <testcase classname="${escaped(kind)}" name="${escaped(`${id}: ${title}`)}" time="${seconds(milliseconds)}"`;
  const outcome = outcomeOf(result);
  return outcome === undefined ? `${head}/>` : `${head}>\n      ${outcome}\n    </testcase>`;
}

function outcomeOf({ status, expected, basis, observed, reason }: CaseResult): string | undefined {
  const seen = observed ?? reason ?? "nothing";
  const message = escaped(`expected ${expected} (${BASIS_WORDS[basis]}), seen: ${seen}`);
  if (status === "mismatched") return `<failure type="mismatch" message="${message}"/>`;
  return status === "unobservable" ? `<skipped message="${message}"/>` : undefined;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\t": "&#9;",
  "\n": "&#10;",
  "\r": "&#13;",
};

/** Characters that XML does not allow become U+FFFD. */
function escaped(text: string): string {
  return text
    .replace(/[&<>"\t\n\r]/g, (letter) => ENTITIES[letter] ?? letter)
    .replace(/[^\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}");
}
