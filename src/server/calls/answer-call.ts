import { basename, delimiter, isAbsolute } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { CallToolResult, InputRequiredResult, McpServer, ServerContext } from "@modelcontextprotocol/server";
import { isObject } from "../../api/answers.ts";
import { duringCall } from "../../platform/clock.ts";
import { FolderRefused } from "../../platform/files.ts";
import type { Redactor } from "../../render/redact.ts";
import { allowingWords } from "../../render/request-messages.ts";
import type { Requested } from "../../runs/kind-runs.ts";
import { checkNotHalf } from "../../tools/apis.ts";
import { LEAST_READ_MS, type Reply, type ToolContext, type ToolServices, timeLeft } from "../../tools/context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type ToolQuestion } from "../../tools/definition.ts";
import { mayDecideInView } from "../../tools/writing/confirmation-token.ts";
import { withoutAbsent, withUpperIds } from "../arguments/absent.ts";
import { argumentWords, unknownArguments, unknownWords } from "../arguments/argument-words.ts";
import { upToMisfits } from "../arguments/misfits.ts";
import { DEEPEST, isTooDeep, understood } from "../arguments/understand.ts";
import { asking, canAsk, canOpen, isModern, replyTo } from "../asking/ask.ts";
import { askDuringCall, undecided } from "../asking/ask-during-call.ts";
import type { Opener, Opening } from "../asking/open-page.ts";
import { askingRoots, RootsNeeded, rootsOf } from "../asking/roots.ts";
import type { ListedTool } from "../listing.ts";
import type { Log } from "../log.ts";
import type { ServerParts } from "../server-parts.ts";
import { arrivalOf } from "./arrivals.ts";
import { auditCall, isAudited } from "./audit.ts";
import { failureAnswer, type SummarizedFailure } from "./failure-answer.ts";
import { failureOf } from "./failures.ts";

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
        if (said === "closed") found = (await undecided({ ask }, "closed", context)).answer;
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
  const { pageOpener } = await import("../asking/open-page.ts");
  return pageOpener(opening);
}

/** What a call is carried out with. */
export async function servicesOfCall(load: () => Promise<ToolServices>): Promise<ToolServices> {
  return leavingTime(decidedByWhom(await load()));
}

/** Whether only another person than the caller may approve what this call asks for. */
export function needsOther({ page }: ToolServices): boolean {
  return page?.needsOther?.() === true;
}

/** Where another person has to approve, what comes from the caller's own client is no yes: the page alone decides. */
function decidedByWhom(services: ToolServices): ToolServices {
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
    const looked = upToMisfits(args, schema);
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
  const read = understood(given, schema);
  const asMeant = await prepare(read);
  return asMeant.fits ? asMeant : refused(argumentWords(asMeant.issues, read, schema, asMeant.isCut));
}
