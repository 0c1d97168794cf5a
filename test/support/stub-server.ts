import {
  createServer,
  type Server as HttpServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { atEnd } from "./ends.ts";

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
}

export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The answer of a stub: a status with a JSON body, or a function that writes any answer. */
export type Reply =
  | {
      readonly status: number;
      readonly json?: unknown;
      readonly text?: string | Buffer;
      readonly headers?: Record<string, string>;
    }
  | ((response: ServerResponse) => void);

/** The host of a stub, and its certificate if it uses TLS. */
interface StubOptions {
  readonly certificate?: Certificate;
  readonly host?: string;
}

/** Starts an HTTP server that answers with `reply` and records all requests. Ends with the test. */
export async function startStub(
  reply: (request: Received, count: number) => Reply,
  { certificate, host = "127.0.0.1" }: StubOptions = {},
) {
  const received: Received[] = [];
  const answerTo: RequestListener = (request, response) => {
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
  };
  const server = certificate === undefined ? createServer(answerTo) : createSecureServer({ ...certificate }, answerTo);
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = await listening(server, host);
  return { url: certificate === undefined ? url : url.replace("http:", "https:"), received };
}

/** Starts a TCP server. Ends with the test. */
export async function startRaw(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    onSocket(socket);
  });
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return listening(server);
}

/** Returns the address of a port on which nothing listens. */
export async function closedPort(): Promise<string> {
  const server = createTcpServer();
  const url = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

/** Starts an HTTP server on a free port and returns its address. Ends with the test. */
export async function served(server: HttpServer): Promise<string> {
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return listening(server);
}

/** Starts to listen on a free port, and returns the address. */
export async function listening(server: Server, host = "127.0.0.1"): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return `http://${host.includes(":") ? `[${host}]` : host}:${portOf(server.address())}`;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}
