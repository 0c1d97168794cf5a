import { type CallToolResult, type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import * as z from "zod";

const IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const AUDIO = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

const text = (words: string) => ({ type: "text" as const, text: words });
const image = { type: "image" as const, data: IMAGE, mimeType: "image/png" };
const embedded = (uri: string, mimeType: string, words: string) => ({
  type: "resource" as const,
  resource: { uri, mimeType, text: words },
});

/** Tools of the suite that answer at once, with their answers. */
const ANSWERS: Readonly<Record<string, CallToolResult["content"]>> = {
  test_simple_text: [text("This is a simple text response for testing.")],
  test_image_content: [image],
  test_audio_content: [{ type: "audio", data: AUDIO, mimeType: "audio/wav" }],
  test_embedded_resource: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  test_multiple_content_types: [
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
  test_streaming_elicitation: [text("nothing is asked")],
};

/** Registers tools that ask nobody for input. */
export function registerPlainTools(server: McpServer): void {
  for (const [name, content] of Object.entries(ANSWERS)) {
    server.registerTool(name, { description: name }, async () => ({ content: [...content] }));
  }
  server.registerTool("test_error_handling", { description: "always fails" }, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerTool("test_logging_tool", { description: "logs", inputSchema: z.object({}) }, async (_given, call) => {
    await call.mcpReq.log("info", "for clients that asked for it");
    return { content: [text("logged")] };
  });
  server.registerTool(
    "test_tool_with_logging",
    { description: "logs three times", inputSchema: z.object({}) },
    async (_given, call) => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await call.mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
      }
      return { content: [text("done")] };
    },
  );
  server.registerTool(
    "test_tool_with_progress",
    { description: "tells its progress", inputSchema: z.object({}) },
    async (_given, call) => {
      const progressToken = call.mcpReq._meta?.progressToken;
      for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        const params = { progressToken: progressToken ?? "", progress, total: 100 };
        await call.mcpReq.notify({ method: "notifications/progress", params });
      }
      return { content: [text(String(progressToken))] };
    },
  );
}

/** Registers the suite's resources. */
export function registerTestResources(server: McpServer): void {
  const plain = (name: string, content: { mimeType: string } & ({ text: string } | { blob: string })) => {
    const uri = `test://${name}`;
    const about = { title: name, description: name, mimeType: content.mimeType };
    server.registerResource(name, uri, about, async () => ({ contents: [{ uri, ...content }] }));
  };
  plain("static-text", { mimeType: "text/plain", text: "This is the content of the static text resource." });
  plain("static-binary", { mimeType: "image/png", blob: IMAGE });
  plain("watched-resource", { mimeType: "text/plain", text: "watched" });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  const about = { title: "template", description: "A template", mimeType: "application/json" };
  server.registerResource("template", template, about, async (uri, { id }) => ({
    contents: [
      { uri: uri.href, mimeType: "application/json", text: JSON.stringify({ id, data: `Data for ID: ${id}` }) },
    ],
  }));
  server.server.setRequestHandler("resources/subscribe", async () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", async () => ({}));
  server.server.setRequestHandler("logging/setLevel", async () => ({}));
  server.server.setRequestHandler("completion/complete", async () => ({ completion: { values: [], hasMore: false } }));
}

/** Registers the prompts of the suite that ask nobody for input. */
export function registerPlainPrompts(server: McpServer): void {
  const says = (...content: readonly (ReturnType<typeof text> | typeof image | ReturnType<typeof embedded>)[]) => ({
    messages: content.map((one) => ({ role: "user" as const, content: one })),
  });
  server.registerPrompt("test_simple_prompt", { description: "says something" }, async () =>
    says(text("This is a simple prompt for testing.")),
  );
  server.registerPrompt(
    "test_prompt_with_arguments",
    {
      description: "repeats",
      argsSchema: z.object({ arg1: z.string().describe("one"), arg2: z.string().describe("two") }),
    },
    async ({ arg1, arg2 }) => says(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "embeds", argsSchema: z.object({ resourceUri: z.string().describe("URI") }) },
    async ({ resourceUri }) => says(embedded(resourceUri, "text/plain", "embedded"), text("Read the resource above.")),
  );
  server.registerPrompt("test_prompt_with_image", { description: "shows" }, async () =>
    says(image, text("Look at the image above.")),
  );
}
