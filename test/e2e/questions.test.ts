import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type Answer, CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { builtProgram, COMMAND, cleanEnvironment, OPENING, startNode, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const SERVER = [builtProgram("asking-server")];

describe.each(Object.entries(CLIENTS))("%s", (_name, connect) => {
  let answering: Answer | undefined;
  /** A client for all tests of the file, which can or cannot ask a person. */
  const shared = perFile((asks: boolean) => {
    const answer: Answer = (message, form) => answering?.(message, form) ?? { action: "cancel" };
    return connect({ args: SERVER, env: cleanEnvironment(), ...(asks && { answer }) });
  });
  const drop = async (answer?: Answer) => {
    answering = answer;
    const client = await shared(answer !== undefined);
    return textOf(await client.callTool("drop_things", { count: 3 }));
  };

  test("the person is asked, and a yes comes back with the token", async () => {
    const asked: string[] = [];
    const said = await drop((message) => {
      asked.push(message);
      return { action: "accept", content: { confirm: true } };
    });
    expect(asked).toEqual(["Drop 3 things?"]);
    expect(said).toBe("plan-3 yes");
  });

  test("the form requires the approval, and proposes nothing", async () => {
    const forms: unknown[] = [];
    await drop((_message, form) => {
      forms.push(form);
      return { action: "decline" };
    });
    expect(forms).toEqual([
      { type: "object", properties: { confirm: { type: "boolean", title: "I approve this" } }, required: ["confirm"] },
    ]);
  });

  test("declined is declined", async () => {
    expect(await drop(() => ({ action: "decline" }))).toBe("plan-3 no");
  });

  test.each([
    ["cancelled", { action: "cancel" }],
    ["accepted without content", { action: "accept" }],
    ["accepted with an empty form", { action: "accept", content: {} }],
    ["accepted with another field", { action: "accept", content: { approve: true } }],
    ["accepted with a box that is not ticked", { action: "accept", content: { confirm: false } }],
    ["accepted with a text", { action: "accept", content: { confirm: "true" } }],
  ] as const)("%s decides nothing, and no token replaces it", async (_case, answer) => {
    const said = await drop(() => answer);
    expect(said).toMatch(/Approval required.*closed without a decision: nothing was done/is);
    expect(said).not.toContain("plan-3");
  });

  test("a client that cannot ask is not asked", async () => {
    expect(await drop()).toBe("nobody to ask");
  });

  test("a fault of ours shows no details and no key", async () => {
    const client = await shared(false);
    const result = await client.callTool("drop_things", { count: -1 });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^drop_things failed for a reason inside this server \(error ID [0-9a-f]{8}\)/);
    expect(JSON.stringify(result)).not.toContain("secret-key");
  });
});

const envelope = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "by-hand", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
};

describe("a client that answers by itself", () => {
  const yes = { confirm: { action: "accept", content: { confirm: true } } };
  const asked = z.object({ result: z.object({ resultType: z.literal("input_required"), requestState: z.string() }) });

  function start() {
    const server = startNode(SERVER);
    let id = 0;
    return (count: number, more: object) => {
      id += 1;
      const params = { name: "drop_things", arguments: { count }, _meta: envelope, ...more };
      server.send({ jsonrpc: "2.0", id, method: "tools/call", params });
      return server.answer(id);
    };
  }

  test("is not believed without the sealed question", async () => {
    const call = start();
    expect(asked.safeParse(await call(3, { inputResponses: yes })).success).toBe(true);
    expect(await call(3, { inputResponses: yes, requestState: "v1.made.up" })).toHaveProperty("error.code", -32_602);
  });

  test("is believed for the call that was asked about, and for no other", async () => {
    const call = start();
    const { requestState } = asked.parse(await call(3, {})).result;
    expect(asked.safeParse(await call(4, { inputResponses: yes, requestState })).success).toBe(true);
    expect(await call(3, { requestState })).toHaveProperty("result.structuredContent.status", "needs_confirmation");
    expect(await call(3, { inputResponses: yes, requestState })).toHaveProperty(
      "result.structuredContent.said",
      "plan-3 yes",
    );
  });
});

test("what was declined stays declined, also for another reply to the same question", async () => {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const ids = await service.options(targetingId, [{ name: "One" }]);
  const server = startNode([COMMAND], service.live);
  let id = 0;
  const call = (more: object) => {
    id += 1;
    const params = { name: "delete_options", arguments: { ids }, _meta: envelope, ...more };
    server.send({ jsonrpc: "2.0", id, method: "tools/call", params });
    return server.answer(id);
  };
  const asked = z.object({ result: z.object({ requestState: z.string() }) });
  const no = { confirm: { action: "decline" } };
  const yes = { confirm: { action: "accept", content: { confirm: true } } };
  const { requestState } = asked.parse(await call({})).result;
  for (const inputResponses of [no, yes]) {
    const { result } = z.object({ result: z.unknown() }).parse(await call({ inputResponses, requestState }));
    expect(JSON.stringify(result)).toContain("The client declined.");
    expect(await service.count("deleteOptions")).toBe(0);
  }
});

test("a client that wants to hear of errors is told of a fault: its ID, and no details", async () => {
  const server = startNode(SERVER);
  for (const message of OPENING) server.send(message);
  const told = () => server.lines.filter((line) => line.includes("notifications/message"));
  server.send({ jsonrpc: "2.0", id: 1, method: "logging/setLevel", params: { level: "emergency" } });
  expect(await server.answer(1)).toMatchObject({ result: {} });
  server.send(toolCall(2, "drop_things", { count: -1 }));
  await server.answer(2);
  expect(told()).toEqual([]);
  server.send({ jsonrpc: "2.0", id: 3, method: "logging/setLevel", params: { level: "error" } });
  await server.answer(3);
  server.send(toolCall(4, "drop_things", { count: -1 }));
  const answer = JSON.stringify(await server.answer(4));
  const [, fault = ""] = /error ID ([0-9a-f]{8})/.exec(answer) ?? [];
  expect(told().map((line) => JSON.parse(line))).toEqual([
    {
      jsonrpc: "2.0",
      method: "notifications/message",
      params: {
        level: "error",
        logger: "targeting-mcp",
        data: { message: "a tool failed unexpectedly", tool: "drop_things", fault },
      },
    },
  ]);
});
