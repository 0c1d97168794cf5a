import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import * as z from "zod";

const LONGEST_MS = 60_000;

const status = z.looseObject({
  id: z.literal(2),
  result: z.object({
    data: z.array(
      z.looseObject({
        name: z.string(),
        serverInfo: z.looseObject({ name: z.string(), version: z.string() }).nullable(),
        tools: z.record(z.string(), z.unknown()),
      }),
    ),
  }),
});

/**
 * Asks Codex for the state of a server. Uses the protocol of its editor extensions, because Codex's own list of servers
 * does not start them. Returns the state in one line. Throws if Codex does not know the server or could not start it.
 */
export async function codexServers(
  program: string,
  environment: Readonly<Record<string, string>>,
  name: string,
): Promise<string> {
  const child = spawn(program, ["app-server"], { env: { ...environment }, stdio: ["pipe", "pipe", "ignore"] });
  const send = (message: unknown) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const over = setTimeout(() => child.kill(), LONGEST_MS);
  try {
    send({ id: 1, method: "initialize", params: { clientInfo: { name: "check", title: "check", version: "1" } } });
    for await (const line of createInterface({ input: child.stdout })) {
      const message: unknown = JSON.parse(line);
      const { id } = z.looseObject({ id: z.unknown().optional() }).parse(message);
      if (id === 1) {
        send({ method: "initialized" });
        send({ id: 2, method: "mcpServerStatus/list", params: {} });
      }
      if (id !== 2) continue;
      const server = status.parse(message).result.data.find((one) => one.name === name);
      const count = Object.keys(server?.tools ?? {}).length;
      if (!server?.serverInfo || count === 0)
        throw new Error(`Codex could not start the server: ${line.slice(0, 500)}`);
      return `${server.name}: ${server.serverInfo.name} ${server.serverInfo.version}, ${count} tools`;
    }
    throw new Error("Codex ended without reporting the state of the server");
  } finally {
    clearTimeout(over);
    child.stdin.end();
    if (child.exitCode === null) {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    }
  }
}
