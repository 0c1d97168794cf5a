import { createHmac, timingSafeEqual } from "node:crypto";
import {
  type CallToolResult,
  type InputRequiredResult,
  inputResponse,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { taskWaitsText } from "../answers/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { DAY_MS } from "../platform/clock.ts";
import { undefinedIf } from "../platform/files.ts";
import type { Run } from "../runs/kind.ts";
import { changedAt } from "../runs/outcome.ts";
import { countsOf } from "../runs/report.ts";
import { DamagedRunError, RunStoreError, type Status } from "../runs/store.ts";
import { ulidBytes, ulidOfBytes, ulidTime } from "../spec/names-and-contexts.ts";
import { cancelRun } from "../tools/cancel-run.ts";
import { decideInClient, type RunQuestion, runQuestion } from "../tools/decide-run.ts";
import { failureAnswer, type ToolAnswer, type ToolContext } from "../tools/define-tool.ts";
import { followResumedRun } from "../tools/get-run.ts";
import { reportRun } from "../tools/run-reports.ts";
import { endIfExpired, waitsForDecision } from "../tools/write/awaiting-decision.ts";
import { progressWords, waitWithinCall } from "../tools/write/within-call.ts";
import { needsOther, resultFor, servicesOfCall } from "./answer-call.ts";
import { canAsk, canOpen, type Declaring, elicitationResult, followsTasks, formRequest, TASKS } from "./elicitation.ts";
import { failureOf, readable } from "./failures.ts";
import { arrivalOf, type ServerParts } from "./server-parts.ts";

// Tasks follow the draft of the extension at commit e4345978be1f of modelcontextprotocol/ext-tasks (2026-08-21). A task
// shows a run of the caller to a client. The client refers to it by a handle. Only the run is stored, not the task.

const TASK_STATUS = {
  planning: "working",
  planned: "completed",
  // If the client cannot ask its person, the status is `working`: the person decides on the web page.
  waiting: "input_required",
  running: "working",
  interrupted: "completed",
  finished: "completed",
  cancelled: "cancelled",
  declined: "completed",
  expired: "completed",
} as const satisfies Readonly<Record<Status, string>>;

const POLL_MS = 1000;

export interface TaskRequest<Call = Declaring & { readonly mcpReq: Pick<ServerContext["mcpReq"], "signal"> }> {
  readonly call: Call & { readonly http?: ServerContext["http"] | undefined };
  readonly parts: ServerParts;
}

/** What a task shows to the client: a whole run, or only its planning, which ends when the plan is ready. */
interface Named {
  readonly runId: string;
  readonly isPlan: boolean;
}

export interface Task extends Readonly<Record<string, unknown>> {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  readonly statusMessage: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
  readonly inputRequests?: Readonly<Record<string, ReturnType<typeof formRequest>>>;
  readonly result?: CallToolResult;
}

/**
 * Turns an answer into a task if its run is stored, even if the run has ended. Returns an answer as is if it has no
 * run, or if a person must approve with its token or in its view.
 */
export async function asTask(
  answer: CallToolResult | InputRequiredResult,
  tool: string,
  request: TaskRequest,
): Promise<CallToolResult | InputRequiredResult> {
  const { data } = runAnswer.safeParse(answer);
  // A person who approves with a token or in a view needs this answer itself, so it does not become a task.
  if (data === undefined || data.structuredContent.confirmation?.token !== undefined || data._meta?.[IN_VIEW]) {
    return answer;
  }
  const context = await contextOf(request);
  const { runId } = data.structuredContent;
  const isUnreadable = (thrown: unknown): boolean => thrown instanceof RunStoreError;
  const task = await undefinedIf(isUnreadable, taskOfCall(runId, tool, context, request));
  if (task === undefined) return answer;
  const { inputRequests, result, ...created } = task;
  // The SDK requires structured content from every tool with an output schema, so an empty object is added.
  return { ...created, resultType: "task", content: [], structuredContent: {} };
}

async function taskOfCall(
  runId: string,
  tool: string,
  context: ToolContext,
  request: TaskRequest,
): Promise<Task | undefined> {
  const run = await context.runs.findOwn(runId, context.caller);
  if (run === undefined) return undefined;
  const goesOn = tool === "apply_plan" || tool === "resume_run";
  const isMadePlan = isChangeRun(run) && run.header.call.tool === "apply_plan";
  const isPlan = !goesOn && (run.header.dryRun === true || isMadePlan);
  const named = { runId, isPlan };
  return taskOf(named, await handleOf(named, context), context, request);
}

const IN_VIEW = "targeting-mcp/decision";
const runAnswer = z.object({
  structuredContent: z.object({
    runId: z.string(),
    confirmation: z.object({ token: z.string().optional() }).optional(),
  }),
  _meta: z.object({ [IN_VIEW]: z.unknown().optional() }).optional(),
});

const asked = z.object({ taskId: z.string() });

type TaskMethod = "tasks/get" | "tasks/update" | "tasks/cancel";

/** Reads or cancels a task, or applies a reply. All handles without a task of the caller get the same ProtocolError. */
export async function answerTask(
  method: TaskMethod,
  params: unknown,
  request: TaskRequest<ServerContext>,
): Promise<Record<string, unknown>> {
  try {
    if (!followsTasks(request.call)) throw needsTasks();
    const { data } = asked.safeParse(params);
    const context = await contextOf(request);
    const named = data && (await namedBy(data.taskId, context));
    if (named === undefined) throw notFound();
    const task = await taskOf(named, data?.taskId ?? "", context, request);
    if (method === "tasks/get") return task;
    if (method === "tasks/cancel" && !isOver(task)) await cancelRun.handler({ runId: named.runId }, context);
    if (method === "tasks/update") {
      const { key, question } = (await questionOf(named.runId, task.taskId, context)) ?? {};
      const said =
        key === undefined ? "closed" : elicitationResult(inputResponse(request.call.mcpReq.inputResponses, key));
      // If the changes must be planned again, the planning may continue after this answer.
      if (question !== undefined && said !== "closed") {
        await waitWithinCall(decideInClient(question, said === "yes", context), context);
      }
    }
    return {};
  } catch (thrown) {
    if (thrown instanceof ProtocolError) throw thrown;
    const { redactor, log } = request.parts;
    const { message } = failureOf(thrown, method, log);
    throw new ProtocolError(ProtocolErrorCode.InternalError, redactor.text(message));
  }
}

export function needsTasks(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
}

export function isOver({ status }: Pick<Task, "status">): boolean {
  return status !== "working" && status !== "input_required";
}

export async function taskNow(taskId: string, request: TaskRequest): Promise<Task | undefined> {
  const context = await contextOf(request);
  const named = await namedBy(taskId, context);
  const isRefused = (thrown: unknown): boolean => thrown instanceof ProtocolError;
  return named && undefinedIf(isRefused, taskOf(named, taskId, context, request));
}

function notFound(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Failed to retrieve task: Task not found");
}

/** Returns the context for a request about a task. Reading one does not wait for its run: the client asks again. */
async function contextOf({ call, parts }: TaskRequest): Promise<ToolContext> {
  const services = await servicesOfCall(parts.services);
  const opens = canOpen(call) && services.page?.address !== undefined;
  return {
    signal: call.mcpReq.signal,
    caller: parts.caller,
    arrivedAt: arrivalOf(call.http?.req) ?? services.clock.now(),
    canAsk: () => !needsOther(services) && !opens && canAsk(call),
    asTask: true,
    ...services,
  };
}

/** Returns a task of the caller. Throws a ProtocolError if its run is not stored. May end the run (see `runOf`). */
async function taskOf(named: Named, taskId: string, context: ToolContext, request: TaskRequest): Promise<Task> {
  const task = {
    taskId,
    createdAt: new Date(ulidTime(named.runId)).toISOString(),
    ttlMs: context.keep.days * DAY_MS,
    pollIntervalMs: POLL_MS,
  };
  const { call, parts } = request;
  const { redactor, views } = parts;
  const linksFiles = call.http === undefined;
  const endedTask = (status: "completed" | "cancelled", answer: ToolAnswer, lastUpdatedAt: string): Task => {
    const [statusMessage = ""] = redactor.text(answer.text).split("\n");
    const about = { ...task, lastUpdatedAt, status, statusMessage };
    return status === "cancelled" ? about : { ...about, result: resultFor(answer, { redactor, linksFiles }) };
  };
  let run: Run | undefined;
  try {
    run = await runOf(named.runId, context);
  } catch (thrown) {
    if (!(thrown instanceof DamagedRunError)) throw thrown;
    const failure = failureOf(thrown, "tasks/get", parts.log);
    return endedTask("completed", failureAnswer(readable(failure), context.environment), task.createdAt);
  }
  if (run === undefined) throw notFound();
  const status = TASK_STATUS[await standingOf(run, named, context)];
  const lastUpdatedAt = new Date(changedAt(run.header, run.state)).toISOString();
  const now = { ...task, lastUpdatedAt };
  if (status === "working") {
    const { items, pending } = countsOf(run.state);
    return { ...now, status, statusMessage: progressWords(items - pending, items) ?? "Planning." };
  }
  if (status === "input_required") {
    const asked = await questionOf(run.header.runId, taskId, context);
    if (asked !== undefined) {
      const request = formRequest(redactor.text(asked.question.message));
      return { ...now, status, statusMessage: "Approval required.", inputRequests: { [asked.key]: request } };
    }
    if (waitsForDecision(run)) {
      return { ...now, status: "working" as const, statusMessage: taskWaitsText(context.page?.address?.()) };
    }
  }
  const answer = await reportRun(run, context);
  const ended = endedTask(status === "cancelled" ? status : "completed", answer, lastUpdatedAt);
  if (views?.metaOf(run.header.call.tool) === undefined || ended.result === undefined) return ended;
  return { ...ended, result: { ...ended.result, _meta: { ...(await views.beside(answer, context)) } } };
}

/** Returns the run of a task or, if it only asked for approval to resume a run, that run. Ends it if it has expired. */
async function runOf(runId: string, context: ToolContext): Promise<Run | undefined> {
  const run = await context.runs.findOwn(runId, context.caller);
  return run && followResumedRun(await endIfExpired(run, context), context);
}

/** Returns the status of a run. A run of a killed process is interrupted, unless another process may continue it. */
async function standingOf(run: Run, { isPlan }: Named, { runs }: ToolContext): Promise<Status> {
  const { runId } = run.header;
  const stored = (await runs.storedStatus(runId)) ?? "finished";
  const isUnfinished = stored === "planning" || stored === "running";
  if (isPlan && stored !== "planning" && stored !== "cancelled") return "planned";
  // A run that is stored as finished still counts as running while this process does its last steps.
  if (!isUnfinished && run.status() === "running") return "running";
  if (!isUnfinished || run.status() !== "interrupted" || (await runs.isToBeClaimed(runId))) return stored;
  return "interrupted";
}

/** Returns the question that the person of a task must answer. `key` names the question, and is unique to this task. */
async function questionOf(
  runId: string,
  taskId: string,
  context: ToolContext,
): Promise<{ readonly key: string; readonly question: RunQuestion } | undefined> {
  const question = context.canAsk() ? await runQuestion(runId, context) : undefined;
  if (question === undefined) return undefined;
  const key = await markOf(["question", taskId, question.digest], context);
  return { key: `confirm-${key.toString("base64url")}`, question };
}

const RUN_BYTES = 16;
const MARK_BYTES = 16;

/** Returns the handle of a task. Only this caller can use it, and only in this project. It cannot be guessed. */
async function handleOf({ runId, isPlan }: Named, context: ToolContext): Promise<string> {
  const mark = await markOf(["task", runId, isPlan, context.caller, context.project.id], context);
  return Buffer.concat([ulidBytes(runId), Buffer.of(Number(isPlan)), mark]).toString("base64url");
}

async function namedBy(taskId: string, context: ToolContext): Promise<Named | undefined> {
  const bytes = Buffer.from(taskId, "base64url");
  if (bytes.length !== RUN_BYTES + 1 + MARK_BYTES) return undefined;
  const named = { runId: ulidOfBytes(bytes.subarray(0, RUN_BYTES)), isPlan: bytes[RUN_BYTES] === 1 };
  const own = Buffer.from(await handleOf(named, context));
  const given = Buffer.from(taskId);
  return own.length === given.length && timingSafeEqual(own, given) ? named : undefined;
}

async function markOf(about: readonly unknown[], { sealKey }: Pick<ToolContext, "sealKey">): Promise<Buffer> {
  const text = JSON.stringify(about);
  return createHmac("sha256", await sealKey())
    .update(text)
    .digest()
    .subarray(0, MARK_BYTES);
}
