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
import type { Redactor } from "../answers/fence.ts";
import { allowFolderRemedy } from "../answers/request-messages.ts";
import { type RootGuard, usableRoots } from "../files/folders.ts";
import { auditCall, isAudited } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import { duringCall } from "../platform/clock.ts";
import { FolderRefused } from "../platform/files.ts";
import { isJsonObject } from "../platform/json.ts";
import type { Requested } from "../runs/kind-runs.ts";
import { checkSettingsComplete } from "../tools/apis.ts";
import {
  failureAnswer,
  LEAST_READ_MS,
  once,
  type Reply,
  type SummarizedFailure,
  type ToolAnswer,
  type ToolContext,
  ToolError,
  type ToolOutcome,
  type ToolQuestion,
  type ToolServices,
  timeLeft,
  type Undecided,
  type UndecidedAnswer,
} from "../tools/define-tool.ts";
import { mayDecideInView } from "../tools/write/confirmation-token.ts";
import { waitWithinCall } from "../tools/write/within-call.ts";
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
import { failureOf, readable } from "./failures.ts";
import {
  cutAtIssueLimit,
  DEEPEST,
  describeIssues,
  isTooDeep,
  parseStringifiedArguments,
  unknownArguments,
  unknownWords,
  withoutAbsent,
  withUpperIds,
} from "./read-arguments.ts";
import { arrivalOf, type ListedTool, type ServerParts } from "./server-parts.ts";

type CallParts = Pick<
  ServerParts,
  "services" | "seal" | "redactor" | "log" | "audit" | "caller" | "views" | "goesOn" | "rootGuard"
>;

const TOO_DEEP = new ToolError(
  `the arguments are nested more than ${DEEPEST} levels deep, which no tool accepts; nothing was done`,
  "Give them as the tool's schema shows.",
);

/** The error if the arguments contain a key of this server, because arguments are stored and keys must not be. */
const KEY_IN_ARGUMENTS = new ToolError(
  "the arguments contain a key or token of this server; nothing was done",
  "Remove it: this server adds its keys itself.",
);

export interface Called {
  readonly given: unknown;
  readonly call: ServerContext;
  readonly requestId: string;
  readonly asTask?: boolean;
}

const LINKS_SINCE = "2025-06-18";

/** Converts an answer to a result without secrets. `linksFiles`: adds links to files saved on this machine. */
export function resultFor(
  { structured, text, isError }: ToolAnswer,
  { redactor, linksFiles }: { readonly redactor: Redactor; readonly linksFiles: boolean },
): CallToolResult {
  const saved = linksFiles ? [structured.savedTo, structured.base] : [];
  const links = saved
    .filter((path) => typeof path === "string")
    .filter((path) => isAbsolute(path))
    .map((path) => ({
      type: "resource_link" as const,
      uri: redactor.text(pathToFileURL(path).href),
      name: redactor.text(basename(path)),
    }));
  return {
    content: [{ type: "text", text: redactor.text(text) }, ...links],
    structuredContent: redactor.record(structured),
    isError,
  };
}

/** Executes a tool call. Errors of the tool become answers. */
export async function answerCall(
  listed: ListedTool,
  { given, call, requestId, asTask = false }: Called,
  server: McpServer,
  { services: load, seal, redactor, log, audit, caller, views: allViews, goesOn, rootGuard }: CallParts,
): Promise<CallToolResult | InputRequiredResult> {
  const { tool } = listed;
  const services = await servicesOfCall(load);
  const views = allViews?.metaOf(tool.name) && allViews;
  const knowsLinks = (server.server.getNegotiatedProtocolVersion() ?? "") >= LINKS_SINCE;
  const linksFiles = call.http === undefined && knowsLinks;
  const resultOf = (answer: ToolAnswer) => resultFor(answer, { redactor, linksFiles });
  const failed = (failure: SummarizedFailure) =>
    resultOf(failureAnswer(readable(failure, ownTexts(given, services)), services.environment));
  const written = (answer: ToolAnswer | undefined): void => {
    if (isAudited(tool)) auditCall(audit, { tool, caller, requestId, services }, answer?.structured);
  };
  try {
    checkSettingsComplete(tool.toolset, services);
    const prepared = await checked(listed, given, redactor);
    if (!prepared.fits) return failed({ message: `${tool.name}: ${prepared.words}` });
    const asked = { tool: tool.name, input: prepared.input };
    const isAsked = !needsOther(services);
    const said = isAsked ? replyTo(call, asked) : undefined;
    // Imported only when needed, because few clients can open pages.
    const opener =
      canOpen(call, server) && opensPages(services)
        ? (await import("./open-page.ts")).pageOpener({ call, server, mayAsk: isAsked, redactor })
        : undefined;
    const roots = rootsOf(call, server, rootGuard);
    const context = {
      signal: call.mcpReq.signal,
      caller,
      requested: requestedBy(server, prepared.input),
      ...(goesOn && { goesOn }),
      roots: roots?.folders,
      arrivedAt: arrivalOf(call.http?.req) ?? services.clock.now(),
      // A client that can open the web page is first asked to do so. Only after that may it be asked to show a form.
      canAsk: () => isAsked && opener === undefined && canAsk(call, server),
      ...(opener && { opens: opener.opens }),
      inView: views !== undefined && mayDecideInView(services),
      asTask,
      ...progressOf(call, log),
      // `services` is spread last, because adding fields to an object with so many fields is slow.
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
    if ("digest" in outcome) throw new Error("a question about a run needs a client that can open a page");
    await opener?.complete(outcome);
    written(outcome);
    const result = resultOf(outcome);
    return views === undefined ? result : { ...result, _meta: { ...(await views.beside(outcome, context)) } };
  } catch (thrown) {
    if (thrown instanceof RootsNeeded) return inputRequired({ inputRequests: rootsRequest() });
    written(undefined);
    // The call failed because it was cancelled. Its client ignores the answer.
    if (call.mcpReq.signal.aborted) return failed({ message: "the call was cancelled" });
    if (thrown instanceof FolderRefused) {
      const client = call.http === undefined ? (server.server.getClientVersion()?.name ?? "") : undefined;
      const { path, message, remedy } = thrown;
      const { allowedDirs } = services;
      const isForSaving = isJsonObject(given) && given.saveTo === path;
      const words = allowFolderRemedy({ client, path, allowedDirs, isForSaving }, delimiter);
      return failed({ message, remedy: allowedDirs.length === 0 ? words : `${remedy} ${words}` });
    }
    return failed(failureOf(thrown, tool.name, alsoToClient(log.with({ requestId }), call)));
  }
}

/** Returns texts from the call and the settings, which errors may quote without <untrusted> marks. */
function ownTexts(given: unknown, { allowedDirs }: Pick<ToolServices, "allowedDirs">): readonly string[] {
  const texts = isJsonObject(given) ? Object.values(given).filter((value) => typeof value === "string") : [];
  return [...allowedDirs, ...texts].filter((text) => text !== "");
}

const MAX_LETTERS = { client: 40, fileName: 120 } as const;

/** Returns what an approver sees about the origin of a call: the names of the client (not verified) and the file. */
function requestedBy(server: McpServer, input: unknown): Requested {
  const client = server.server.getClientVersion()?.name;
  const file = isJsonObject(input) ? (input.file ?? input.saveTo) : undefined;
  const fileName = typeof file === "string" ? file.split(/[\\/]/).at(-1) : undefined;
  return {
    ...(client && { client: client.slice(0, MAX_LETTERS.client) }),
    ...(fileName && { fileName: fileName.slice(0, MAX_LETTERS.fileName) }),
  };
}

const STORE_MS = 500;

type InTime = Pick<ToolContext, "runs" | "clock" | "arrivedAt" | "waitMs">;

/** With a shared store, ends the call at its maximum wait even if the store hangs. Else, `work` limits the wait. */
function inTime<T>({ runs, clock, ...call }: InTime, work: () => Promise<T>): Promise<T> {
  if (runs.left === undefined) return work();
  return duringCall(clock.monotonic() + Math.max(timeLeft({ ...call, clock }) + STORE_MS, LEAST_READ_MS), work);
}

/** Returns whether clients may open the page: people can approve there, and its address alone gives no access. */
function opensPages({ confirm, page }: ToolServices): boolean {
  return confirm !== "off" && page?.address !== undefined && page.isOffered();
}

export async function servicesOfCall(load: () => Promise<ToolServices>): Promise<ToolServices> {
  const services = await load();
  // If another person must approve this caller's changes, only the web page can be used for that.
  const isOnlyOnPage = needsOther(services) && services.confirm !== "off";
  return {
    ...services,
    ...(isOnlyOnPage && { confirm: "strict", trustViews: false }),
    // With a shared store, the wait is shorter, to leave time for the last request to the store.
    ...(services.runs.left !== undefined && { waitMs: Math.max(0, services.waitMs - STORE_MS) }),
  };
}

export function needsOther({ page }: ToolServices): boolean {
  return page?.needsOther?.() === true;
}

/** Returns a log that also sends errors, without details, to clients of versions before 2026-07-28. */
function alsoToClient(log: Log, call: ServerContext): Log {
  return {
    ...log,
    error(message, fields = {}) {
      log.error(message, fields);
      // The client gets only the tool and the ID of the error. The server's own log has the details under this ID.
      const { tool, fault } = fields;
      call.mcpReq
        .log("error", { message, tool, fault }, "targeting-mcp")
        .catch((error: unknown) => log.debug("an error could not be reported to the client", { error }));
    },
    with: (fields) => alsoToClient(log.with(fields), call),
  };
}

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
 * Returns arguments that are ready to run, or a text with their problems. If they do not match the schema, first tries
 * to correct them. Throws a ToolError if they contain a key, are nested too deeply or hold unusable JSON texts.
 */
async function checked({ tool, prepare: prepared, inputSchema }: ListedTool, sent: unknown, redactor: Redactor) {
  const schema = inputSchema();
  const prepare = async (args: unknown) => {
    const looked = cutAtIssueLimit(args, schema);
    const found = await prepared(looked);
    const isCut = looked !== args;
    return found.fits && isCut ? { ...(await prepared(args)), isCut: false } : { ...found, isCut };
  };
  const refused = (words: string) => ({ fits: false, words }) as const;
  const unknown = unknownArguments(sent, schema);
  if (redactor.holds(unknown)) throw KEY_IN_ARGUMENTS;
  if (unknown.length > 0) {
    const isFileToDelete = tool.name === "delete_options" && unknown.includes("file");
    return refused(unknownWords(unknown, [], schema) + (isFileToDelete ? DELETE_BY_FILE : ""));
  }
  if (isTooDeep(sent)) throw TOO_DEEP;
  const given = withUpperIds(withoutAbsent(sent, schema));
  if (redactor.holds(given)) throw KEY_IN_ARGUMENTS;
  // Each step may take long for large arguments. In between, other callers' requests can continue.
  await nextTurn();
  const asGiven = await prepare(given);
  await nextTurn();
  if (asGiven.fits) return asGiven;
  const read = parseStringifiedArguments(given, schema);
  const validated = await prepare(read);
  return validated.fits ? validated : refused(describeIssues(validated.issues, read, schema, validated.isCut));
}

const DELETE_BY_FILE =
  ". To delete the options in a file: plan_targeting. Rows need the Option ID, and Remove in the column Action";

/** How often a person is asked in one call if the effect changes after each reply. The last reply does not count. */
const MAX_ROUNDS = 8;

interface Asking {
  readonly context: ToolContext;
  readonly call: ServerContext;
  readonly run: (reply: Reply) => Promise<ToolOutcome>;
  readonly round: number;
  readonly log: Log;
}

/** Asks the person of a 2025 client while the call may wait. If the tool allows it, a later decision counts, too. */
async function askDuringCall(question: ToolQuestion, asking: Asking): Promise<ToolOutcome> {
  const { context, call, run, round, log } = asking;
  const open = askOlder(call, question.ask.message);
  call.mcpReq.signal.addEventListener("abort", open.end, { once: true });
  let said: ElicitationResult | undefined;
  const noted = open.said.then((decision) => {
    said = decision;
  });
  await waitWithinCall(noted, context);
  call.mcpReq.signal.removeEventListener("abort", open.end);
  call.mcpReq.signal.throwIfAborted();
  if (said === "yes" || said === "no") {
    if (round < MAX_ROUNDS) return run({ token: question.ask.token, accepted: said === "yes" });
    said = "closed";
  }
  const { answer, later } = await answerWithoutDecision(question, said ?? "unanswered", context);
  if (later === undefined) open.end();
  else {
    open.said
      .then((decision) => (decision === "closed" ? undefined : later(decision === "yes")))
      .catch((error: unknown) => log.error("a late answer to a question could not be applied", { error }));
  }
  return answer;
}

async function answerWithoutDecision(
  { ask }: ToolQuestion,
  why: Undecided,
  { environment }: Pick<ToolContext, "environment">,
): Promise<UndecidedAnswer> {
  if (why === "closed" && ask.onPage !== undefined) return { answer: await ask.onPage() };
  if (ask.undecided !== undefined) return ask.undecided(why);
  const note = `${UNDECIDED_WORDS[why]}: nothing was done`;
  const step = "ask the person, and repeat the call if they approve";
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

const ROOTS_MS = 5000;

const ROOTS = "roots";

/** Thrown if a call of version 2026-07-28 needs the client's roots. The client then repeats the call with them. */
class RootsNeeded extends Error {}

/**
 * Returns functions that read a client's roots. In protocol version 2026-07-28, the repeated call contains them. In
 * earlier versions, the client is asked during the call. Undefined if the client has no roots or they are ignored.
 */
function rootsOf(call: ServerContext, server: McpServer, guard: (() => Promise<RootGuard>) | undefined) {
  const modern = declaredIn(call);
  if (guard === undefined || !declared.safeParse(modern ?? server.server.getClientCapabilities()).success) {
    return undefined;
  }
  let isUsed = false;
  /** Returns the client's folders that the call may use. Throws a RootsNeeded if they must be sent first. */
  const folders = once(async (): Promise<readonly string[]> => {
    isUsed = true;
    const { inputResponses } = call.mcpReq;
    // If a call that the client repeats contains no roots, it counts as having none and is not asked again.
    if (modern !== undefined && inputResponses === undefined) throw new RootsNeeded();
    const said: unknown =
      modern !== undefined
        ? inputResponses?.[ROOTS]
        : await call.mcpReq.send({ method: "roots/list" }, { timeout: ROOTS_MS }).catch(() => undefined);
    const { roots } = answered.safeParse(said).data ?? { roots: [] };
    const uris = roots.map(({ uri }) => uri);
    return uris.length === 0 ? [] : usableRoots(uris, await guard());
  });
  /**
   * If the call has used the roots, returns a request for them. Roots are not stored: if the client has to repeat the
   * call, for example with a person's answer, it must send them again.
   */
  const again = (): Readonly<Record<string, InputRequest>> => (modern !== undefined && isUsed ? rootsRequest() : {});
  return { folders, again };
}

function rootsRequest() {
  return { [ROOTS]: inputRequired.listRoots() };
}
