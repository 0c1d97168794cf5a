import { describe, expect, test } from "vitest";
import * as z from "zod";
import { OPENING, runCommand, startCommand, toolCall } from "../support/server-process.ts";
import { startStub } from "../support/stub-server.ts";

// Settings with an address but no key, or a key but no address. Hosts do not show people why a server fails to start.
// Over stdio, the server therefore starts, and each call says what is missing.

const TARGETING = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const listed = z.looseObject({ result: z.object({ tools: z.array(z.object({ name: z.string() })) }) });
const OF_TARGETINGS = ["get_targeting", "create_targetings", "bulk_add_options", "delete_options"];
const OF_EVENTS = ["list_event_types", "track_event", "generate_event_tests", "run_event_tests"];
const OF_EITHER = ["get_run", "resume_run", "cancel_run"];

async function started(environment: Readonly<Record<string, string>>) {
  const command = startCommand([], environment);
  for (const message of OPENING) command.send(message);
  command.send({ jsonrpc: "2.0", id: "tools", method: "tools/list" });
  const names = listed.parse(await command.answer("tools")).result.tools.map(({ name }) => name);
  let calls = 0;
  return {
    command,
    names,
    async call(name: string, args: unknown = {}) {
      calls += 1;
      command.send(toolCall(calls, name, args));
      return command.answer(calls);
    },
  };
}

const says = (variable: string) => ({
  result: {
    isError: true,
    structuredContent: {
      environment: "live",
      error: {
        message: expect.stringContaining(`${variable} is missing`),
        remedy: expect.stringMatching(new RegExp(`set ${variable} where this server is started.*configuration`)),
      },
    },
  },
});

/** A service that answers every request, and records it. */
async function service() {
  const api = await startStub(() => ({ status: 200, json: { _id: TARGETING, name: "News", optionCount: 0 } }));
  return { url: api.url, received: api.received };
}

describe("half a pair over stdio", () => {
  test.each([
    ["TARGETING_API_KEY", "TARGETING_API_URL", OF_TARGETINGS, OF_EVENTS],
    ["EVENT_APP_KEY", "EVENT_API_URL", OF_EVENTS, OF_TARGETINGS],
  ])("without %s every tool of that API says so, and nothing is sent", async (missing, present, tools, others) => {
    const api = await service();
    for (const mode of ["auto", "live"]) {
      const { names, call, command } = await started({ [present]: api.url, TARGETING_MCP_MODE: mode });
      expect(names).toEqual(expect.arrayContaining([...tools, ...OF_EITHER]));
      for (const name of others) expect(names).not.toContain(name);
      for (const name of [...tools, ...OF_EITHER]) expect(await call(name), name).toMatchObject(says(missing));
      expect(command.stderr()).toContain(missing);
    }
    expect(api.received).toEqual([]);
  });

  test.each([
    ["TARGETING_API_URL", { TARGETING_API_KEY: "some-management-key" }, "get_targeting"],
    ["EVENT_API_URL", { EVENT_APP_KEY: "some-event-key" }, "track_event"],
  ])("without %s, too, and no sandbox answers instead", async (missing, environment, tool) => {
    const { call } = await started(environment);
    const answer = await call(tool, { targetingId: TARGETING });
    expect(answer).toMatchObject(says(missing));
    expect(JSON.stringify(answer)).not.toContain("some-");
  });

  test("beside a pair that is complete: that API works", async () => {
    const api = await service();
    const { names, call } = await started({
      TARGETING_API_URL: api.url,
      TARGETING_API_KEY: "some-management-key",
      EVENT_API_URL: api.url,
    });
    expect(names).toEqual(expect.arrayContaining([...OF_TARGETINGS, ...OF_EVENTS]));
    expect(await call("track_event", { uid: "u", eventName: "app_open" })).toMatchObject(says("EVENT_APP_KEY"));
    expect(api.received).toEqual([]);
    expect(await call("get_targeting", { targetingId: TARGETING })).toMatchObject({ result: { isError: false } });
    expect(await call("get_run")).toMatchObject({ result: { isError: false } });
    expect(api.received.map(({ method }) => method)).toEqual(["GET"]);
  });
});

describe("keys, addresses and proxies that cannot be used, over stdio", () => {
  const management = { TARGETING_API_URL: "https://api.example.test", TARGETING_API_KEY: "some-key" };
  const events = { EVENT_API_URL: "https://api.example.test", EVENT_APP_KEY: "some-key" };
  const named = (variable: string) => ({
    result: {
      isError: true,
      structuredContent: {
        error: {
          message: expect.stringMatching(new RegExp(`^${variable}( \\(--[a-z-]+\\))? must be`)),
          remedy: expect.stringContaining(`set ${variable} to a valid value where this server is started`),
        },
      },
    },
  });

  test.each([
    ["TARGETING_API_KEY", "스페이스 key", { ...management, ...events }, OF_TARGETINGS, OF_EVENTS],
    ["TARGETING_API_KEY", "two words", {}, OF_TARGETINGS, OF_EITHER],
    ["TARGETING_API_URL", "api.example.test", { ...management, TARGETING_MCP_MODE: "live" }, OF_TARGETINGS, OF_EITHER],
    ["EVENT_API_URL", "https://user:word@api.example.test", { ...management, ...events }, OF_EVENTS, OF_TARGETINGS],
    ["EVENT_APP_KEY", "key\twith a tab", { ...management, ...events }, OF_EVENTS, OF_TARGETINGS],
    ["HTTPS_PROXY", "socks5://proxy:1080", { ...management, ...events }, [...OF_TARGETINGS, ...OF_EVENTS], []],
    ["https_proxy", "http://", { ...management }, OF_TARGETINGS, OF_EITHER],
    ["TARGETING_MCP_SANDBOX_URL", "localhost:4010", { TARGETING_MCP_MODE: "sandbox" }, OF_TARGETINGS, OF_EVENTS],
    ["TARGETING_MCP_STORE", "mysql://shop", {}, [...OF_TARGETINGS, ...OF_EVENTS], OF_EITHER],
    ["TARGETING_MCP_SEAL_KEY", "short", {}, [...OF_TARGETINGS, ...OF_EVENTS], OF_EITHER],
  ])("%s=%s is named in every answer", async (variable, text, environment, tools, others) => {
    const { names, call, command } = await started({ ...environment, [variable]: text });
    const shown = variable.toUpperCase();
    expect(names).toEqual(expect.arrayContaining(tools));
    for (const name of tools) expect(await call(name), name).toMatchObject(named(shown));
    const isAll = ["TARGETING_MCP_SANDBOX_URL", "TARGETING_MCP_STORE", "TARGETING_MCP_SEAL_KEY"].includes(variable);
    const isOnlyApi = others === OF_EITHER;
    for (const name of others) {
      const answer = JSON.stringify(await call(name));
      expect(/"[A-Z_]+( \(--[a-z-]+\))? must be/.test(answer), `${name}: ${answer}`).toBe(isAll || isOnlyApi);
    }
    expect(command.stderr()).toMatch(new RegExp(`${shown}( \\(--[a-z-]+\\))? must be`));
    if (variable.endsWith("KEY") || text.includes("@")) expect(command.stderr()).not.toContain(text);
  });

  test("what is not used keeps nothing from working", async () => {
    const { call } = await started({
      ...{ HTTPS_PROXY: "socks5://proxy:1080", TARGETING_MCP_PUBLIC_URL: "nowhere" },
      ...{ TARGETING_API_KEY: "two words", TARGETING_MCP_MODE: "sandbox" },
    });
    expect(await call("get_targeting")).toMatchObject({ result: { isError: false } });
  });

  test("other settings, and other commands, are refused as before", async () => {
    expect(await runCommand([], { TARGETING_MCP_CONFIRM: "maybe" })).toMatchObject({ code: 2 });
    const environment = { ...management, TARGETING_API_KEY: "two words" };
    expect(await runCommand(["http", "--port", "0"], environment)).toMatchObject({ code: 2 });
  });
});

test("half a pair is refused by doctor", async () => {
  const ended = await runCommand(["doctor"], { TARGETING_API_URL: "https://api.example.com" });
  expect(ended.code).toBe(1);
  expect(ended.stderr + ended.text).toContain("TARGETING_API_KEY is missing");
});
