import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Certificate, listening } from "./stub-server.ts";

/** A request that a proxy received: its first line and its `Proxy-Authorization` header. */
interface Asked {
  readonly line: string;
  readonly credentials: string | undefined;
}

interface ProxyOptions {
  /** The address of the server to which the proxy connects, whatever host the request names. */
  readonly to: string;
  /** The `Proxy-Authorization` that the proxy requires; absent: it requires none. */
  readonly credentials?: string;
  /** If set, the proxy refuses with this status to open tunnels. */
  readonly refusing?: number;
  /** If set, clients must connect to the proxy with TLS. */
  readonly certificate?: Certificate;
}

/**
 * Starts a proxy such as companies have: it forwards http requests, and opens tunnels for https. It connects to the
 * same server for all hosts, and records all requests. Ends with the test.
 */
export async function startProxy({ to, credentials, refusing, certificate }: ProxyOptions) {
  const asked: Asked[] = [];
  const port = Number(new URL(to).port);
  const isWelcome = ({ method, url, headers }: IncomingMessage): boolean => {
    asked.push({ line: `${method} ${url}`, credentials: headers["proxy-authorization"] });
    return credentials === undefined || headers["proxy-authorization"] === credentials;
  };
  const forward = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (!isWelcome(incoming)) {
      response.writeHead(407, { "proxy-authenticate": "Basic", "content-type": "text/html" });
      response.end("<title>Who are you?</title>");
      return;
    }
    const { pathname, search } = new URL(incoming.url ?? "");
    const { "proxy-authorization": _own, ...headers } = incoming.headers;
    const onward = request({ host: "127.0.0.1", port, method: incoming.method, path: pathname + search, headers });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    incoming.pipe(onward);
  };
  const server: Server =
    certificate === undefined ? createServer(forward) : createSecureServer({ ...certificate }, forward);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.on("connect", (incoming: IncomingMessage, socket: Socket) => {
    socket.on("error", () => socket.destroy());
    const status = isWelcome(incoming) ? refusing : 407;
    if (status !== undefined) return socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
    const onward = connect(port, "127.0.0.1");
    onward.on("error", () => socket.destroy());
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    return socket.pipe(onward).pipe(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = await listening(server);
  return { url: certificate === undefined ? url : url.replace("http:", "https:"), asked };
}
