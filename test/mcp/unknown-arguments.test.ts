import { randomBytes } from "node:crypto";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { redactorFor } from "../../src/answers/fence.ts";
import { questionSeal } from "../../src/mcp/elicitation.ts";
import { createMcpServer } from "../../src/mcp/server.ts";
import { callsUnderWay, catalogue, listedTools, toolsThatWrite } from "../../src/mcp/server-parts.ts";

import { createLog } from "../../src/observe/log.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { everyTool } from "../../src/tools/registry.ts";
import { testServices } from "../support/tool-context.ts";

const TOOLS = await everyTool();

const SECRET = "secret-key-0123456789";

/** Starts a server in this process, so that values reach it unchanged. `call` returns the answer as text. */
async function start() {
  const redactor = redactorFor([SECRET]);
  const tools = catalogue(TOOLS);
  const services = testServices(systemClock);
  const parts = {
    version: "0.0.0",
    tools: listedTools(tools, {
      readOnly: false,
      toolsets: ["targeting", "events"],
      configured: ["targeting", "events"],
      hasSandbox: true,
    }),
    environment: "sandbox" as const,
    services: async () => services,
    seal: questionSeal(randomBytes(32)),
    redactor,
    log: createLog({ level: "silent", write: () => {}, redact: redactor.text, now: Date.now, work: undefined }),
    calls: callsUnderWay(),
    caller: "local",
    audit: () => undefined,
    writingTools: toolsThatWrite(tools),
  };
  const server = createMcpServer(parts, "legacy");
  const [near, far] = InMemoryTransport.createLinkedPair();
  const answers: ((text: string) => void)[] = [];
  near.onmessage = (message) => answers.shift()?.(JSON.stringify(message));
  await server.connect(far);
  onTestFinished(() => server.close());
  const ask = async (method: string, params: Record<string, unknown>) => {
    const answer = new Promise<string>((resolve) => answers.push(resolve));
    await near.send({ jsonrpc: "2.0", id: 1, method, params });
    return answer;
  };
  const clientInfo = { name: "test", version: "1" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  return (name: string, args: Record<string, unknown>) => ask("tools/call", { name, arguments: args });
}

/** Returns an object that throws when something reads it. */
function untouchable(): object {
  const refuse = (): never => {
    throw new Error("somebody looked");
  };
  return new Proxy([], { get: refuse, ownKeys: refuse, getOwnPropertyDescriptor: refuse, has: refuse });
}

test("an unknown argument is refused by its name alone, and so are the others then", async () => {
  const call = await start();
  for (const name of ["get_targeting", "bulk_add_options", "track_events"]) {
    const answer = await call(name, { x: untouchable(), items: untouchable() });
    expect(answer, name).toMatch(/unknown argument \\"x\\".* \(valid arguments: /);
  }
});

test("a file for delete_options is answered with the way to delete by a file", async () => {
  const call = await start();
  expect(await call("delete_options", { file: "old.csv" })).toContain(
    "plan_targeting. Rows need the Option ID, and Remove in the column Action",
  );
  expect(await call("delete_options", { other: 1 })).not.toContain("plan_targeting");
});

test("a key of ours as a name is not repeated, nor the beginning of one", async () => {
  const call = await start();
  const answer = await call("get_targeting", { [`${"x".repeat(50)}${SECRET}`]: 1 });
  expect(answer).toContain("the arguments contain a key or token of this server");
  expect(answer).not.toContain(SECRET.slice(0, 8));
});
