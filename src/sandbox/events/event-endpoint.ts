import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../../platform/json.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import { replyAfter, replyBefore } from "../http/fault-reply.ts";
import { type Answer, type Reply, statusAnswer } from "../http/reply.ts";
import type { RequestBody } from "../http/request-body.ts";
import type { RequestEntry } from "../http/request-journal.ts";
import type { World } from "../world.ts";
import { eventFindings, type Finding, finding, isFields, verdictOf } from "./event-verdict.ts";
import { forwardEvent } from "./forward.ts";

/** A request of the event API as it came in. */
export interface EventRequest {
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: RequestBody;
  readonly entry: RequestEntry;
}

/** How many findings of one event are kept. */
const FINDINGS_KEPT = 100;

/**
 * Answers an event with the verdict of the documents (event-tracking-api 4, 5, 7) and keeps it. With `forward`, the
 * base address of a real endpoint, the answer is the one that the real endpoint gives.
 */
export async function answerEvent(world: World, request: EventRequest, forward: string | undefined): Promise<Reply> {
  const { body, entry } = request;
  if ("tooLarge" in body) return statusAnswer(413, "request entity too large");
  const fault = world.faults.next("trackEvent");
  if (fault !== undefined) entry.fault = fault.kind;
  if (fault?.kind === "slow") await delay(fault.delayMs, undefined, { ref: false });
  const refusal = replyBefore(fault, world.sources.now());
  return refusal ?? replyAfter(fault, await take(world, request, body.text, forward));
}

/** Gives an event its verdict, keeps it, and answers. */
async function take(
  world: World,
  { authorization, contentType, entry }: EventRequest,
  text: string,
  forward: string | undefined,
): Promise<Answer> {
  const at = new Date(world.sources.now()).toISOString();
  const body = parseJson(text);
  const known = forward === undefined ? world.appKeys.has(authorization ?? "") : authorization !== undefined;
  const findings = [
    ...(known ? [] : [finding("headers.authorization", "authorization")]),
    ...(isJson(contentType) ? [] : [finding("headers.content-type", "contentType")]),
    ...eventFindings(body),
  ];
  const verdict = verdictOf(findings);
  const forwarded =
    forward === undefined ? undefined : await forwardEvent(forward, { authorization, contentType, text });
  world.events.add({
    at,
    verdict,
    findings: findings.slice(0, FINDINGS_KEPT),
    ...identity(body),
    text,
    isJson: body !== undefined,
    ...(forwarded === undefined ? {} : { forwarded: { status: forwarded.status, message: forwarded.message } }),
  });
  entry.applied = verdict === "recorded";
  if (forwarded !== undefined) return { status: forwarded.status, body: forwarded.body };
  return known ? answerOf(findings) : statusAnswer(401);
}

function answerOf(findings: readonly Finding[]): Answer {
  return verdictOf(findings) === "rejected"
    ? { status: 400, body: { message: EVENT_MESSAGES.invalid } }
    : { status: 200, body: { message: EVENT_MESSAGES.ok } };
}

/** The two fields by which events are looked up, where they are texts of a sensible length. */
function identity(body: unknown): { uid: string | null; eventName: string | null } {
  const text = (value: unknown) => (typeof value === "string" && value.length <= 2048 ? value : null);
  return isFields(body) ? { uid: text(body.uid), eventName: text(body.eventName) } : { uid: null, eventName: null };
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}
