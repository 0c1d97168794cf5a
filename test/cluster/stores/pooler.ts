import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

const SSL_REQUEST = 80_877_103;

/** A connection to the server. Clients share it: each uses it for one transaction at a time. */
interface Shared {
  readonly socket: Socket;
  /** The client that gets the server's answers. */
  client: Socket | undefined;
  rest: Buffer;
}

/**
 * Starts a pooler in transaction mode, as PgBouncer has it: each transaction of a client may have another session, and
 * no notice arrives. Returns the address of the database through the pooler. Ends with the test.
 */
export async function transactionPooler(url: string): Promise<string> {
  const { hostname, port, username, pathname } = new URL(url);
  const idle: Shared[] = [];
  const open = new Set<Socket>();
  const made = async (): Promise<Shared> => {
    const socket = connect(Number(port), hostname);
    open.add(socket);
    const shared: Shared = { socket, client: undefined, rest: Buffer.alloc(0) };
    socket.write(startup({ user: username, database: pathname.slice(1) }));
    const isReady = new Promise<void>((resolve) => {
      socket.on("data", (piece: Buffer) => {
        shared.client?.write(piece);
        shared.rest = Buffer.concat([shared.rest, piece]);
        for (let end = messageEnd(shared.rest); end > 0; end = messageEnd(shared.rest)) {
          const isIdle = String.fromCharCode(shared.rest[0] ?? 0, shared.rest[5] ?? 0) === "ZI";
          shared.rest = shared.rest.subarray(end);
          if (!isIdle) continue;
          resolve();
          if (shared.client !== undefined) idle.push(shared);
          shared.client = undefined;
        }
      });
    });
    await isReady;
    return shared;
  };
  const server = createServer((client) => {
    open.add(client);
    let rest = Buffer.alloc(0);
    let isOpen = false;
    let turns = Promise.resolve();
    const used: { by?: Shared } = {};
    const pass = async (message: Buffer): Promise<void> => {
      if (used.by?.client !== client) {
        used.by = idle.pop() ?? (await made());
        used.by.client = client;
      }
      used.by.socket.write(message);
    };
    client.on("error", () => undefined);
    client.on("data", (piece: Buffer) => {
      rest = Buffer.concat([rest, piece]);
      if (!isOpen) {
        if (rest.length < 8 || rest.length < rest.readInt32BE(0)) return;
        const isSsl = rest.readInt32BE(4) === SSL_REQUEST;
        rest = rest.subarray(rest.readInt32BE(0));
        if (isSsl) return void client.write("N");
        isOpen = true;
        client.write(Buffer.concat([said("R", int32(0)), said("K", int32(1), int32(1)), said("Z", Buffer.from("I"))]));
      }
      const end = wholeMessages(rest);
      if (end === 0) return;
      const messages = rest.subarray(0, end);
      rest = rest.subarray(end);
      // When a client ends, the session of the server stays open.
      if (messages[0] === "X".charCodeAt(0)) return void client.end();
      turns = turns.then(() => pass(messages));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const through = new URL(url);
  through.port = String(address.port);
  return through.href;
}

/** Returns where the first message ends; 0 if it is not complete. */
function messageEnd(bytes: Buffer): number {
  if (bytes.length < 5) return 0;
  const end = 1 + bytes.readInt32BE(1);
  return bytes.length < end ? 0 : end;
}

/** Returns where the last complete message ends. A client sends all messages of a statement together. */
function wholeMessages(bytes: Buffer): number {
  let end = 0;
  for (let next = messageEnd(bytes); next > 0; next = messageEnd(bytes.subarray(end))) end += next;
  return end;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function said(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function startup(settings: Readonly<Record<string, string>>): Buffer {
  const named = Object.entries(settings).map(([name, value]) => `${name}\0${value}\0`);
  const body = Buffer.concat([int32(196_608), Buffer.from(`${named.join("")}\0`)]);
  return Buffer.concat([int32(body.length + 4), body]);
}
