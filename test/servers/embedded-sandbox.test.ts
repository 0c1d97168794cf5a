import { once } from "node:events";
import { createServer, connect as openSocket } from "node:net";
import { expect, test } from "vitest";
import { sessionIn } from "../browser/sandbox-process.ts";
import { startHttp } from "../support/http-server.ts";
import { OPENING, startCommand } from "../support/server-process.ts";
import { closedPort } from "../support/stub-server.ts";

// If a person has set the port of the embedded sandbox, their app may send events to it as soon as the server has
// answered its first message.

/** Returns whether a program listens on the port now. */
async function listens(port: string): Promise<boolean> {
  const socket = openSocket(Number(port), "127.0.0.1");
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).then((isThere) => {
    socket.destroy();
    return isThere === true;
  });
}

test("over stdio the handshake is answered only when the embedded sandbox listens", async () => {
  for (let round = 1; round <= 3; round += 1) {
    const port = new URL(await closedPort()).port;
    const command = startCommand([], { TARGETING_MCP_SANDBOX_PORT: port });
    for (const message of OPENING) command.send(message);
    await command.answer("open");
    expect(await listens(port), `round ${round}`).toBe(true);
    expect(await command.end()).toBe(0);
  }
});

test("over HTTP the server listens only when the embedded sandbox does", async () => {
  const port = new URL(await closedPort()).port;
  await startHttp({ TARGETING_MCP_SANDBOX_PORT: port });
  expect(await listens(port)).toBe(true);
});

test("a port that stays taken: the handshake is answered all the same, and the log says why", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const bound = taken.address();
  const port = typeof bound === "object" && bound !== null ? String(bound.port) : "";
  try {
    const command = startCommand([], { TARGETING_MCP_SANDBOX_PORT: port });
    for (const message of OPENING) command.send(message);
    expect(await command.answer("open")).toHaveProperty("result.serverInfo");
    await expect.poll(() => command.stderr()).toContain("the embedded sandbox could not be started");
    expect(await command.end()).toBe(0);
  } finally {
    taken.close();
  }
});

test("the embedded sandbox has a page, and an open one does not keep the command alive", async () => {
  const port = new URL(await closedPort()).port;
  const command = startCommand([], { TARGETING_MCP_SANDBOX_PORT: port });
  for (const message of OPENING) command.send(message);
  await command.answer("open");
  const url = `http://127.0.0.1:${port}`;
  const page = await fetch(url);
  const html = await page.text();
  expect(html).toContain("<title>targeting-mcp</title>");
  const stream = await fetch(`${url}/page/stream`, { headers: { "x-page-token": sessionIn(html) } });
  const reader = (stream.body ?? new ReadableStream<Uint8Array>()).getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('"views":["events","targetings","faults"]');
  command.child.stdin.end();
  expect((await command.exited).code).toBe(0);
  await reader.read().catch((thrown: unknown) => expect(thrown).toBeInstanceOf(TypeError));
});
