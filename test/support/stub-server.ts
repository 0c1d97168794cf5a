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

/** A certificate with its key, for a TLS server. */
export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
}

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
      readonly text?: string | Buffer;
      readonly headers?: Record<string, string>;
    }
  | ((response: ServerResponse) => void);

/** Where a stub listens, and by which certificate, where it speaks TLS. */
interface StubOptions {
  readonly certificate?: Certificate;
  readonly host?: string;
}

/** Starts an HTTP server that answers by `reply` and keeps what it received; it ends with the test. */
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

/** Starts a server of bare sockets; it ends with the test. */
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

/** The address of a port on which nothing listens. */
export async function closedPort(): Promise<string> {
  const server = createTcpServer();
  const url = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

/** The address of an HTTP server, which listens on a free port and ends with the test. */
export async function served(server: HttpServer): Promise<string> {
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return listening(server);
}

/** The address of a server, once it listens on a free port. */
export async function listening(server: Server, host = "127.0.0.1"): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return `http://${host.includes(":") ? `[${host}]` : host}:${portOf(server.address())}`;
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}
