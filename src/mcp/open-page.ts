import { randomUUID } from "node:crypto";
import {
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import { opensPageText } from "../answers/approvals.ts";
import type { Redactor } from "../answers/redact.ts";
import type { ToolContext } from "../tools/context.ts";
import type { ToolAnswer } from "../tools/define-tool.ts";
import { decideInClient, type RunQuestion, runQuestion } from "../tools/granted-approval.ts";
import { ownRun, reportedRun } from "../tools/run-reports.ts";
import { shownInView, waitOnPage } from "../tools/write/on-page.ts";
import { waitingOfAnyKind } from "../tools/write/waiting.ts";
import {
  type AskedCall,
  askOlder,
  canAsk,
  digestOf,
  type ElicitationResult,
  elicitationResult,
  formRequest,
  isModern,
  QUESTION_SECONDS,
  type QuestionSeal,
  type SealedOpening,
} from "./elicitation.ts";

const OPEN = "open";

/** A call whose client is asked to open the page. `mayAsk`: its person may also be asked with a form. */
export interface Opening {
  readonly call: ServerContext;
  readonly server: McpServer;
  readonly mayAsk: boolean;
  readonly redactor: Redactor;
}

export interface Opener {
  /** Asks the client to open the page. It becomes `opens` in the context of tools. */
  readonly opens: NonNullable<ToolContext["opens"]>;
  /** Continues a call that is repeated with the reply to an earlier question; undefined for any other call. */
  readonly goOn: (asked: AskedCall, context: ToolContext) => Promise<ToolAnswer | RunQuestion> | undefined;
  /** Creates the result that makes a client of protocol version 2026-07-28 open the page, or show a form afterwards. */
  readonly asking: (
    about: string | RunQuestion,
    seal: QuestionSeal,
    asked: AskedCall,
    context: ToolContext,
  ) => Promise<InputRequiredResult>;
  /** Notifies a client with a protocol version of 2025 that the run was decided for which it opened the page. */
  readonly complete: (answer: ToolAnswer) => Promise<void>;
}

/**
 * Returns how the client of this call opens the page. The address contains no access, and opening it approves nothing:
 * the person must log in and decide there.
 */
export function pageOpener({ call, server, mayAsk, redactor }: Opening): Opener {
  const asksForms = mayAsk && canAsk(call, server);
  let opened: string | undefined;
  const requestFor = async (runId: string, context: ToolContext) => {
    const run = await waitingOfAnyKind(runId, context);
    return {
      message: redactor.text(opensPageText(run?.state.facts.effect)),
      url: `${context.page?.address?.()}#/runs/${runId}`,
    };
  };
  return {
    async opens(runId, context) {
      if (isModern(call)) return "asked";
      opened = randomUUID();
      const params = { mode: "url" as const, ...(await requestFor(runId, context)), elicitationId: opened };
      const options = { signal: call.mcpReq.signal, timeout: QUESTION_SECONDS * 1000 };
      const isOpen = await call.mcpReq
        .send({ method: "elicitation/create", params }, options)
        .then(isOpened, () => false);
      if (isOpen) return "page";
      const question = asksForms ? await runQuestion(runId, context) : undefined;
      if (question === undefined) return context.inView ? "view" : "page";
      const form = askOlder(call, redactor.text(question.message));
      // The form is closed when the call ends, like the request to open the page.
      call.mcpReq.signal.addEventListener("abort", form.end, { once: true });
      const said = await form.said;
      if (said === "closed") return context.inView ? "view" : "page";
      await decideInClient(question, said === "yes", context);
      return "page";
    },
    goOn(asked, context) {
      const reply = openingReply(call, asked);
      return reply && afterOpening(reply, asksForms, context);
    },
    async asking(about, seal, { tool, input }, context) {
      const sealed = { tool, input: digestOf({ tool, input }) };
      if (typeof about !== "string") {
        const { runId: run, digest, message } = about;
        return inputRequired({
          inputRequests: { [OPEN]: formRequest(redactor.text(message)) },
          requestState: await seal.mint({ ...sealed, run, digest }, call),
        });
      }
      return inputRequired({
        inputRequests: { [OPEN]: inputRequired.elicitUrl(await requestFor(about, context)) },
        requestState: await seal.mint({ ...sealed, run: about }, call),
      });
    },
    async complete({ structured: { status } }) {
      if (opened === undefined || status === "needs_confirmation") return;
      await server.server
        .createElicitationCompletionNotifier(opened, { relatedRequestId: call.mcpReq.id })()
        .catch(() => undefined);
    },
  };
}

const action = z.looseObject({ action: z.enum(["accept", "decline", "cancel"]) });

function isOpened(answer: unknown): boolean {
  return action.safeParse(answer).data?.action === "accept";
}

const sealedOpening = z.object({ tool: z.string(), input: z.string(), run: z.string(), digest: z.string().optional() });

interface OpeningReply extends Pick<SealedOpening, "run" | "digest"> {
  readonly isOpened: boolean;
  readonly said: ElicitationResult;
}

/**
 * Returns the reply to a request to open the page; undefined if the call has none with this server's seal for this
 * call.
 */
function openingReply(call: ServerContext, asked: AskedCall): OpeningReply | undefined {
  const { data: sealed } = sealedOpening.safeParse(call.mcpReq.requestState());
  if (sealed === undefined || sealed.tool !== asked.tool || sealed.input !== digestOf(asked)) return undefined;
  const given = inputResponse(call.mcpReq.inputResponses, OPEN);
  return { run: sealed.run, digest: sealed.digest, isOpened: isOpened(given), said: elicitationResult(given) };
}

async function afterOpening(
  { run: runId, digest, isOpened, said }: OpeningReply,
  asksForms: boolean,
  context: ToolContext,
): Promise<ToolAnswer | RunQuestion> {
  const run = await ownRun(runId, context);
  const isUrl = digest === undefined;
  if (isUrl && isOpened) return waitOnPage(runId, context);
  if (!isUrl && said !== "closed") {
    const outcome = await decideInClient({ runId, digest }, said === "yes", context);
    // If the run is still undecided, another call is needed: the page has shown the reason, or shows a new effect.
    const isOver = outcome.is === "done" || outcome.is === "decided";
    return isOver ? waitOnPage(runId, context) : reportedRun(await ownRun(runId, context), context);
  }
  const question = isUrl && asksForms ? await runQuestion(run.header.runId, context) : undefined;
  if (question !== undefined) return question;
  return context.inView ? shownInView(runId, context) : waitOnPage(runId, context);
}
