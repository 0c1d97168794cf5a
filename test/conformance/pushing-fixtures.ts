import type { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";

const choices = (titles: readonly string[]) => titles.map((title, at) => ({ const: `value${at + 1}`, title }));

const DEFAULTS = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
} as const;

const ENUMS = {
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: { type: "string", oneOf: choices(["First Option", "Second Option", "Third Option"]) },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", minItems: 1, items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: {
    type: "array",
    minItems: 1,
    items: { anyOf: choices(["First Choice", "Second Choice", "Third Choice"]) },
  },
} as const;

/** Registers tools that send requests to a 2025-era client, which needs a session. */
export function registerPushingTools(server: McpServer): void {
  const text = (value: unknown) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });
  server.registerTool(
    "test_sampling",
    { description: "samples", inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, call) =>
      text(
        await call.mcpReq.requestSampling({
          messages: [{ role: "user", content: { type: "text", text: prompt } }],
          maxTokens: 100,
        }),
      ),
  );
  server.registerTool(
    "test_elicitation",
    { description: "asks", inputSchema: z.object({ message: z.string() }) },
    async ({ message }, call) => {
      const properties = { response: { type: "string" as const } };
      return text(
        await call.mcpReq.elicitInput({
          message,
          requestedSchema: { type: "object", properties, required: ["response"] },
        }),
      );
    },
  );
  const form = (name: string, properties: typeof DEFAULTS | typeof ENUMS): void => {
    server.registerTool(name, { description: name, inputSchema: z.object({}) }, async (_given, call) => {
      const params = { message: "Please fill in the form", requestedSchema: { type: "object" as const, properties } };
      const reply = await call.mcpReq.send({ method: "elicitation/create", params });
      return text(reply);
    });
  };
  form("test_elicitation_sep1034_defaults", DEFAULTS);
  form("test_elicitation_sep1330_enums", ENUMS);
}
