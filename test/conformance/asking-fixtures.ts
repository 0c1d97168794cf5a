import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
  type McpServer,
  type RequestStateCodec,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";

/** What the questions of the suite remember from one round to the next. */
const roundState = z.object({ round: z.number(), name: z.string().optional() });
export type RoundState = z.infer<typeof roundState>;

const NOTHING = z.object({});
type Outcome = Promise<CallToolResult | InputRequiredResult>;

const done = (words: string): CallToolResult => ({ content: [{ type: "text", text: words }] });

/** Asks for input with a form that has one field. */
const ask = (message: string, field: string, type: "string" | "boolean" = "string") =>
  inputRequired.elicit({
    message,
    requestedSchema: {
      type: "object",
      properties: { [field]: type === "string" ? { type } : { type } },
      required: [field],
    },
  });
const complete = (words: string) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens: 50 });

/** Returns the accepted answer to a question; undefined if there is none in this form. */
function answered<Schema extends z.ZodType>(call: ServerContext, key: string, schema: Schema) {
  return schema.safeParse(acceptedContent(call.mcpReq.inputResponses, key)).data;
}
const named = z.object({ name: z.string() });
const sampled = z.looseObject({ content: z.looseObject({ text: z.string() }) });
const listed = z.looseObject({ roots: z.array(z.looseObject({})) });
const declared = z.looseObject({
  elicitation: z.unknown().optional(),
  sampling: z.unknown().optional(),
  roots: z.unknown().optional(),
});

/** Registers tools that ask for input in the middle of a call, in a way that works in both protocol eras. */
export function registerAskingTools(server: McpServer, seal: RequestStateCodec<RoundState>): void {
  const tool = (name: string, handler: (call: ServerContext) => Outcome): void => {
    const about = { description: name, inputSchema: NOTHING };
    server.registerTool(`test_input_required_result_${name}`, about, async (_given, call) => handler(call));
  };
  tool("elicitation", async (call) => {
    const reply = answered(call, "user_name", named);
    if (reply !== undefined) return done(`Hello, ${reply.name}!`);
    return inputRequired({ inputRequests: { user_name: ask("What is your name?", "name") } });
  });
  tool("sampling", async (call) => {
    const { data } = sampled.safeParse(call.mcpReq.inputResponses?.capital_question);
    if (data !== undefined) return done(data.content.text);
    return inputRequired({ inputRequests: { capital_question: complete("What is the capital of France?") } });
  });
  tool("list_roots", async (call) => {
    const { data } = listed.safeParse(call.mcpReq.inputResponses?.client_roots);
    if (data !== undefined) return done(`${data.roots.length} roots`);
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  });
  tool("multiple_inputs", async (call) => {
    const answers = call.mcpReq.inputResponses;
    const all = [answered(call, "user_name", named), answers?.greeting, answers?.client_roots];
    if (all.every((one) => one !== undefined)) return done("all three answered");
    const inputRequests = {
      user_name: ask("What is your name?", "name"),
      greeting: complete("Generate a greeting"),
      client_roots: inputRequired.listRoots(),
    };
    return inputRequired({ inputRequests, requestState: await seal.mint({ round: 1 }) });
  });
  for (const [name, words] of [
    ["request_state", "state-ok"],
    ["tampered_state", "integrity-ok"],
  ] as const) {
    tool(name, async (call) => {
      const isConfirmed = acceptedContent(call.mcpReq.inputResponses, "confirm") !== undefined;
      if (isConfirmed && call.mcpReq.requestState() !== undefined) return done(words);
      const inputRequests = { confirm: ask("Please confirm", "ok", "boolean") };
      return inputRequired({ inputRequests, requestState: await seal.mint({ round: 1 }) });
    });
  }
  tool("multi_round", async (call) => {
    const { data: state } = roundState.safeParse(call.mcpReq.requestState());
    if (state?.round === 2) return done(`${state.name} answered twice`);
    const name = answered(call, "step1", named)?.name ?? "somebody";
    return state === undefined
      ? inputRequired({
          inputRequests: { step1: ask("What is your name?", "name") },
          requestState: await seal.mint({ round: 1 }),
        })
      : inputRequired({
          inputRequests: { step2: ask("What is your favorite color?", "color") },
          requestState: await seal.mint({ round: 2, name }),
        });
  });
  tool("capabilities", async (call) => {
    if (call.mcpReq.inputResponses !== undefined) return done("answered");
    const envelope: Readonly<Record<string, unknown>> = { ...call.mcpReq.envelope };
    const can = declared.safeParse(envelope[CLIENT_CAPABILITIES_META_KEY]).data ?? {};
    const inputRequests: InputRequests = {
      ...(can.elicitation !== undefined && { user_name: ask("What is your name?", "name") }),
      ...(can.sampling !== undefined && { greeting: complete("Generate a greeting") }),
      ...(can.roots !== undefined && { client_roots: inputRequired.listRoots() }),
    };
    return Object.keys(inputRequests).length === 0 ? done("nobody to ask") : inputRequired({ inputRequests });
  });
  server.registerTool(
    "test_missing_capability",
    { description: "needs sampling", inputSchema: NOTHING },
    async (_given, call) => {
      if (call.mcpReq.inputResponses?.answer !== undefined) return done("answered");
      return inputRequired({ inputRequests: { answer: complete("Say pong") } });
    },
  );
  server.registerPrompt("test_input_required_result_prompt", { description: "asks first" }, async (call) => {
    const reply = answered(call, "user_context", z.object({ context: z.string() }));
    if (reply === undefined) {
      return inputRequired({ inputRequests: { user_context: ask("What context should be used?", "context") } });
    }
    return { messages: [{ role: "user", content: { type: "text", text: reply.context } }] };
  });
}
