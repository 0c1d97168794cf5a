import { hash } from "node:crypto";
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Reply, ToolQuestion } from "../tools/define-tool.ts";

const CONFIRM = "confirm";

export const QUESTION_SECONDS = 600;

/** Signed data of a question, which the client returns with the reply. Valid only for the same tool and input. */
const sealedQuestion = z.object({ tool: z.string(), input: z.string(), token: z.string() });
type SealedQuestion = z.infer<typeof sealedQuestion>;

/**
 * Signed data that the server sends when it asks a client to open the web page, or to show a form after that. `digest`
 * is the digest of the effect in the form; absent when the page is to be opened.
 */
interface SealedOpening extends Pick<SealedQuestion, "tool" | "input"> {
  readonly run: string;
  readonly digest?: string | undefined;
}

export type QuestionSeal = RequestStateCodec<SealedQuestion | SealedOpening>;

/** Creates the codec that signs questions. Accepts replies of the asked caller for 10 minutes. `key`: >= 32 bytes. */
export function questionSeal(key: Uint8Array): QuestionSeal {
  return createRequestStateCodec<SealedQuestion | SealedOpening>({
    key,
    ttlSeconds: QUESTION_SECONDS,
    bind: (call) => call.http?.authInfo?.clientId ?? "local",
  });
}

export interface AskedCall {
  readonly tool: string;
  readonly input: unknown;
}

const withForms = z.object({ form: z.unknown(), url: z.unknown() }).partial();
const capabilities = z.object({ elicitation: withForms.optional() });

/** The part of a request that may declare capabilities. In version 2026-07-28, its envelope does. */
export interface Declaring {
  readonly mcpReq: { readonly envelope?: object | undefined };
}

/** Returns whether a client can show forms. A client that declares elicitation without modes can. */
export function canAsk(call: Declaring, server?: McpServer): boolean {
  const modes = modesOf(call, server);
  return modes !== undefined && (modes.form !== undefined || modes.url === undefined);
}

export function canOpen(call: Declaring, server?: McpServer): boolean {
  return modesOf(call, server)?.url !== undefined;
}

function modesOf(call: Declaring, server?: McpServer) {
  return capabilities.safeParse(declaredIn(call) ?? server?.server.getClientCapabilities()).data?.elicitation;
}

/** Returns whether a call has version 2026-07-28: a question ends it, and the client repeats it with the reply. */
export function isModern(call: ServerContext): boolean {
  return declaredIn(call) !== undefined;
}

export const TASKS = "io.modelcontextprotocol/tasks";

const withTasks = z.object({ extensions: z.object({ [TASKS]: z.object({}) }) });

export function followsTasks(call: Declaring): boolean {
  return withTasks.safeParse(declaredIn(call)).success;
}

/** Returns the capabilities in the envelope of a call. Undefined before protocol version 2026-07-28. */
export function declaredIn({ mcpReq }: Declaring): unknown {
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  return envelope[CLIENT_CAPABILITIES_META_KEY];
}

/** The person's decision. "closed": there is none, for example because nobody uses the host interactively. */
export type ElicitationResult = "yes" | "no" | "closed";

const form = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.looseObject({ [CONFIRM]: z.unknown() }).nullish(),
});

/** Returns the decision in a reply. Only a ticked box approves: a client may accept a form without showing it. */
export function elicitationResult(answer: unknown): ElicitationResult {
  const { data } = form.safeParse(answer);
  if (data?.action === "decline") return "no";
  return data?.action === "accept" && data.content?.[CONFIRM] === true ? "yes" : "closed";
}

/** Returns the reply in a call; "closed" if it has no decision. Undefined without signed data for this question. */
export function replyTo(call: ServerContext, asked: AskedCall): Reply | "closed" | undefined {
  const state = call.mcpReq.requestState();
  if (state === undefined) return undefined;
  const { data: sealed } = sealedQuestion.safeParse(state);
  if (sealed === undefined || sealed.tool !== asked.tool || sealed.input !== digestOf(asked)) return undefined;
  const answer = inputResponse(call.mcpReq.inputResponses, CONFIRM);
  const said = answer.kind === "elicit" ? elicitationResult(answer) : "closed";
  return said === "closed" ? said : { token: sealed.token, accepted: said === "yes" };
}

/** Asks a client with a protocol version of 2025. The question may stay open after the call has been answered. */
export function askOlder(call: ServerContext, message: string) {
  const ending = new AbortController();
  const options = { signal: ending.signal, timeout: QUESTION_SECONDS * 1000 };
  const params = { mode: "form" as const, message, requestedSchema: FORM };
  /** Resolves to the decision, or to "closed" if the client cannot answer. Never rejects. */
  const said: Promise<ElicitationResult> = call.mcpReq
    .send({ method: "elicitation/create", params }, options)
    .then(elicitationResult, () => "closed" as const);
  return { said, end: () => ending.abort() };
}

const FORM = {
  type: "object" as const,
  // The box has no default value, because a client that fills in default values would otherwise approve.
  properties: { [CONFIRM]: { type: "boolean" as const, title: "I approve this" } },
  required: [CONFIRM],
};

/** Returns the answer that makes a 2026-07-28 client ask its person. `further`: other requests, such as for roots. */
export async function asking(
  { ask }: ToolQuestion,
  seal: QuestionSeal,
  call: ServerContext,
  asked: AskedCall,
  further: Readonly<Record<string, InputRequest>> = {},
): Promise<InputRequiredResult> {
  return inputRequired({
    inputRequests: { ...further, [CONFIRM]: formRequest(ask.message) },
    requestState: await seal.mint({ tool: asked.tool, input: digestOf(asked), token: ask.token }, call),
  });
}

export function formRequest(message: string) {
  return inputRequired.elicit({ message, requestedSchema: FORM });
}

export function digestOf({ input }: AskedCall): string {
  return hash("sha256", JSON.stringify(input), "base64url");
}

export const VIEW_TYPE = "text/html;profile=mcp-app";

const withViews = z.object({
  extensions: z.object({
    "io.modelcontextprotocol/ui": z.object({
      mimeTypes: z
        .array(z.unknown())
        .refine((types) => types.includes(VIEW_TYPE))
        .optional(),
    }),
  }),
});

/** Where a message may declare capabilities: the envelope (2026-07-28), or the first request (before). */
const declaring = z.object({
  method: z.string(),
  params: z.looseObject({
    capabilities: z.unknown().optional(),
    _meta: z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown().optional() }).optional(),
  }),
});

/** Returns whether a client shows views (MCP Apps). Undefined if the message declares no capabilities. */
export function showsViews(message: unknown): boolean | undefined {
  const { data } = declaring.safeParse(message);
  if (data === undefined) return undefined;
  const { capabilities, _meta } = data.params;
  const declared = data.method === "initialize" ? capabilities : _meta?.[CLIENT_CAPABILITIES_META_KEY];
  return declared === undefined ? undefined : withViews.safeParse(declared).success;
}
