import type { ArrivedEvent } from "./event-log.ts";
import { type Finding, isFields, verdictOf } from "./event-verdict.ts";

/** How many findings of one event are kept. */
const FINDINGS_KEPT = 100;

/** An event as it is kept, with the verdict that its findings amount to; `body` is what `text` holds, where that is JSON. */
export function arrivedEvent({ at, text, isJson, body, findings }: Arrival): ArrivedEvent {
  return {
    at,
    verdict: verdictOf(findings),
    findings: findings.slice(0, FINDINGS_KEPT),
    ...identity(body),
    text,
    isJson,
  };
}

/** What is known of an event when it arrives; `at` is an ISO 8601 time. */
interface Arrival {
  readonly at: string;
  readonly text: string;
  readonly isJson: boolean;
  readonly body: unknown;
  readonly findings: readonly Finding[];
}

/** The two fields by which events are looked up, where they are texts of a sensible length. */
function identity(body: unknown): { uid: string | null; eventName: string | null } {
  const text = (value: unknown) => (typeof value === "string" && value.length <= 2048 ? value : null);
  return isFields(body) ? { uid: text(body.uid), eventName: text(body.eventName) } : { uid: null, eventName: null };
}
