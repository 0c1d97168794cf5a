import { setTimeout as delay } from "node:timers/promises";
import { isJsonObject, parseJson } from "../platform/json.ts";
import { messageOf } from "../platform/text.ts";
import { EVENT_MESSAGES } from "../spec/events.ts";
import { ROUTES } from "../spec/routes.ts";
import { busyAnswer, type Fault, replyAfter, replyBefore, waitBefore } from "./faults.ts";
import { arrivedEvent, eventFindings, type Finding, finding, type RequestEntry, verdictOf } from "./logs.ts";
import { type Applicable, type ManagementOperation, OPERATIONS } from "./rules/operations.ts";
import {
  type Answer,
  businessAnswer,
  businessError,
  type Interference,
  type Outcome,
  type Reply,
  type RequestBody,
  statusAnswer,
  validationAnswer,
} from "./rules/outcome.ts";
import type { Project } from "./rules/store.ts";
import { grantOf, type World } from "./world.ts";

interface ManagementRequest {
  readonly operation: ManagementOperation;
  readonly key: string | undefined;
  readonly pathId: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: RequestBody;
  readonly entry: RequestEntry;
}

export async function answerManagement(world: World, request: ManagementRequest): Promise<Reply> {
  const grant = request.key === undefined ? undefined : grantOf(world, request.key);
  if (grant === undefined) return statusAnswer(401);
  const reads = ROUTES[request.operation].method === "GET";
  if (!grant.scopes.has(reads ? "context-targeting:read" : "context-targeting:write")) return statusAnswer(403);
  if (grant.project.deleted) return businessAnswer(businessError("PROJECT_NOT_FOUND"), world.sources.now());
  const fault = world.faults.next(request.operation);
  if (fault !== undefined) request.entry.fault = fault.kind;
  const refusal = replyBefore(fault, world.sources.now());
  if (refusal !== undefined) return refusal;
  const prepared = prepare(request);
  if ("status" in prepared) return prepared;
  const work = { world, project: grant.project, apply: prepared.apply, entry: request.entry };
  const reply = reads ? await read(work, fault) : await write(work, fault);
  return replyAfter(fault, reply);
}

interface Work {
  readonly world: World;
  readonly project: Project;
  readonly apply: Applicable;
  readonly entry: RequestEntry;
}

function prepare({ operation, pathId, query, body, entry }: ManagementRequest): { apply: Applicable } | Answer {
  if ("tooLarge" in body) return statusAnswer(413, "request entity too large");
  const value = body.text === "" ? undefined : parseJson(body.text);
  if (body.text !== "" && value === undefined) return validationAnswer("the body is not valid JSON");
  entry.items = countItems(value);
  const prepared = OPERATIONS[operation]({ pathId, query, body: value });
  return "problems" in prepared ? validationAnswer(prepared.problems) : prepared;
}

function countItems(body: unknown): number | null {
  const { items, ids } = isJsonObject(body) ? body : {};
  const list = Array.isArray(items) ? items : ids;
  return Array.isArray(list) ? list.length : null;
}

async function read(work: Work, fault: Fault | undefined): Promise<Reply> {
  await waitBefore(fault, work.world.faults);
  return carryOut(work, undefined);
}

/** Answers a write request. It is applied only while no other write of its project is running (management-api 4.2). */
async function write(work: Work, fault: Fault | undefined): Promise<Reply> {
  const { world, project } = work;
  if (fault?.kind === "late" && !fault.holdsLock) {
    void applyLate(work, fault, undefined);
    return "reset";
  }
  const lock = await world.lock.acquire(project._id);
  if ("retryAfterMs" in lock) return busyAnswer(lock.retryAfterMs, world.sources.now());
  if (fault?.kind === "late") {
    void applyLate(work, fault, lock.release);
    return "reset";
  }
  try {
    await waitBefore(fault, world.faults);
    return carryOut(work, interferenceOf(fault));
  } finally {
    lock.release();
  }
}

type LateFault = Extract<Fault, { kind: "late" }>;

/** Applies a write after the delay of its fault. The client's connection is broken, so nobody gets the answer. */
async function applyLate(work: Work, fault: LateFault, held: (() => void) | undefined): Promise<void> {
  if (fault.delayMs === undefined) await work.world.faults.removed(fault);
  else await delay(fault.delayMs, undefined, { ref: false });
  const release = held ?? (await work.world.lock.acquirePatiently(work.project._id));
  try {
    carryOut(work, undefined);
  } finally {
    release();
  }
}

function carryOut({ world, project, apply, entry }: Work, interference: Interference | undefined): Answer {
  const outcome: Outcome = apply(project, world.sources, interference);
  if ("error" in outcome) return businessAnswer(outcome.error, world.sources.now());
  entry.applied = true;
  if (entry.method !== "GET") world.changed();
  return { status: 200, body: outcome.body };
}

function interferenceOf(fault: Fault | undefined): Interference | undefined {
  if (fault?.kind === "uncatched") {
    const { items, addApplied } = fault;
    const hits = (index: number) => items === undefined || items.includes(index);
    return { error: businessError("UNCATCHED"), hits, addApplied };
  }
  if (fault?.kind === "takeover") {
    const error = businessError("CONTEXT_TARGETING_WRITE_IN_PROGRESS", { retryAfterMs: fault.retryAfterMs });
    return { error, hits: (index) => index >= fault.from, addApplied: false };
  }
  return undefined;
}

interface EventRequest {
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: RequestBody;
  readonly entry: RequestEntry;
}

/**
 * Answers an event (event-tracking-api 4, 5, 7). Adds it to the event log unless too large or stopped by a fault.
 * `forward`: the address of a real event endpoint. The event is sent there as well, and the client gets that answer.
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

/** Adds an event that a person sends from the web page of the sandbox. It triggers no fault and is never forwarded. */
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

/** Throws a RangeError if `base` is not an address to which events can be forwarded. */
export function checkForward(base: string): void {
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw new RangeError(`events cannot be forwarded to "${base}", which is not an http or https address`);
  }
}

const PATIENCE_MS = 30_000;

/** Sends an event to the real event endpoint below `base`. Returns its answer, or a 502 if none comes in 30 seconds. */
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
    const message = `the real endpoint did not answer: ${messageOf(error)}`;
    return { status: 502, message, body: { message } };
  }
}

function answerIn(text: string): { message: string; body: unknown } {
  const body = parseJson(text);
  const begin = text.slice(0, 1024);
  if (body === undefined) return { message: begin, body: { message: begin } };
  return { message: isJsonObject(body) && "message" in body ? String(body.message) : begin, body };
}
