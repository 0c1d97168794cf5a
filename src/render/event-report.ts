import type { Finding } from "../events/rules.ts";
import type { Settlement } from "../events/settlement.ts";
import { plain, shown } from "./fence.ts";
import type { Message } from "./message.ts";

/** One event's verdict, as answers show it (contract, `verdicts`). */
export interface VerdictRow {
  readonly index: number;
  readonly predicted: string;
  readonly basis: string;
  readonly observed?: string;
  readonly findings: readonly Pick<Finding, "path" | "rule" | "section" | "basis" | "message" | "fix">[];
}

const FINDINGS_SHOWN = 5;

/** The verdict on an event, with the first findings. */
export function verdictRow(index: number, { predicted, observed }: Settlement): VerdictRow {
  return {
    index,
    predicted: predicted.verdict,
    basis: predicted.basis,
    ...(observed !== undefined && { observed }),
    findings: predicted.findings.slice(0, FINDINGS_SHOWN).map(({ path, rule, section, basis, message, fix }) => ({
      path: plain(path),
      rule,
      section,
      basis,
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

/** The code under which a settlement is grouped with others; undefined when the event was recorded. */
export function eventErrorCode({ outcome, reason, predicted }: Settlement): string | undefined {
  if (outcome === "succeeded") return undefined;
  if (reason === "refused") return `EVENT_${predicted.verdict.toUpperCase()}`;
  return EVENT_CODES[reason ?? "answerNotUnderstood"];
}

const EVENT_CODES = {
  refused: "EVENT_IGNORED",
  invalid: "EVENT_REJECTED",
  rejected: "REQUEST_REJECTED",
  answerLost: "ANSWER_LOST",
  answerNotUnderstood: "ANSWER_NOT_UNDERSTOOD",
  notSent: "NOT_SENT",
  busy: "BUSY",
  runEnded: "RUN_ENDED",
  stopped: "STOPPED",
} as const;

/** What to tell an agent about an event that was not recorded, or not known to be. */
export function eventMessage(settlement: Settlement): Message {
  const { reason, predicted, statusCode } = settlement;
  const [first] = predicted.findings;
  switch (reason) {
    case "refused": {
      const fate =
        predicted.verdict === "ignored"
          ? "not sent: the service would answer ok and throw it away"
          : "not sent: the service would refuse it";
      const why = first === undefined ? "" : `, since ${plain(first.message)} (event-tracking-api ${first.section})`;
      return {
        message: `${fate}${why}`,
        remedy: first === undefined ? "Change the event." : `To mend it: ${plain(first.fix)}.`,
      };
    }
    case "invalid":
      return {
        message: "the service answered !invalid: the event was not recorded",
        remedy:
          first === undefined ? "Check the types and lengths of its parameters." : `Perhaps: ${plain(first.fix)}.`,
      };
    case "rejected":
    case "runEnded":
      return {
        message: `the service refused requests (status ${statusCode ?? "unknown"}): this event was not recorded`,
        remedy: "Check EVENT_API_URL and EVENT_APP_KEY.",
      };
    case "answerLost":
      return {
        message: "it was sent, and the answer was lost: it may or may not have been recorded",
        remedy: 'It is not sent again, since that may record it twice; onUnknown "resend" of track_events does so.',
      };
    case "answerNotUnderstood":
      return {
        message: `the service answered something else than ok or !invalid (status ${statusCode ?? "unknown"})`,
        remedy: "Look at the event in the console's reports.",
      };
    case "notSent":
      return {
        message: "the service could not be reached: it was not sent",
        remedy: "Check EVENT_API_URL, and try again.",
      };
    case "busy":
      return {
        message: "the service was busy until the retries ended: it was not recorded",
        remedy: "Try again later.",
      };
    default:
      return { message: "the call was stopped before it was sent", remedy: "Send it again if it is still wanted." };
  }
}

/** The name of an event as text, whatever it is. */
export function eventRef(event: unknown): string {
  const named = typeof event === "object" && event !== null && "eventName" in event ? event.eventName : undefined;
  return typeof named === "string" ? named : shown(JSON.stringify(named) ?? "no eventName");
}
