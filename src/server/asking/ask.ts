import { createHash } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Reply } from "../../tools/context.ts";
import type { ToolQuestion } from "../../tools/definition.ts";

/** The name of the question in the protocol, and of the one field of its form. */
const CONFIRM = "confirm";

const QUESTION_SECONDS = 600;

/** A question on its way to the person and back: a reply counts only for the same tool with the same input. */
const sealedQuestion = z.object({ tool: z.string(), input: z.string(), token: z.string() });
type SealedQuestion = z.infer<typeof sealedQuestion>;

/** Seals questions, so that no client can make one up. */
export type QuestionSeal = RequestStateCodec<SealedQuestion>;

/** A seal with a key of at least 32 bytes; replies are bound to the client that was asked. */
export function questionSeal(key: Uint8Array): QuestionSeal {
  return createRequestStateCodec<SealedQuestion>({
    key,
    ttlSeconds: QUESTION_SECONDS,
    bind: (call) => call.http?.authInfo?.clientId ?? "local",
  });
}

/** A call that may lead to a question: which tool, and the arguments it takes. */
export interface AskedCall {
  readonly tool: string;
  readonly input: unknown;
}

const withForms = z.object({ form: z.unknown(), url: z.unknown() }).partial();
const capabilities = z.object({ elicitation: withForms.optional() });

/** Whether the client can show a form to a person. An empty capability means forms. */
export function canAsk(call: ServerContext, server: McpServer): boolean {
  const envelope: Readonly<Record<string, unknown>> = { ...call.mcpReq.envelope };
  const announced = envelope[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities();
  const { data } = capabilities.safeParse(announced);
  if (data?.elicitation === undefined) return false;
  return data.elicitation.form !== undefined || data.elicitation.url === undefined;
}

/** Whether a call is one of the 2026-07-28 era: it is answered with its question, and made again with the reply. */
export function isModern(call: ServerContext): boolean {
  const envelope: Readonly<Record<string, unknown>> = { ...call.mcpReq.envelope };
  return envelope[CLIENT_CAPABILITIES_META_KEY] !== undefined;
}

/** What a form came to: a yes, a no, or neither: hosts without a person close it by themselves. */
export type Said = "yes" | "no" | "closed";

const form = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.looseObject({ [CONFIRM]: z.unknown() }).nullish(),
});

/** An accepted form in which the yes was taken out is a no. What is no form decides nothing. */
function saidIn(answer: unknown): Said {
  const { data } = form.safeParse(answer);
  if (data === undefined || data.action === "cancel") return "closed";
  if (data.action === "decline") return "no";
  return (data.content?.[CONFIRM] ?? true) === true ? "yes" : "no";
}

/**
 * What the person said to a question of this call; undefined where none was asked, and "closed" where nobody decided.
 * A reply without our seal, or with that of another call, is not believed.
 */
export function replyTo(call: ServerContext, asked: AskedCall): Reply | "closed" | undefined {
  const state = call.mcpReq.requestState();
  if (state === undefined) return undefined;
  const { data: question } = sealedQuestion.safeParse(state);
  if (question === undefined || question.tool !== asked.tool || question.input !== digestOf(asked)) return undefined;
  const given = inputResponse(call.mcpReq.inputResponses, CONFIRM);
  const said = given.kind === "elicit" ? saidIn(given) : "closed";
  return said === "closed" ? said : { token: question.token, accepted: said === "yes" };
}

/** A question that is with the person. */
export interface OpenQuestion {
  /** What they say; "closed" where the client gives it up. Never rejects. */
  readonly said: Promise<Said>;
  /** Takes the question back. */
  readonly end: () => void;
}

/** Asks a 2025-era client, which may answer long after: a question lives as long as what was planned. */
export function askOlder(call: ServerContext, message: string): OpenQuestion {
  const ending = new AbortController();
  const options = { signal: ending.signal, timeout: QUESTION_SECONDS * 1000 };
  const params = { mode: "form" as const, message, requestedSchema: FORM };
  const said = call.mcpReq
    .send({ method: "elicitation/create", params }, options)
    .then(saidIn, () => "closed" as const);
  return { said, end: () => ending.abort() };
}

const FORM = {
  type: "object" as const,
  properties: { [CONFIRM]: { type: "boolean" as const, title: "Yes, do this", default: true } },
};

/** The result that makes a client of the 2026-07-28 era ask the person. */
export async function asking(
  { ask }: ToolQuestion,
  seal: QuestionSeal,
  call: ServerContext,
  asked: AskedCall,
): Promise<InputRequiredResult> {
  return inputRequired({
    inputRequests: {
      [CONFIRM]: inputRequired.elicit({
        message: ask.message,
        requestedSchema: FORM,
      }),
    },
    requestState: await seal.mint({ tool: asked.tool, input: digestOf(asked), token: ask.token }, call),
  });
}

function digestOf({ input }: AskedCall): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("base64url");
}
