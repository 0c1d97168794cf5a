import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";

test.each([
  { name: "a worker", args: ["worker"] },
  { name: "a replica", args: ["http", "--port", "0"] },
])("$name that still waits for its store ends at once when it is asked to", async ({ args }) => {
  // A database that accepts connections, but never answers.
  const silent = createServer();
  onTestFinished(() => void silent.close());
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = z.object({ port: z.number() }).parse(silent.address());
  const child = spawn(process.execPath, [COMMAND, ...args], {
    env: cleanEnvironment({ TARGETING_MCP_STORE: `postgres://somebody@127.0.0.1:${port}/none` }),
    stdio: "ignore",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = once(child, "exit");
  const [socket] = await once(silent, "connection");
  onTestFinished(() => socket.destroy());
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
  // The server has ended by itself: the connection to the database is still open.
  expect(socket.destroyed).toBe(false);
});
