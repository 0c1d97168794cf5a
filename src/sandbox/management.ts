import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../platform/json.ts";
import { ROUTES } from "../spec/routes.ts";
import { busyAnswer, type Fault, replyAfter, replyBefore, waitBefore } from "./faults.ts";
import type { RequestEntry } from "./logs.ts";
import { type Answer, businessAnswer, type Reply, type RequestBody, statusAnswer, validationAnswer } from "./reply.ts";
import { type Applicable, type ManagementOperation, OPERATIONS } from "./rules/operations.ts";
import { businessError, type Interference, type Outcome } from "./rules/outcome.ts";
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
  if (typeof body !== "object" || body === null) return null;
  if ("items" in body && Array.isArray(body.items)) return body.items.length;
  return "ids" in body && Array.isArray(body.ids) ? body.ids.length : null;
}

async function read(work: Work, fault: Fault | undefined): Promise<Reply> {
  await waitBefore(fault, work.world.faults);
  return carryOut(work, undefined);
}

/** Applies a write while it holds the write lock of its project (management-api 4.2). */
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

/** Applies a write after the delay of its fault. Its client has already got a broken connection. */
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
