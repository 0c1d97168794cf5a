import { randomBytes } from "node:crypto";
import * as z from "zod";
import { redactorFor } from "../../src/answers/fence.ts";
import { questionSeal } from "../../src/mcp/elicitation.ts";
import { createMcpServer } from "../../src/mcp/server.ts";
import { callsUnderWay, catalogue, listedTools } from "../../src/mcp/server-parts.ts";
import { StdioConnection } from "../../src/mcp/stdio.ts";

import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { ToolDefinition } from "../../src/tools/define-tool.ts";
import { toolOf } from "../../src/tools/define-tool.ts";
import { testServices } from "./tool-context.ts";

const input = () => z.strictObject({ count: z.number() });

const dropThings = {
  name: "drop_things",
  title: "Drop things",
  description: "Drops things.",
  toolset: "targeting",
  effect: "changes",
  idempotent: false,
  input,
  output: () => z.looseObject({ said: z.string().optional() }),
  async handler({ count }, { canAsk, reply }) {
    if (count < 0) throw new Error("a fault with secret-key in it");
    if (reply === undefined && canAsk()) return { ask: { message: `Drop ${count} things?`, token: `plan-${count}` } };
    const said = reply === undefined ? "nobody to ask" : `${reply.token} ${reply.accepted ? "yes" : "no"}`;
    return { structured: { said }, text: said, isError: false };
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

const redactor = redactorFor(["secret-key"]);
const log = createLog({
  level: "error",
  write: (line) => process.stderr.write(line),
  redact: redactor.text,
  now: Date.now,
  work: undefined,
});
const calls = callsUnderWay();
const services = testServices(systemClock);
const parts = {
  version: "0.0.0",
  tools: listedTools(catalogue([toolOf(dropThings)]), {
    readOnly: false,
    toolsets: ["targeting"],
    configured: ["targeting"],
    hasSandbox: false,
  }),
  environment: "sandbox" as const,
  services: async () => services,
  seal: questionSeal(randomBytes(32)),
  redactor,
  log,
  calls,
  caller: "local",
  audit: () => undefined,
  writingTools: new Set<string>(),
};
new StdioConnection({
  input: process.stdin,
  output: process.stdout,
  maxLineBytes: 1_048_576,
  createServer: (_showsViews, era) => createMcpServer(parts, era),
  listened: async (message) => ({ message, acknowledging: () => undefined, begin: () => undefined }),
  watcher: async () => ({ add: () => undefined }),
  calls,
  log,
  onInputEnd: () => log.debug("the input has ended"),
});
