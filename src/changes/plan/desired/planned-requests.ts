import { plannedRequests, weighed } from "../../pack/requests.ts";
import type { PlannedRequest } from "../../rows/entries.ts";
import type { DesiredChanges } from "./desired-changes.ts";
import { planDesired } from "./plan-desired.ts";

/** The requests that the changes of a desired state need, if every answer is a success. */
export function requestsOf(changes: DesiredChanges): readonly PlannedRequest[] {
  const { steps } = planDesired(changes, "show");
  return weighed(steps, plannedRequests(steps));
}
