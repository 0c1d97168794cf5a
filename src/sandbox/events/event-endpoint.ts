import { parseJson } from "../../platform/json.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import { replyAfter, replyBefore, waitBefore } from "../http/fault-reply.ts";
import { type Answer, type Reply, statusAnswer } from "../http/reply.ts";
import type { RequestBody } from "../http/request-body.ts";
import type { RequestEntry } from "../http/request-journal.ts";
import type { World } from "../world.ts";
import { arrivedEvent } from "./arrived-event.ts";
import { eventFindings, type Finding, finding, verdictOf } from "./event-verdict.ts";
import { forwardEvent } from "./forward.ts";

/** A request of the event API as it came in. */
export interface EventRequest {
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: RequestBody;
  readonly entry: RequestEntry;
}

/**
 * Answers an event with the verdict of the documents (event-tracking-api 4, 5, 7) and keeps it. With `forward`, the
 * base address of a real endpoint, the answer is the one that the real endpoint gives.
 */
export async function answerEvent(world: World, request: EventRequest, forward: string | undefined): Promise<Reply> {
  const { body, entry } = request;
  if ("tooLarge" in body) return statusAnswer(413, "request entity too large");
  const fault = world.faults.next("trackEvent");
  if (fault !== undefined) entry.fault = fault.kind;
  await waitBefore(fault, world.faults);
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
  const forwarded =
    forward === undefined ? undefined : await forwardEvent(forward, { authorization, contentType, text });
  const arrived = arrivedEvent({ at, text, isJson: body !== undefined, body, findings });
  world.events.add({
    ...arrived,
    ...(forwarded === undefined ? {} : { forwarded: { status: forwarded.status, message: forwarded.message } }),
  });
  entry.applied = arrived.verdict === "recorded";
  if (forwarded !== undefined) return { status: forwarded.status, body: forwarded.body };
  return known ? answerOf(findings) : statusAnswer(401);
}

function answerOf(findings: readonly Finding[]): Answer {
  return verdictOf(findings) === "rejected"
    ? { status: 400, body: { message: EVENT_MESSAGES.invalid } }
    : { status: 200, body: { message: EVENT_MESSAGES.ok } };
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}
