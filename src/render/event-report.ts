import type { EventVerdict } from "../events/event-run-state.ts";
import type { Finding } from "../events/rules.ts";
import { plain } from "./fence.ts";

/** One event's verdict, as answers show it (contract, `verdicts`). */
export interface VerdictRow {
  readonly index: number;
  readonly predicted: string;
  readonly basis: string;
  readonly observed?: string;
  readonly findings: readonly Pick<Finding, "path" | "rule" | "section" | "basis" | "message" | "fix">[];
}

/** The verdict on an event. */
export function verdictRow(index: number, { predicted, basis, observed, findings }: EventVerdict): VerdictRow {
  return {
    index,
    predicted,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.map(({ path, rule, section, basis: known, message, fix }) => ({
      path: plain(path),
      rule,
      section,
      basis: known,
      message: plain(message),
      fix: plain(fix),
    })),
  };
}

/** A verdict as a line of text. */
export function verdictLine({ index, predicted, basis, observed, findings }: VerdictRow): string {
  const seen = observed === undefined ? "" : `, observed ${observed}`;
  const found = findings.map(({ path, message, fix }) => `${path === "" ? "event" : path}: ${message}; ${fix}`);
  return `${index}: predicted ${predicted} (${basis})${seen}${found.length > 0 ? ` — ${found.join(" | ")}` : ""}`;
}
