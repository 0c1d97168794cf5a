import type { Reason } from "./outcome.ts";

/** Reasons of our own, beside the error codes of the API: what each means for the object. */
export const OWN_CODES = {
  INVALID_NAME: "the name breaks a rule of management-api 8.3",
  INVALID_ID: "an ID is not a ULID",
  INVALID_CONTEXT_ID: "a Context ID is empty or longer than 256 bytes",
  INVALID_ROW: "a row of a file cannot be read as an item",
  INVALID_ITEM: "the fields of the item do not go together",
  DUPLICATE_IN_INPUT: "an earlier item of the same call has the name or ID",
  NAME_NOT_FOUND: "no option or targeting has the name",
  NAME_AMBIGUOUS: "several options or targetings have the name",
  NOT_EMPTY: "the option holds Context IDs or sub-options, and only empty ones were to be deleted",
  EXISTS: "an option of the name exists, and existing ones were to be skipped",
  TOO_MANY_CONTEXT_IDS: "the option would hold more Context IDs than an option may",
  ITEM_TOO_LARGE: "the item does not fit into a request by itself",
  EMPTY_GROUP: "the option group would have neither sub-options nor Context IDs",
  PLAN_STALE: "it has changed since it was planned, so that it matters",
  NO_FREE_PLACE: "the changes need a free place for a moment, and the limit leaves none",
  PLAN_STALE_ELSEWHERE: "something else has changed since it was planned",
  NEEDS_FAILED: "something that this object needs was not made",
  NO_ANSWER: "no answer came within the retry budget",
  NOT_SENT: "the service could not be reached within the retry budget",
  BUSY: "other writes held the project during the whole retry budget",
  RATE_LIMITED: "the service limits requests, for longer than the retry budget",
  CANCELLED: "the run was cancelled before this was sent",
  NOT_PLANNED: "the run could not be planned, so that nothing of it was sent",
  FILE_UNREADABLE: "the file of the call cannot be read",
  NOT_SAVED: "what was to be saved could not be read, or not be written",
  WITHDRAWN: "the run was cancelled before it was started",
  UNDONE: "the run was undone before this was sent",
  NOT_DECIDED: "nobody decided on the run within the time that it waits",
  DECLINED: "it was declined",
  INTERRUPTED: "the run stopped before this was sent",
  RUN_ENDED: "an earlier request ended the run before this was sent",
  PARTLY_APPLIED: "a part was applied, and the rest not yet",
  OWNER_UNCLEAR: "an option or targeting of this name appeared meanwhile, and another writer may have made it",
  STOPPED_BY_ERROR: "the run stopped at an error of this machine, such as a full disk",
  REJECTED: "the service refused the request with a status that the documents do not list",
  VALIDATION: "the service refused the item as invalid",
  UNAUTHORIZED: "the service does not accept the key",
  FORBIDDEN: "the key lacks the scope",
  WRONG_ROUTE: "the service has no such route",
  REDIRECTED: "the address answers with a redirect",
  FOREIGN_ANSWER: "something between this server and the service refused the request",
  TOO_LARGE: "the service finds the request too large",
} as const;

/** A reason of our own. */
export type OwnCode = keyof typeof OWN_CODES;

/** Makes a reason of our own. */
export function ownReason(code: OwnCode, detail?: Readonly<Record<string, unknown>>): Reason {
  return detail === undefined ? { code } : { code, detail };
}
