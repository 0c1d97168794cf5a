import { randomUUID } from "node:crypto";
import { inputRequired, inputResponse, type McpServer, type ServerContext } from "@modelcontextprotocol/server";
import * as z from "zod";
import { opensPageText } from "../answers/approvals.ts";
import type { Redactor } from "../answers/fence.ts";
import { decideInClient, type RunQuestion, runQuestion } from "../tools/decide-run.ts";
import type { ToolAnswer, ToolContext } from "../tools/define-tool.ts";
import { ownRun, reportedRun } from "../tools/run-reports.ts";
import { waitingOfAnyKind } from "../tools/write/awaiting-decision.ts";
import { shownInView, waitOnPage } from "../tools/write/on-page.ts";
import {
  type AskedCall,
  askOlder,
  canAsk,
  digestOf,
  elicitationResult,
  formRequest,
  isModern,
  QUESTION_SECONDS,
  type QuestionSeal,
} from "./elicitation.ts";

const OPEN = "open";

/** A call whose client may open the web page. `mayAsk`: the client may also show the person a form. */
interface Opening {
  readonly call: ServerContext;
  readonly server: McpServer;
  readonly mayAsk: boolean;
  readonly redactor: Redactor;
}

/** Returns functions that ask a client to open the page. The person must still log in and decide there. */
export function pageOpener({ call, server, mayAsk, redactor }: Opening) {
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
    async opens(runId: string, context: ToolContext): ReturnType<NonNullable<ToolContext["opens"]>> {
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
      call.mcpReq.signal.addEventListener("abort", form.end, { once: true });
      const said = await form.said;
      if (said === "closed") return context.inView ? "view" : "page";
      await decideInClient(question, said === "yes", context);
      return "page";
    },
    /** Continues a call repeated with a reply to a request to open the page or show a form. Otherwise undefined. */
    goOn(asked: AskedCall, context: ToolContext): Promise<ToolAnswer | RunQuestion> | undefined {
      const reply = openingReply(call, asked);
      return reply && afterOpening(reply, asksForms, context);
    },
    /** Asks a client of version 2026-07-28 to open the page of a run (`about`: its ID), or then to show a form. */
    async asking(about: string | RunQuestion, seal: QuestionSeal, { tool, input }: AskedCall, context: ToolContext) {
      const sealed = { tool, input: digestOf({ tool, input }) };
      const [request, facts] =
        typeof about === "string"
          ? [inputRequired.elicitUrl(await requestFor(about, context)), { run: about }]
          : [formRequest(redactor.text(about.message)), { run: about.runId, digest: about.digest }];
      const requestState = await seal.mint({ ...sealed, ...facts }, call);
      return inputRequired({ inputRequests: { [OPEN]: request }, requestState });
    },
    /** If a client of a 2025 version was asked to open the page, tells it that the run is decided. */
    async complete({ structured: { status } }: ToolAnswer): Promise<void> {
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

/** Returns the reply to a request to open the page, or to show a form after it. Undefined without its signed data. */
function openingReply(call: ServerContext, asked: AskedCall) {
  const { data: sealed } = sealedOpening.safeParse(call.mcpReq.requestState());
  if (sealed === undefined || sealed.tool !== asked.tool || sealed.input !== digestOf(asked)) return undefined;
  const given = inputResponse(call.mcpReq.inputResponses, OPEN);
  return { run: sealed.run, digest: sealed.digest, isOpened: isOpened(given), said: elicitationResult(given) };
}

async function afterOpening(
  { run: runId, digest, isOpened, said }: NonNullable<ReturnType<typeof openingReply>>,
  asksForms: boolean,
  context: ToolContext,
): Promise<ToolAnswer | RunQuestion> {
  const run = await ownRun(runId, context);
  const isUrl = digest === undefined;
  if (isUrl && isOpened) return waitOnPage(runId, context);
  if (!isUrl && said !== "closed") {
    const outcome = await decideInClient({ runId, digest }, said === "yes", context);
    // If the decision did not count, for example because the effect has changed, the run is reported as it is now.
    const isOver = outcome.is === "done" || outcome.is === "decided";
    return isOver ? waitOnPage(runId, context) : reportedRun(await ownRun(runId, context), context);
  }
  const question = isUrl && asksForms ? await runQuestion(run.header.runId, context) : undefined;
  if (question !== undefined) return question;
  return context.inView ? shownInView(runId, context) : waitOnPage(runId, context);
}
