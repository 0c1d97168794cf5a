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
import type { Reply } from "../tools/context.ts";
import type { ToolQuestion } from "../tools/definition.ts";

/** The name of the question in the protocol, and of the one field of its form. */
const CONFIRM = "confirm";

const QUESTION_SECONDS = 600;

/** A question on its way to the person and back: a reply counts only for the same tool with the same input. */
const sealedQuestion = z.object({ tool: z.string(), input: z.string(), token: z.string(), arrivedAt: z.number() });
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

/**
 * What the person said to a question of this call; undefined where none was asked. A reply without our seal, or with
 * that of another call, is not believed. Everything but an accepted form is a no, and so is an accepted form in which the yes was taken out.
 */
export function replyTo(call: ServerContext, asked: AskedCall): Reply | undefined {
  const state = call.mcpReq.requestState();
  if (state === undefined) return undefined;
  const { data: question } = sealedQuestion.safeParse(state);
  if (question === undefined || question.tool !== asked.tool || question.input !== digestOf(asked)) return undefined;
  const said = inputResponse(call.mcpReq.inputResponses, CONFIRM);
  const yes = said.kind === "elicit" && said.action === "accept" ? (said.content?.[CONFIRM] ?? true) : false;
  return { token: question.token, accepted: yes === true, arrivedAt: question.arrivedAt };
}

/** The result that makes the client ask the person. `arrivedAt` is when the call came that led to the question. */
export async function asking(
  { ask }: ToolQuestion,
  seal: QuestionSeal,
  call: ServerContext,
  { asked, arrivedAt }: { readonly asked: AskedCall; readonly arrivedAt: number },
): Promise<InputRequiredResult> {
  return inputRequired({
    inputRequests: {
      [CONFIRM]: inputRequired.elicit({
        message: ask.message,
        requestedSchema: {
          type: "object",
          properties: { [CONFIRM]: { type: "boolean", title: "Yes, do this", default: true } },
        },
      }),
    },
    requestState: await seal.mint({ tool: asked.tool, input: digestOf(asked), token: ask.token, arrivedAt }, call),
  });
}

function digestOf({ input }: AskedCall): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("base64url");
}
