import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../src/runs/postgres/database.ts";
import { migrate } from "../../src/runs/postgres/migrations.ts";
import { prepareStore } from "../../src/runs/postgres/start.ts";
import { StoreUnavailableError } from "../../src/runs/store.ts";

/** What PostgreSQL answers to a new connection: it lets the user in, and waits for statements. */
const WELCOME = Buffer.from("R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "latin1");

const sockets = new Set<Socket>();
let server: Server;
let options = { url: "", connections: 2 };

/** Starts a server that lets every client in, and then neither answers nor notices that a client leaves. */
beforeEach(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on("error", () => undefined));
    socket.once("data", () => socket.write(WELCOME));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  options = { ...options, url: `postgres://me@127.0.0.1:${address.port}/runs` };
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

test("a start ends with an error if the database falls silent after the connection", { timeout: 8000 }, async () => {
  await expect(prepareStore(options, { migrates: true })).rejects.toBeInstanceOf(StoreUnavailableError);
});

test("a migration ends with an error if the database falls silent, or another process never ends its own", async () => {
  const limits: (number | undefined)[] = [];
  const database = openDatabase(options);
  const direct = (answerMs?: number) => {
    limits.push(answerMs);
    return database.direct(100);
  };
  await expect(migrate({ direct })).rejects.toThrow("timeout");
  expect(limits).toEqual([60_000]);
  await database.close();
});
