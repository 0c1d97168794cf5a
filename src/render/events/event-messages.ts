import { RATE_LIMITED } from "../../api/errors.ts";
import type { EventCode } from "../../events/run/verdicts.ts";
import type { Reason } from "../../runs/outcome.ts";
import { knownOf, rateLimitWords, refusalWords, remedyOf } from "../failures/request-failures.ts";
import { plain } from "../fence.ts";
import type { Message } from "../message.ts";

type Detail = Readonly<Record<string, unknown>>;

/** What the validator found, in its own words; names that it quotes are shortened there. */
function found({ finding, section }: Detail): string {
  return typeof finding === "string" ? `, since ${plain(finding)} (event-tracking-api ${String(section)})` : "";
}

function mend({ fix }: Detail, otherwise: string): string {
  return typeof fix === "string" ? `To mend it: ${plain(fix)}.` : otherwise;
}

/** What a failed request means, as far as a run kept it: the same words as for any other request. */
function requestWords({ kind, ...detail }: Detail, statusCode: number | undefined): Message {
  const known = knownOf(detail, statusCode);
  if (kind === "rateLimited")
    return { message: rateLimitWords(known), remedy: "Send it again when that time is over." };
  const refused = typeof kind === "string" ? refusalWords(kind, { operation: "trackEvent", ...known }) : undefined;
  if (refused !== undefined) return refused;
  const why = known.reason === undefined ? "" : `: ${plain(known.reason)}`;
  return { message: `the service could not be reached${why}`, remedy: remedyOf({ setBy: "EVENT_API_URL", ...known }) };
}

/** What to tell an agent about an event that was not recorded, or not known to be. */
export const EVENT_SENTENCES: Readonly<Record<EventCode, (detail: Detail, reason: Reason) => Message>> = {
  EVENT_IGNORED: (detail) => ({
    message: `not sent: the service would answer ok and throw it away${found(detail)}`,
    remedy: mend(detail, "Change the event."),
  }),
  EVENT_REJECTED: (detail) => ({
    message: `not sent: the service would refuse it${found(detail)}`,
    remedy: mend(detail, "Change the event."),
  }),
  EVENT_INVALID: (detail) => ({
    message: "the service answered !invalid: the event was not recorded",
    remedy: mend(detail, "Check the types and lengths of its parameters."),
  }),
  EVENT_REQUEST_REJECTED: (detail, { statusCode }) => {
    const refused = refusalWords(String(detail.kind), { operation: "trackEvent", ...knownOf(detail, statusCode) });
    return {
      message: `${refused?.message ?? `the service refused the request (status ${statusCode ?? "unknown"})`}: the event was not recorded`,
      remedy: refused?.remedy ?? "Check EVENT_API_URL and EVENT_APP_KEY.",
    };
  },
  EVENT_ANSWER_LOST: () => ({
    message: "it was sent, and the answer was lost: it may or may not have been recorded",
    remedy: 'It is not sent again, since that may record it twice; onUnknown "resend" does so.',
  }),
  EVENT_ANSWER_NOT_UNDERSTOOD: (_detail, { statusCode }) => ({
    message: `the service answered something else than ok or !invalid (status ${statusCode ?? "unknown"})`,
    remedy: "Look at the event in the console's reports.",
  }),
  EVENT_NOT_SENT: (detail) => {
    const { message, remedy } = requestWords(detail, undefined);
    return { message: `${message}; it was not sent`, remedy: `${remedy} Then send it again.` };
  },
  EVENT_BUSY: (detail, { statusCode }) => ({
    message:
      statusCode === RATE_LIMITED
        ? `${rateLimitWords(knownOf(detail))}; it was not recorded`
        : "the service was busy until the retries ended: it was not recorded",
    remedy: statusCode === RATE_LIMITED ? "Send it again when that time is over." : "Try again later.",
  }),
  EVENT_STOPPED: () => ({
    message: "the call was stopped before it was sent",
    remedy: "Send it again if it is still wanted.",
  }),
  EVENTS_ENDED: (detail, { statusCode }) => {
    const { message, remedy } = requestWords(detail, statusCode);
    return {
      message: `not sent, since an event before it showed that none can be: ${message}`,
      remedy: `${remedy} Then send it again.`,
    };
  },
};
