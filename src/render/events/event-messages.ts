import type { EventCode } from "../../events/run/event-reason.ts";
import type { Reason } from "../../runs/outcome.ts";
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

const ENDS: Readonly<Record<string, string>> = {
  unauthorized: "the service does not accept the key",
  forbidden: "the key may not do this",
  wrongRoute: "the service does not know the route",
  redirect: "the address answers with a redirect, which is not followed",
  unreachable: "the service could not be reached",
};

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
  EVENT_REQUEST_REJECTED: (_detail, { statusCode }) => ({
    message: `the service refused the request (status ${statusCode ?? "unknown"}): the event was not recorded`,
    remedy: "Check EVENT_API_URL and EVENT_APP_KEY.",
  }),
  EVENT_ANSWER_LOST: () => ({
    message: "it was sent, and the answer was lost: it may or may not have been recorded",
    remedy: 'It is not sent again, since that may record it twice; onUnknown "resend" does so.',
  }),
  EVENT_ANSWER_NOT_UNDERSTOOD: (_detail, { statusCode }) => ({
    message: `the service answered something else than ok or !invalid (status ${statusCode ?? "unknown"})`,
    remedy: "Look at the event in the console's reports.",
  }),
  EVENT_NOT_SENT: () => ({
    message: "the service could not be reached: it was not sent",
    remedy: "Check EVENT_API_URL, and try again.",
  }),
  EVENT_BUSY: () => ({
    message: "the service was busy until the retries ended: it was not recorded",
    remedy: "Try again later.",
  }),
  EVENT_STOPPED: () => ({
    message: "the call was stopped before it was sent",
    remedy: "Send it again if it is still wanted.",
  }),
  EVENTS_ENDED: ({ kind }) => ({
    message: `not sent, since an event before it showed that none can be: ${ENDS[String(kind)] ?? "the service refused it"}`,
    remedy: "Check EVENT_API_URL and EVENT_APP_KEY, and send it then.",
  }),
};
