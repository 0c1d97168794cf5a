import { createHash, randomUUID } from "node:crypto";
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
import type { Reply, ToolServices } from "../tools/context.ts";
import type { ToolQuestion } from "../tools/define-tool.ts";

/** The protocol's name of the question, and of the only field of its form. */
const CONFIRM = "confirm";

export const QUESTION_SECONDS = 600;

/** Data sent with a question and returned with the reply. A reply counts only for the same tool and input. */
const sealedQuestion = z.object({ tool: z.string(), input: z.string(), token: z.string(), question: z.string() });
type SealedQuestion = z.infer<typeof sealedQuestion>;

/** Data sent with a request to open the page of a waiting run, or with a form about that run (then with its digest). */
export interface SealedOpening extends Pick<SealedQuestion, "tool" | "input"> {
  readonly run: string;
  readonly digest?: string | undefined;
}

/** Seals questions, so that no client can forge one. */
export type QuestionSeal = RequestStateCodec<SealedQuestion | SealedOpening>;

/** Creates a seal with a key of at least 32 bytes. Replies are bound to the client that was asked. */
export function questionSeal(key: Uint8Array): QuestionSeal {
  return createRequestStateCodec<SealedQuestion | SealedOpening>({
    key,
    ttlSeconds: QUESTION_SECONDS,
    bind: (call) => call.http?.authInfo?.clientId ?? "local",
  });
}

/** A call that may lead to a question: its tool and arguments. */
export interface AskedCall {
  readonly tool: string;
  readonly input: unknown;
}

const withForms = z.object({ form: z.unknown(), url: z.unknown() }).partial();
const capabilities = z.object({ elicitation: withForms.optional() });

/** A request with the capabilities that its client declares in it, if it belongs to the 2026-07-28 era. */
export interface Declaring {
  readonly mcpReq: { readonly envelope?: object | undefined };
}

/**
 * Returns whether the client can show a form. An empty capability means forms. `server` knows what 2025-era clients
 * declared.
 */
export function canAsk(call: Declaring, server?: McpServer): boolean {
  const modes = modesOf(call, server);
  return modes !== undefined && (modes.form !== undefined || modes.url === undefined);
}

/** Returns whether the client can open an address for a person. */
export function canOpen(call: Declaring, server?: McpServer): boolean {
  return modesOf(call, server)?.url !== undefined;
}

function modesOf(call: Declaring, server?: McpServer) {
  return capabilities.safeParse(declaredIn(call) ?? server?.server.getClientCapabilities()).data?.elicitation;
}

/** Returns whether a call is of the 2026-07-28 era: it is answered with its question, and repeated with the reply. */
export function isModern(call: ServerContext): boolean {
  return declaredIn(call) !== undefined;
}

/** The extension with which a client follows its calls as tasks. */
export const TASKS = "io.modelcontextprotocol/tasks";

const withTasks = z.object({ extensions: z.object({ [TASKS]: z.object({}) }) });

/** Returns whether a request declares that its client follows tasks. */
export function followsTasks(call: Declaring): boolean {
  return withTasks.safeParse(declaredIn(call)).success;
}

/** Returns the capabilities that a call of the 2026-07-28 era declares. */
export function declaredIn({ mcpReq }: Declaring): unknown {
  const envelope: Readonly<Record<string, unknown>> = { ...mcpReq.envelope };
  return envelope[CLIENT_CAPABILITIES_META_KEY];
}

/** The answer to a form: yes, no, or closed without a decision, for instance by a host without a person. */
export type ElicitationResult = "yes" | "no" | "closed";

const form = z.looseObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.looseObject({ [CONFIRM]: z.unknown() }).nullish(),
});

/** Reads the decision in a form. Only a ticked box is an approval: a client may accept by itself, without content. */
export function elicitationResult(answer: unknown): ElicitationResult {
  const { data } = form.safeParse(answer);
  if (data?.action === "decline") return "no";
  return data?.action === "accept" && data.content?.[CONFIRM] === true ? "yes" : "closed";
}

/**
 * Returns the reply to a question of this call; "closed": closed without a decision. Ignores a reply without the seal
 * of this call. A client could repeat its call with another reply: a question that was declined once stays declined.
 * Throws the RunStoreErrors of reading and storing that.
 */
export async function replyTo(
  call: ServerContext,
  asked: AskedCall,
  { declines }: Pick<ToolServices, "declines">,
): Promise<Reply | "closed" | undefined> {
  const state = call.mcpReq.requestState();
  if (state === undefined) return undefined;
  const { data: sealed } = sealedQuestion.safeParse(state);
  if (sealed === undefined || sealed.tool !== asked.tool || sealed.input !== digestOf(asked)) return undefined;
  const { token, question } = sealed;
  const given = inputResponse(call.mcpReq.inputResponses, CONFIRM);
  const said = given.kind === "elicit" ? elicitationResult(given) : "closed";
  if (said === "closed") return said;
  if (said === "no") await declines.note(question);
  return { token, accepted: said === "yes" && !(await declines.has(question)) };
}

/** A question that was sent to the client and has no reply yet. */
export interface OpenQuestion {
  /** The reply; "closed" if the client drops the question. Never rejects. */
  readonly said: Promise<ElicitationResult>;
  readonly end: () => void;
}

/** Asks a client of the 2025 era. The question stays open while a confirmation is valid, beyond the end of the call. */
export function askOlder(call: ServerContext, message: string): OpenQuestion {
  const ending = new AbortController();
  const options = { signal: ending.signal, timeout: QUESTION_SECONDS * 1000 };
  const params = { mode: "form" as const, message, requestedSchema: FORM };
  const said = call.mcpReq
    .send({ method: "elicitation/create", params }, options)
    .then(elicitationResult, () => "closed" as const);
  return { said, end: () => ending.abort() };
}

const FORM = {
  type: "object" as const,
  // Has no default: a client that fills in the defaults of a form must not approve by that.
  properties: { [CONFIRM]: { type: "boolean" as const, title: "I approve this" } },
  required: [CONFIRM],
};

/** Creates the result with which a 2026-07-28 client asks the person, plus `further` requests to the client. */
export async function asking(
  { ask }: ToolQuestion,
  seal: QuestionSeal,
  call: ServerContext,
  asked: AskedCall,
  further: Readonly<Record<string, InputRequest>> = {},
): Promise<InputRequiredResult> {
  return inputRequired({
    inputRequests: { ...further, [CONFIRM]: formRequest(ask.message) },
    requestState: await seal.mint(
      { tool: asked.tool, input: digestOf(asked), token: ask.token, question: randomUUID() },
      call,
    ),
  });
}

/** Returns a form with the one question. */
export function formRequest(message: string) {
  return inputRequired.elicit({ message, requestedSchema: FORM });
}

/** Returns a short digest of the arguments of a call. */
export function digestOf({ input }: AskedCall): string {
  return createHash("sha256").update(JSON.stringify(input)).digest("base64url");
}

/** The media type of a view (MCP Apps, 2026-01-26). */
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

/** A message that declares its client's capabilities: the first one of the 2025 era, or any request of the 2026 era. */
const declaring = z.object({
  method: z.string(),
  params: z.looseObject({
    capabilities: z.unknown().optional(),
    _meta: z.object({ [CLIENT_CAPABILITIES_META_KEY]: z.unknown().optional() }).optional(),
  }),
});

/** Returns whether the client of a message shows views; undefined if the message declares no capabilities. */
export function showsViews(message: unknown): boolean | undefined {
  const { data } = declaring.safeParse(message);
  if (data === undefined) return undefined;
  const { capabilities, _meta } = data.params;
  const declared = data.method === "initialize" ? capabilities : _meta?.[CLIENT_CAPABILITIES_META_KEY];
  return declared === undefined ? undefined : withViews.safeParse(declared).success;
}
