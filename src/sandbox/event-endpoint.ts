import { parseJson } from "../platform/json.ts";
import { messageOf } from "../platform/text.ts";
import { EVENT_MESSAGES } from "../spec/events.ts";
import { replyAfter, replyBefore, waitBefore } from "./faults.ts";
import { arrivedEvent, eventFindings, type Finding, finding, type RequestEntry, verdictOf } from "./logs.ts";
import { type Answer, type Reply, type RequestBody, statusAnswer } from "./reply.ts";
import type { World } from "./world.ts";

interface EventRequest {
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: RequestBody;
  readonly entry: RequestEntry;
}

/**
 * Answers an event (event-tracking-api 4, 5, 7) and adds it to the event log. `forward` is the address of a real
 * endpoint; if set, the client gets the answer of that endpoint.
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

/** Adds an event from the web page of the sandbox. It triggers no fault and is never forwarded. */
export function takeFromPage(world: World, text: string): void {
  const body = parseJson(text);
  const at = new Date(world.sources.now()).toISOString();
  world.events.add(arrivedEvent({ at, text, body, findings: eventFindings(body) }));
}

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
  const forwarded = forward && (await forwardEvent(forward, { authorization, contentType, text }));
  const arrived = arrivedEvent({ at, text, body, findings });
  world.events.add({
    ...arrived,
    ...(forwarded && { forwarded: { status: forwarded.status, message: forwarded.message } }),
  });
  entry.applied = arrived.verdict === "recorded";
  if (forwarded) return { status: forwarded.status, body: forwarded.body };
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

/** Throws a RangeError if events cannot be forwarded to the address `base`. */
export function checkForward(base: string): void {
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw new RangeError(`events cannot be forwarded to "${base}", which is not an http or https address`);
  }
}

const PATIENCE_MS = 30_000;

/** Sends an event to the real endpoint below `base`. If the endpoint cannot be reached, the answer is a 502. */
async function forwardEvent(
  base: string,
  event: Pick<EventRequest, "authorization" | "contentType"> & { readonly text: string },
) {
  const headers = new Headers({ "Content-Type": event.contentType ?? "application/json" });
  if (event.authorization !== undefined) headers.set("Authorization", event.authorization);
  try {
    const response = await fetch(`${base.replace(/\/+$/, "")}/event`, {
      method: "POST",
      headers,
      body: event.text,
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const text = await response.text();
    return { status: response.status, ...answerIn(text) };
  } catch (error) {
    const message = `the real endpoint could not be reached: ${messageOf(error)}`;
    return { status: 502, message, body: { message } };
  }
}

function answerIn(text: string): { message: string; body: unknown } {
  try {
    const body: unknown = JSON.parse(text);
    const hasMessage = typeof body === "object" && body !== null && "message" in body;
    return { message: hasMessage ? String(body.message) : text.slice(0, 1024), body };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { message: text.slice(0, 1024), body: { message: text.slice(0, 1024) } };
  }
}
