import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMMAND, OPENING, runCommand, startNode, toolCall } from "../support/server-process.ts";
import { closedPort, startStub } from "../support/stub-server.ts";
import { startInTerminal } from "../support/terminal.ts";

function opened(environment: Record<string, string> = {}, args: readonly string[] = []) {
  const command = startNode([COMMAND, ...args], environment);
  for (const message of OPENING) command.send(message);
  return command;
}

const MIB = 1_048_576;

test("standard output carries nothing but the protocol", async () => {
  const command = opened({ TARGETING_MCP_LOG_LEVEL: "debug" });
  command.send("this is no JSON");
  command.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  await command.answer(1);
  command.child.stdin.end();
  expect(await command.exited).toEqual({ code: 0, signal: null });
  for (const line of command.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  for (const line of command.stderr().trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("level");
});

test("what a library prints goes to standard error", async () => {
  const print = 'process.on("SIGUSR2", () => console.log("printed by a library"))';
  const command = startNode(["--import", `data:text/javascript,${encodeURIComponent(print)}`, COMMAND]);
  for (const message of OPENING) command.send(message);
  await command.answer("open");
  command.child.kill("SIGUSR2");
  await expect.poll(() => command.stderr() + command.lines.join()).toContain("printed by a library");
  for (const line of command.lines) expect(line).not.toContain("printed");
});

test("what was asked before the input ended is still answered", async () => {
  const command = opened();
  command.send(toolCall(1, "get_targeting", { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }));
  command.child.stdin.end();
  expect(await command.exited).toEqual({ code: 0, signal: null });
  expect(await command.answer(1)).toMatchObject({ result: { isError: true } });
});

test("the end of the input ends a process whose call gets no answer", async () => {
  const { url, received } = await startStub(() => () => undefined);
  const command = opened({ TARGETING_API_URL: url, TARGETING_API_KEY: "secret-key" });
  command.send(toolCall(1, "get_targeting", { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }));
  await expect.poll(() => received.length).toBe(1);
  command.child.stdin.end();
  expect((await command.exited).code).toBe(0);
});

test("a host that closes the log costs nothing", async () => {
  const command = opened({ TARGETING_MCP_LOG_LEVEL: "debug" });
  await command.answer("open");
  command.child.stderr.destroy();
  for (let id = 1; id <= 3; id += 1) {
    command.send({ neither: "a request nor an answer, and logged" });
    command.send({ jsonrpc: "2.0", id, method: "tools/list" });
    expect(await command.answer(id)).toHaveProperty("result.tools");
  }
});

test("SIGTERM ends it", async () => {
  const command = opened();
  await command.answer("open");
  command.child.kill("SIGTERM");
  expect(await command.exited).toEqual({ code: 0, signal: null });
});

test("a message of 12 MB is read", async () => {
  const command = opened();
  const items = "x".repeat(12 * MIB);
  command.send(toolCall(1, "get_targeting", { items }));
  expect(JSON.stringify(await command.answer(1))).toContain("valid arguments: targetingId, targetingName");
});

test("a message over 16 MB is refused, and the connection lives", async () => {
  const command = opened();
  const items = "x".repeat(17 * MIB);
  command.send(toolCall(1, "get_targeting", { items }));
  expect(await command.answer(1)).toMatchObject({ error: { message: expect.stringContaining("save them in a file") } });
  command.send(`{"method":"tools/call","params":{"name":"x","arguments":{"a":"${items}"}},"jsonrpc":"2.0","id":2}`);
  expect(await command.answer(2)).toHaveProperty("error");
  command.send({ jsonrpc: "2.0", id: 3, method: "tools/list" });
  expect(await command.answer(3)).toHaveProperty("result.tools");
});

describe("what refuses to start", () => {
  test.each([
    [{ TARGETING_API_URL: "https://api.example.com" }, ["http"], "TARGETING_API_KEY is missing"],
    [{ EVENT_APP_KEY: "secret-key" }, ["http"], "EVENT_API_URL is missing"],
    [{}, ["--mode", "live"], "neither pair is set"],
    [{}, ["--nonsense"], "unknown flag --nonsense"],
    [
      {},
      ["serve"],
      "there is no command serve; the commands are stdio, http, worker, migrate, sandbox, page, doctor, setup",
    ],
    [{}, ["docter"], "there is no command docter; did you mean doctor?"],
    [{}, ["--red-only"], "unknown flag --red-only; did you mean --read-only?"],
    [{}, ["setup", "cursr"], 'there is no host "cursr"; did you mean cursor?'],
    [{}, ["stdio", "more"], "unexpected argument"],
    [{ TARGETING_MCP_WAIT_MS: "soon" }, [], "TARGETING_MCP_WAIT_MS (--wait-ms) must be a whole number"],
    [{ TARGETING_MCP_ALLOWED_TARGETINGS: "abc" }, [], "must be a comma list of ULIDs"],
    [{}, ["sandbox", "--port", "many"], "--port must be a whole number"],
  ])("%j %j", async (environment, args, sentence) => {
    const ended = await runCommand(args, environment);
    expect(ended).toEqual({ code: 2, text: "", stderr: expect.stringContaining(sentence) });
    expect(ended.stderr).not.toContain("secret-key");
  });
});

test("at a terminal it says that it waits for a client, and what to try; elsewhere nothing", async () => {
  const atTerminal = startInTerminal([], {});
  await atTerminal.until("is waiting for an MCP client on standard input. To end it, press Ctrl-C");
  await atTerminal.until("targeting-mcp setup HOST");
  const elsewhere = startNode([COMMAND]);
  for (const message of OPENING) elsewhere.send(message);
  await elsewhere.answer("open");
  expect(elsewhere.stderr()).not.toContain("waits for");
});

async function printed(...args: readonly string[]): Promise<string> {
  const ended = await runCommand(args);
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  return ended.text;
}

test.each([["--help"], ["-h"], ["help"]])("%s shows every command and setting", async (word) => {
  const help = await printed(word);
  expect(help).toContain("targeting-mcp setup HOST [--yes]");
  expect(help).toContain("--read-only, TARGETING_MCP_READ_ONLY");
});

test.each([["--version"], ["-v"], ["version"]])("%s shows the version alone", async (word) => {
  expect(await printed(word)).toMatch(/^\d+\.\d+\.\d+$/);
});

test.each([
  [["setup", "--help"], "setup HOST [--yes] [--remove]", ["--yes", "--remove"]],
  [["help", "sandbox"], "sandbox [--host", ["--host", "--port", "--data", "--forward", "--seed", "--quiet"]],
  [["stdio", "-h"], "[stdio [FOLDER...]]", []],
] as const)("%j shows that command alone, and where the rest is", async (args, usage, flags) => {
  const help = await printed(...args);
  expect(help).toContain(`targeting-mcp ${usage}`);
  expect(help.match(/^ {2}--\S+/gm)?.map((flag) => flag.trim()) ?? []).toEqual(flags);
  expect(help).not.toContain("TARGETING_MCP_");
  expect(help.split("\n").at(-1)).toContain("targeting-mcp --help");
});

test("an empty word, with which a host may fill an optional list, is passed over", async () => {
  for (const args of [["stdio", ""], [""]]) {
    const command = opened({}, args);
    await command.answer("open");
    command.child.stdin.end();
    expect((await command.exited).code).toBe(0);
  }
});

test("keys appear nowhere, even where the service repeats them", async () => {
  const key = "my-very-secret-key";
  const { url } = await startStub(({ headers }) => ({ status: 400, json: { message: [JSON.stringify(headers)] } }));
  const command = opened({ TARGETING_API_URL: url, TARGETING_API_KEY: key, TARGETING_MCP_LOG_LEVEL: "debug" });
  command.send(toolCall(1, "get_targeting", { targetingId: "01JABCDEFGHJKMNPQRSTVWXYZ0" }));
  const answer = JSON.stringify(await command.answer(1));
  expect(answer).toContain("[redacted]");
  command.child.stdin.end();
  await command.exited;
  expect(command.lines.join() + command.stderr()).not.toContain(key);
});

test("tools of an API that is not configured are not listed", async () => {
  const command = opened({ EVENT_API_URL: await closedPort(), EVENT_APP_KEY: "secret-key" });
  command.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  expect(JSON.stringify(await command.answer(1))).not.toContain("get_targeting");
});

test("the sandbox command serves the emulated APIs until it is told to stop", async () => {
  const command = startNode([COMMAND, "sandbox", "--port", "0"], { TARGETING_API_KEY: "my-own-key" });
  await expect.poll(() => command.lines.length).toBeGreaterThan(3);
  const [url] = command.lines[0]?.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
  const read = (key: string) =>
    fetch(`${url}/context-targeting/01JABCDEFGHJKMNPQRSTVWXYZ0`, { headers: { "x-api-key": key } });
  expect((await read("my-own-key")).status).toBe(404);
  expect((await read("another-key")).status).toBe(401);
  command.child.kill("SIGTERM");
  expect((await command.exited).code).toBe(0);
});

describe("a sandbox that cannot be served says what to do", () => {
  const folder = () => mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  const refused = async (...args: readonly string[]) => {
    const ended = await runCommand(["sandbox", "--port", "0", ...args]);
    expect(ended).toMatchObject({ code: 2, text: "" });
    return ended.stderr;
  };

  test("a port in use, and a host that is not of this machine", async () => {
    const { url } = await startStub(() => () => undefined);
    const { port } = new URL(url);
    expect(await refused("--port", port)).toMatch(
      new RegExp(`^targeting-mcp: cannot listen on 127\\.0\\.0\\.1, port ${port} .*EADDRINUSE.*--host or --port\\n$`),
    );
    expect(await refused("--host", "192.0.2.1")).toMatch(/^targeting-mcp: cannot listen on .*--host or --port\n$/);
  });

  test("a data file that holds something else", async () => {
    const file = join(folder(), "state.json");
    for (const content of ["", "{", "[]", '{"version":7}']) {
      writeFileSync(file, content);
      const said = await refused("--data", file);
      expect(said).toContain("state.json does not contain the state of a sandbox");
      expect(said).toContain("--data");
      expect(said).not.toMatch(/^ +at /m);
      expect(readFileSync(file, "utf8")).toBe(content);
    }
  });

  test("a data file in a folder that is not there, or that is a folder", async () => {
    expect(await refused("--data", join(folder(), "missing", "state.json"))).toMatch(
      /^targeting-mcp: .*state\.json cannot be written: ENOENT.*--data.*\n$/,
    );
    expect(await refused("--data", folder())).toMatch(/^targeting-mcp: .* is not a file.*--data.*\n$/);
  });

  test.skipIf(process.platform === "win32")(
    "a data file or a seed that is a pipe is refused, not waited for",
    async () => {
      const pipe = join(folder(), "state.json");
      execFileSync("mkfifo", [pipe]);
      for (const setting of ["--data", "--seed"]) expect(await refused(setting, pipe)).toContain("is not a file");
      const command = opened({ TARGETING_MCP_SANDBOX_SEED: pipe, TARGETING_MCP_RETRY_BUDGET_MS: "0" });
      command.send(toolCall("call", "get_targeting", {}));
      expect(await command.answer("call")).toHaveProperty("result");
      expect(await command.end()).toBe(0);
    },
  );
});
