import { BASES, type RuleBasis } from "../events/catalogue.ts";

export function suiteUri(suiteId: string): string {
  return `targeting://suites/${suiteId}`;
}

export function suiteReportUri(suiteId: string): string {
  return `${suiteUri(suiteId)}/junit`;
}

const MEANINGS = {
  documented: "documented: stated in the API's documents",
  assumed: "assumed: likely, but not in the documents",
  notShown: "not shown in the documents: any result is possible",
} as const satisfies Record<RuleBasis, string>;

/** Returns a note that explains how the rules in an answer are known (their "basis"), if that needs explanation. */
export function basisNote(used: Iterable<RuleBasis>): readonly string[] {
  const found = new Set(used);
  const meanings = BASES.filter((basis) => found.has(basis)).map((basis) => MEANINGS[basis]);
  return found.has("assumed") || found.has("notShown") ? [meanings.join("; ")] : [];
}
