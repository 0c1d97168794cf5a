import { basename, delimiter, isAbsolute } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import {
  type CallToolResult,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { UNDECIDED_WORDS } from "../answers/approvals.ts";
import type { Redactor } from "../answers/redact.ts";
import { allowingWords } from "../answers/request-messages.ts";
import { isObject } from "../api/answers.ts";
import { type RootGuard, usableRoots } from "../files/folders.ts";
import { auditCall, isAudited } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import { duringCall } from "../platform/clock.ts";
import { FolderRefused } from "../platform/files.ts";
import type { Requested } from "../runs/kind-runs.ts";
import { checkNotHalf } from "../tools/apis.ts";
import { LEAST_READ_MS, type Reply, type ToolContext, type ToolServices, timeLeft } from "../tools/context.ts";
import {
  once,
  type ToolAnswer,
  ToolError,
  type ToolOutcome,
  type ToolQuestion,
  type Undecided,
  type UndecidedAnswer,
} from "../tools/define-tool.ts";
import { mayDecideInView } from "../tools/write/confirmation-token.ts";
import { atMostOneWait } from "../tools/write/follow-run.ts";
import { cutAtIssueLimit, describeIssues, unknownArguments, unknownWords } from "./argument-errors.ts";
import { arrivalOf } from "./calls-under-way.ts";
import {
  asking,
  askOlder,
  canAsk,
  canOpen,
  declaredIn,
  type ElicitationResult,
  isModern,
  replyTo,
} from "./elicitation.ts";
import { failureAnswer, type SummarizedFailure } from "./failure-answer.ts";
import { failureOf } from "./failures.ts";
import type { Opener, Opening } from "./open-page.ts";
import { DEEPEST, isTooDeep, parseStringifiedArguments, withoutAbsent, withUpperIds } from "./read-arguments.ts";
import type { ServerParts } from "./server-parts.ts";
import type { ListedTool } from "./tool-list.ts";

/** The parts of a server that calls are answered with. */
type CallParts = Pick<
  ServerParts,
  "services" | "seal" | "redactor" | "log" | "audit" | "caller" | "views" | "goesOn" | "rootGuard"
>;

const TOO_DEEP = new ToolError(
  `the arguments are more than ${DEEPEST} levels deep, and no tool takes that; nothing was done`,
  "Give them as the tool's schema shows.",
);

/** Arguments are kept in the files of runs, which must never hold keys. */
const KEY_IN_ARGUMENTS = new ToolError(
  "the arguments hold a key or token of this server; nothing was done",
  "Leave it out: this server adds its keys by itself.",
);

/** A tool call as the SDK passes it on. */
export interface Called {
  readonly given: unknown;
  readonly call: ServerContext;
  readonly requestId: string;
  /** Whether the client follows the run of the call as a task. */
  readonly asTask?: boolean;
}

/** The first revision whose clients know links to resources in results. */
const LINKS_SINCE = "2025-06-18";

/** An answer as the result of a call. Over stdio, where client and server see the same files, it links what was saved. */
export function resultFor(
  { structured, text, isError }: ToolAnswer,
  { redactor, call, server }: { readonly redactor: Redactor; readonly call: ServerContext; readonly server: McpServer },
): CallToolResult {
  const knowsLinks = (server.server.getNegotiatedProtocolVersion() ?? "") >= LINKS_SINCE;
  const saved = call.http === undefined && knowsLinks ? [structured.savedTo, structured.base] : [];
  const links = saved.flatMap((path) =>
    typeof path === "string" && isAbsolute(path)
      ? [
          {
            type: "resource_link" as const,
            uri: redactor.text(pathToFileURL(path).href),
            name: redactor.text(basename(path)),
          },
        ]
      : [],
  );
  return {
    content: [{ type: "text", text: redactor.text(text) }, ...links],
    structuredContent: redactor.record(structured),
    isError,
  };
}

/** Carries a tool call out, and answers it; a failure is an answer, too. */
export async function answerCall(
  listed: ListedTool,
  { given, call, requestId, asTask = false }: Called,
  server: McpServer,
  { services: load, seal, redactor, log, audit, caller, views: allViews, goesOn, rootGuard }: CallParts,
): Promise<CallToolResult | InputRequiredResult> {
  const { tool } = listed;
  const services = await servicesOfCall(load);
  const views = allViews?.metaOf(tool.name) && allViews;
  const resultOf = (answer: ToolAnswer) => resultFor(answer, { redactor, call, server });
  const failed = (failure: SummarizedFailure) => resultOf(failureAnswer(failure, services.environment));
  const written = (answer: ToolAnswer | undefined): void => {
    if (isAudited(tool)) auditCall(audit, { tool, caller, requestId, services }, answer?.structured);
  };
  try {
    checkNotHalf(tool.toolset, services);
    const prepared = await checked(listed, given, redactor);
    if (!prepared.fits) {
      return failed({ message: `${tool.name}: ${prepared.words}` });
    }
    const asked = { tool: tool.name, input: prepared.input };
    const isAsked = !needsOther(services);
    const said = isAsked ? replyTo(call, asked) : undefined;
    const opener =
      canOpen(call, server) && opensPages(services)
        ? await openerOf({ call, server, mayAsk: isAsked, redactor })
        : undefined;
    const roots = rootsOf(call, server, rootGuard);
    const context = {
      signal: call.mcpReq.signal,
      caller,
      requested: requestedBy(server, prepared.input),
      ...(goesOn && { goesOn }),
      roots: roots?.folders,
      arrivedAt: arrivalOf(call.http?.req) ?? services.clock.now(),
      // A client that opens the page is asked in a form only after that.
      canAsk: () => isAsked && opener === undefined && canAsk(call, server),
      ...(opener && { opens: opener.opens }),
      inView: views !== undefined && mayDecideInView(services),
      asTask,
      ...progressOf(call, log),
      // Spread last: adding fields to an object of this size after the spread is slow.
      ...services,
    };
    const run = (reply?: Reply): Promise<ToolOutcome> =>
      prepared.run(reply === undefined ? context : { ...context, reply });
    const outcome = await inTime(context, async () => {
      const opened = await opener?.goOn(asked, context);
      if (opened !== undefined) return opened;
      let found = await run(said === "closed" ? undefined : said);
      for (let round = 1; "ask" in found; round += 1) {
        const { ask }: ToolQuestion = { ask: { ...found.ask, message: redactor.text(found.ask.message) } };
        if (said === "closed") found = (await answerWithoutDecision({ ask }, "closed", context)).answer;
        else if (isModern(call)) return { ask };
        else found = await askDuringCall({ ask }, { context, call, run, round, log });
      }
      return found;
    });
    if ("ask" in outcome) return await asking(outcome, seal, call, asked, roots?.again());
    const toOpen = "digest" in outcome ? outcome : outcome.opens;
    if (opener !== undefined && toOpen !== undefined) return await opener.asking(toOpen, seal, asked, context);
    if ("digest" in outcome) throw new Error("a question about a run has no client to go to");
    await opener?.complete(outcome);
    written(outcome);
    const result = resultOf(outcome);
    return views === undefined ? result : { ...result, _meta: { ...(await views.beside(outcome, context)) } };
  } catch (thrown) {
    if (thrown instanceof RootsNeeded) return askingRoots();
    written(undefined);
    // The client has cancelled the call: it ignores the answer, and the error is only that cancellation.
    if (call.mcpReq.signal.aborted) return failed({ message: "the call was cancelled" });
    if (thrown instanceof FolderRefused) {
      const client = call.http === undefined ? (server.server.getClientVersion()?.name ?? "") : undefined;
      const { path, message, remedy } = thrown;
      const { allowedDirs } = services;
      const words = allowingWords({ client, path, allowedDirs }, delimiter);
      return failed({ message, remedy: allowedDirs.length === 0 ? words : `${remedy} ${words}` });
    }
    return failed(failureOf(thrown, tool.name, toldToClient(log.with({ requestId }), call)));
  }
}

/** The longest name of a client or file that is stored. */
const MOST_LETTERS = { client: 40, fileName: 120 } as const;

/** What a call says of itself, for people: what its client calls itself, which proves nothing, and the name of its file. */
function requestedBy(server: McpServer, input: unknown): Requested {
  const client = server.server.getClientVersion()?.name;
  const file = isObject(input) ? input.file : undefined;
  const fileName = typeof file === "string" ? file.split(/[\\/]/).at(-1) : undefined;
  return {
    ...(client && { client: client.slice(0, MOST_LETTERS.client) }),
    ...(fileName && { fileName: fileName.slice(0, MOST_LETTERS.fileName) }),
  };
}

/** The part of a call's wait that is left for what it asks a shared store at its end, in milliseconds. */
const STORE_MS = 500;

/** Over a shared store, whatever a call waits for ends before its wait does, so that the store can still be asked. */
function leavingTime(services: ToolServices): ToolServices {
  if (services.runs.left === undefined) return services;
  return { ...services, waitMs: Math.max(0, services.waitMs - STORE_MS) };
}

type InTime = Pick<ToolContext, "runs" | "clock" | "arrivedAt" | "waitMs">;

/** Carries a call out. Only a shared store may stay away for longer than a call waits: then that ends with the wait. */
function inTime<T>({ runs, clock, ...call }: InTime, work: () => Promise<T>): Promise<T> {
  if (runs.left === undefined) return work();
  return duringCall(clock.monotonic() + Math.max(timeLeft({ ...call, clock }) + STORE_MS, LEAST_READ_MS), work);
}

/** Whether there is a page at an address that lets nobody in by itself, and a person who may approve there. */
function opensPages({ confirm, page }: ToolServices): boolean {
  return confirm !== "off" && page?.address !== undefined && page.isOffered();
}

/** Loaded late: few clients open pages. */
async function openerOf(opening: Opening): Promise<Opener> {
  const { pageOpener } = await import("./open-page.ts");
  return pageOpener(opening);
}

/** What a call is carried out with. */
export async function servicesOfCall(load: () => Promise<ToolServices>): Promise<ToolServices> {
  return leavingTime(withApprovalPolicy(await load()));
}

/** Whether only another person than the caller may approve what this call asks for. */
export function needsOther({ page }: ToolServices): boolean {
  return page?.needsOther?.() === true;
}

/** Where another person has to approve, what comes from the caller's own client is no yes: the page alone decides. */
function withApprovalPolicy(services: ToolServices): ToolServices {
  if (!needsOther(services) || services.confirm === "off") return services;
  return { ...services, confirm: "strict", trustViews: false };
}

/**
 * A log that also sends its errors to a 2025-era client that subscribed to them by `logging/setLevel`. Details stay in
 * the server's own log.
 */
function toldToClient(log: Log, call: ServerContext): Log {
  return {
    ...log,
    error(message, fields = {}) {
      log.error(message, fields);
      // The client sees the tool, and the ID of the fault in the server's own log.
      const { tool, fault } = fields;
      call.mcpReq
        .log("error", { message, tool, fault }, "targeting-mcp")
        .catch((error: unknown) => log.debug("an error could not be reported to the client", { error }));
    },
    with: (fields) => toldToClient(log.with(fields), call),
  };
}

/** Reports progress to clients that gave a token for it. A notification that cannot be sent is only logged. */
function progressOf(call: ServerContext, log: Log): Pick<ToolContext, "progress"> {
  const progressToken = call.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return {};
  return {
    progress: (progress, total, message) => {
      const params = { progressToken, progress, total, ...(message !== undefined && { message }) };
      call.mcpReq
        .notify({ method: "notifications/progress", params })
        .catch((error: unknown) => log.debug("progress could not be sent", { error }));
    },
  };
}

/**
 * Checks arguments: gives them ready to run, or words that say what is wrong. Arguments that do not fit as given are
 * read a second time as they were probably meant. Unknown names are refused before any value is read. Throws a
 * ToolError for arguments that are too deep or hold a key.
 */
async function checked({ prepare: prepared, inputSchema }: ListedTool, sent: unknown, redactor: Redactor) {
  const schema = inputSchema();
  const prepare = async (args: unknown) => {
    const looked = cutAtIssueLimit(args, schema);
    const found = await prepared(looked);
    const isCut = looked !== args;
    // A cut copy of the arguments must never run in place of the whole.
    return found.fits && isCut ? { ...(await prepared(args)), isCut: false } : { ...found, isCut };
  };
  const refused = (words: string) => ({ fits: false, words }) as const;
  const unknown = unknownArguments(sent, schema);
  if (redactor.holds(unknown)) throw KEY_IN_ARGUMENTS;
  if (unknown.length > 0) return refused(unknownWords(unknown, [], schema));
  if (isTooDeep(sent)) throw TOO_DEEP;
  const given = withUpperIds(withoutAbsent(sent, schema));
  if (redactor.holds(given)) throw KEY_IN_ARGUMENTS;
  // Large arguments take long at each step: between two of them other callers get their turn.
  await nextTurn();
  const asGiven = await prepare(given);
  await nextTurn();
  if (asGiven.fits) return asGiven;
  const read = parseStringifiedArguments(given, schema);
  const validated = await prepare(read);
  return validated.fits ? validated : refused(describeIssues(validated.issues, read, schema, validated.isCut));
}

/** How often one call may ask: each reply can lead to another question, since the plan may change meanwhile. */
const MOST_ROUNDS = 8;

/** A call that may ask, and how it goes on with the reply. */
interface Asking {
  readonly context: ToolContext;
  readonly call: ServerContext;
  readonly run: (reply: Reply) => Promise<ToolOutcome>;
  /** How often this call has asked, this time included. */
  readonly round: number;
  readonly log: Log;
}

/**
 * Asks the person behind a 2025-era client while the call waits, for at most the wait of a call. Without a reply by
 * then the call is answered; a later yes still counts, where the tool can act on it. A question that the client closes
 * decides nothing.
 */
export async function askDuringCall(question: ToolQuestion, asking: Asking): Promise<ToolOutcome> {
  const { context, call, run, round, log } = asking;
  const open = askOlder(call, question.ask.message);
  call.mcpReq.signal.addEventListener("abort", open.end, { once: true });
  let said: ElicitationResult | undefined;
  const noted = open.said.then((decision) => {
    said = decision;
  });
  await atMostOneWait(noted, context);
  call.mcpReq.signal.removeEventListener("abort", open.end);
  call.mcpReq.signal.throwIfAborted();
  if (said === "yes" || said === "no") {
    if (round < MOST_ROUNDS) return run({ token: question.ask.token, accepted: said === "yes" });
    said = "closed";
  }
  const { answer, later } = await answerWithoutDecision(question, said ?? "unanswered", context);
  if (later === undefined) open.end();
  else {
    open.said
      .then((decision) => (decision === "closed" ? undefined : later(decision === "yes")))
      .catch((error: unknown) => log.error("a late answer to a question could not be acted on", { error }));
  }
  return answer;
}

/** The answer to a call whose question has no decision yet. */
export async function answerWithoutDecision(
  { ask }: ToolQuestion,
  why: Undecided,
  { environment }: Pick<ToolContext, "environment">,
): Promise<UndecidedAnswer> {
  if (why === "closed" && ask.onPage !== undefined) return { answer: await ask.onPage() };
  if (ask.undecided !== undefined) return ask.undecided(why);
  const note = `${UNDECIDED_WORDS[why]}: nothing was done`;
  const step = "ask the person, and make the call again once they want it";
  return {
    answer: {
      structured: { environment, status: "needs_confirmation", notes: [note], nextSteps: [step] },
      text: `Approval required; nothing was sent. ${note.charAt(0).toUpperCase()}${note.slice(1)}.\nNext: ${step}`,
      isError: false,
    },
  };
}

const declared = z.object({ roots: z.unknown().refine((roots) => roots !== undefined) });
const answered = z.object({ roots: z.array(z.object({ uri: z.string() })) });

/** How long a client may take to say its roots, in milliseconds. */
const ROOTS_MS = 5000;

/** The name of the request for roots in the protocol. */
const ROOTS = "roots";

/** Thrown where a call needs the roots of a client of the 2026-07-28 era, which makes it again with them. */
export class RootsNeeded extends Error {}

/** The roots of a client in one call. */
export interface ClientRoots {
  /** The folders that may be read for the client. Throws a RootsNeeded where the call does not have its roots yet. */
  readonly folders: () => Promise<readonly string[]>;
  /** The request for the roots, where the call has used them: what it is answered with needs them again. */
  readonly again: () => Readonly<Record<string, InputRequest>>;
}

/**
 * What gets the roots of a client, once in a call; undefined where it has none. A 2025-era client is asked during the
 * call; one of the 2026-07-28 era is answered with the request, and makes the call again.
 */
export function rootsOf(
  call: ServerContext,
  server: McpServer,
  guard: (() => Promise<RootGuard>) | undefined,
): ClientRoots | undefined {
  const modern = declaredIn(call);
  if (guard === undefined || !declared.safeParse(modern ?? server.server.getClientCapabilities()).success) {
    return undefined;
  }
  let isUsed = false;
  const folders = once(async () => {
    isUsed = true;
    const said = modern === undefined ? await askedDuring(call) : repliedIn(call);
    const { roots } = answered.safeParse(said).data ?? { roots: [] };
    return roots.length === 0
      ? []
      : usableRoots(
          roots.map(({ uri }) => uri),
          await guard(),
        );
  });
  return { folders, again: () => (modern !== undefined && isUsed ? rootsRequest() : {}) };
}

function askedDuring(call: ServerContext): Promise<unknown> {
  return call.mcpReq.send({ method: "roots/list" }, { timeout: ROOTS_MS }).catch(() => undefined);
}

/** A call that was made again without roots has none: it is not asked twice. */
function repliedIn({ mcpReq: { inputResponses } }: ServerContext): unknown {
  if (inputResponses === undefined) throw new RootsNeeded();
  return inputResponses[ROOTS];
}

function rootsRequest() {
  return { [ROOTS]: inputRequired.listRoots() };
}

/** The result by which a client of the 2026-07-28 era is asked for its roots. */
export function askingRoots(): InputRequiredResult {
  return inputRequired({ inputRequests: rootsRequest() });
}
