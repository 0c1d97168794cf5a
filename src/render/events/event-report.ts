import type { Finding } from "../../events/check/rules.ts";
import type { VerdictGroup } from "../../events/run/verdict-kinds.ts";
import { plain } from "../fence.ts";

/** The verdict of events that share it, as answers show it (contract, `verdicts`). */
export interface VerdictRow {
  /** Of the first event. */
  readonly index: number;
  readonly count: number;
  /** Of the first events. */
  readonly indexes: readonly number[];
  readonly predicted: string;
  readonly basis: string;
  readonly observed?: string;
  readonly findings: readonly Pick<Finding, "path" | "rule" | "section" | "basis" | "message" | "fix">[];
}

/** A kind of verdict with its events, whose places are their indexes. */
export function verdictRow({ predicted, basis, observed, findings, count, objects }: VerdictGroup): VerdictRow {
  return {
    index: objects[0] ?? 0,
    count,
    indexes: objects,
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
export function verdictLine({ index, count, indexes, predicted, basis, observed, findings }: VerdictRow): string {
  const more = count > indexes.length ? ", …" : "";
  const place = count === 1 ? `${index}` : `${count} events (items ${indexes.join(", ")}${more})`;
  const seen = observed === undefined ? "" : `, observed ${observed}`;
  const found = findings.map(({ path, message, fix }) => `${path === "" ? "event" : path}: ${message}; ${fix}`);
  return `${place}: predicted ${predicted} (${basis})${seen}${found.length > 0 ? ` — ${found.join(" | ")}` : ""}`;
}

/** What can be done about an event of which is not known whether it was recorded. */
export const RESEND_EVENT =
  'the same call with onUnknown "resend", within 10 minutes of the first, sends the event again: it may then be recorded twice';

/** Says what an equal call before, of which was not known what it came to, means to a call of `track_event`. */
export function repeatedEventWords(repeat: "attached" | "takenUp" | "resent"): string {
  switch (repeat) {
    case "attached":
      return 'an equal call was made before, and this is its run: nothing was sent for this call; where it stays unknown, onUnknown "resend" sends it again';
    case "takenUp":
      return "an equal call was made before and was interrupted before its event left: this is its run, taken up again";
    case "resent":
      return "an equal call was made before and its answer was lost: this is its run, in which the event was sent again";
  }
}
