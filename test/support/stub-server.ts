import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A request as it arrived. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How a stub answers: a status with a JSON body, or by hand. */
export type Reply =
  | {
      readonly status: number;
      readonly json?: unknown;
      readonly text?: string;
      readonly headers?: Record<string, string>;
    }
  | ((response: ServerResponse) => void);

/** Starts an HTTP server that answers by `reply` and keeps what it received; it ends with the test. */
export async function startStub(reply: (request: Received, count: number) => Reply) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString("utf8") };
      received.push(one);
      const answer = reply(one, received.length);
      if (typeof answer === "function") return answer(response);
      response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
      response.end(answer.text ?? JSON.stringify(answer.json));
    });
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: await listen(server), received };
}

/** Starts a server of bare sockets; it ends with the test. */
export async function startRaw(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    onSocket(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return listen(server);
}

/** The address of a port on which nothing listens. */
export async function closedPort(): Promise<string> {
  const server = createTcpServer();
  const url = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${portOf(server.address())}`;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the server listens on no port");
  return address.port;
}
