import { createHash } from "node:crypto";
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

/** What is sent with a question and comes back with the reply. A reply counts only for the same tool and input. */
const sealedQuestion = z.object({ tool: z.string(), input: z.string(), token: z.string() });
type SealedQuestion = z.infer<typeof sealedQuestion>;

/** What is sent with a request to open the web page. A form afterwards also needs the digest of the effect. */
interface SealedOpening extends Pick<SealedQuestion, "tool" | "input"> {
  readonly run: string;
  readonly digest?: string | undefined;
}

export type QuestionSeal = RequestStateCodec<SealedQuestion | SealedOpening>;

/** Creates the seal of questions. Only the client that was asked can reply. The key has at least 32 bytes. */
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

/**
 * A request that may declare capabilities. Clients of protocol version 2026-07-28 do so in the envelope of each
 * request.
 */
export interface Declaring {
  readonly mcpReq: { readonly envelope?: object | undefined };
}

/**
 * Returns whether a client can show forms. A capability without modes includes forms. `server` has the capabilities
 * that clients of 2025 declared.
 */
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

/**
 * Returns whether a call has protocol version 2026-07-28. Such a call is answered with a question and repeated with the
 * reply.
 */
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

/** The result of a question. `closed`: without a decision, for example by a host that has no person. */
export type ElicitationResult = "yes" | "no" | "closed";

const form = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.looseObject({ [CONFIRM]: z.unknown() }).nullish(),
});

/**
 * Returns the decision in a reply. Only a ticked box approves, because a client may accept by itself, without content.
 */
export function elicitationResult(answer: unknown): ElicitationResult {
  const { data } = form.safeParse(answer);
  if (data?.action === "decline") return "no";
  return data?.action === "accept" && data.content?.[CONFIRM] === true ? "yes" : "closed";
}

/**
 * Returns the reply to a question. Undefined if the call has no reply that is sealed for this question. `closed` for a
 * reply without a decision.
 */
export function replyTo(call: ServerContext, asked: AskedCall): Reply | "closed" | undefined {
  const state = call.mcpReq.requestState();
  if (state === undefined) return undefined;
  const { data: sealed } = sealedQuestion.safeParse(state);
  if (sealed === undefined || sealed.tool !== asked.tool || sealed.input !== digestOf(asked)) return undefined;
  const answer = inputResponse(call.mcpReq.inputResponses, CONFIRM);
  const said = answer.kind === "elicit" ? elicitationResult(answer) : "closed";
  return said === "closed" ? said : { token: sealed.token, accepted: said === "yes" };
}

/** Asks a client of a protocol version of 2025. The question may stay open after the call has ended. */
export function askOlder(call: ServerContext, message: string) {
  const ending = new AbortController();
  const options = { signal: ending.signal, timeout: QUESTION_SECONDS * 1000 };
  const params = { mode: "form" as const, message, requestedSchema: FORM };
  /** Resolves to the answer, or to `closed` if the client drops the question. Never rejects. */
  const said: Promise<ElicitationResult> = call.mcpReq
    .send({ method: "elicitation/create", params }, options)
    .then(elicitationResult, () => "closed" as const);
  return { said, end: () => ending.abort() };
}

const FORM = {
  type: "object" as const,
  // The box has no default value, because a client that fills in defaults must not approve by that.
  properties: { [CONFIRM]: { type: "boolean" as const, title: "I approve this" } },
  required: [CONFIRM],
};

/**
 * Returns an answer that makes a client of protocol version 2026-07-28 ask its person. `further`: other requests to the
 * client.
 */
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
  return createHash("sha256").update(JSON.stringify(input)).digest("base64url");
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

/**
 * A message that declares capabilities: every request of protocol version 2026-07-28, and the first message of earlier
 * versions.
 */
const declaring = z.object({
  method: z.string(),
  params: z.looseObject({
    capabilities: z.unknown().optional(),
    _meta: z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown().optional() }).optional(),
  }),
});

/** Returns whether a client shows views. Undefined if the message declares no capabilities. */
export function showsViews(message: unknown): boolean | undefined {
  const { data } = declaring.safeParse(message);
  if (data === undefined) return undefined;
  const { capabilities, _meta } = data.params;
  const declared = data.method === "initialize" ? capabilities : _meta?.[CLIENT_CAPABILITIES_META_KEY];
  return declared === undefined ? undefined : withViews.safeParse(declared).success;
}
