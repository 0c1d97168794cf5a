// The baseline for start-up and calls: a server with one small tool, on the same SDK.
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

serveStdio(() => {
  const server = new McpServer({ name: "one-tool", version: "1.0.0" });
  server.registerTool(
    "greet",
    { description: "Greets a person.", inputSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ content: [{ type: "text", text: `Hello ${name}` }] }),
  );
  return server;
});
