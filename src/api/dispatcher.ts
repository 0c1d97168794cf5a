import { request as requestInClear } from "node:http";
import { request as requestSecurely } from "node:https";
import { isIP } from "node:net";
import { buildConnector, type Dispatcher, Pool } from "undici";
import { ProxyError, StoppedError } from "./errors.ts";

const CONNECTIONS = 16;
const CONNECT_TIMEOUT_MS = 10_000;

interface Way {
  readonly connections?: number | undefined;
  readonly requestTimeoutMs: number;
  readonly proxy?: string | undefined;
  readonly largestAnswer: number;
}

/**
 * The body of a request. undici also accepts iterables of bytes, which its types do not mention. It takes the next
 * piece when the socket has room.
 */
type Body = Dispatcher.DispatchOptions["body"] | AsyncIterable<Uint8Array>;

interface Sender {
  dispatch(
    options: Omit<Dispatcher.DispatchOptions, "body"> & { readonly body?: Body },
    handler: Dispatcher.DispatchHandler,
  ): boolean;
  close(): Promise<void>;
}

export interface Connections {
  readonly sender: Sender;
  /** The origin to connect to: that of the API, or of a proxy that forwards requests. */
  readonly origin: string;
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Opens a pool of reusable connections. It limits the time to connect; its caller limits that of whole requests. */
export function connectionsTo(origin: string, way: Way): Connections {
  const { requestTimeoutMs, proxy, largestAnswer, connections = 0 } = way;
  const options = {
    connections: Math.max(CONNECTIONS, connections),
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeoutMs),
    maxResponseSize: largestAnswer,
  };
  if (proxy === undefined) return { sender: new Pool(origin, options), origin, prefix: "", headers: {} };
  const to = new URL(proxy);
  const timeout = options.connectTimeout;
  if (origin.startsWith("https:")) {
    const sender = new Pool(origin, { ...options, connect: tunnelThrough(to, timeout) });
    return { sender, origin, prefix: "", headers: {} };
  }
  // Many proxies open tunnels only for `https:`. So an `http:` request is sent to the proxy, which forwards it (RFC
  // 9112, 3.2.2).
  return {
    sender: new Pool(to.origin, { ...options, connect: toProxy(to, timeout) }),
    origin: to.origin,
    prefix: origin,
    headers: { ...credentialsOf(to), host: new URL(origin).host },
  };
}

/** Connects to a proxy that forwards requests. TLS checks the certificate of the proxy, not that of the service. */
function toProxy(proxy: URL, timeout: number): buildConnector.connector {
  const connect = buildConnector({ timeout });
  return (target, callback) =>
    connect({ ...target, servername: serverNameOf(proxy) }, (error, socket) =>
      error === null ? callback(null, socket) : callback(new ProxyError("unreachable", { cause: error }), null),
    );
}

/** Connects through a tunnel that the proxy opens (RFC 9110, 9.3.6). */
function tunnelThrough(proxy: URL, timeout: number): buildConnector.connector {
  const secure = buildConnector({ timeout });
  const request = proxy.protocol === "https:" ? requestSecurely : requestInClear;
  return (target, callback) => {
    const { host = target.hostname, port } = target;
    const authority = port === "" ? `${host}:443` : host;
    const asked = request(proxy.origin, {
      method: "CONNECT",
      path: authority,
      headers: { host: authority, ...credentialsOf(proxy) },
      servername: serverNameOf(proxy),
      agent: false,
      timeout,
    });
    asked
      .on("connect", ({ statusCode = 0 }, socket) => {
        socket.setTimeout(0);
        if (statusCode >= 200 && statusCode < 300) return secure({ ...target, httpSocket: socket }, callback);
        socket.destroy();
        callback(new ProxyError(statusCode === 407 ? "credentials" : "refused", { statusCode }), null);
      })
      .on("timeout", () => asked.destroy(new StoppedError("the proxy gave no answer in time")))
      .on("error", (cause) => callback(new ProxyError("unreachable", { cause }), null))
      .end();
  };
}

/** Returns the server name for TLS. Empty for an IP address, because TLS sends names only for hosts. */
function serverNameOf({ hostname }: URL): string {
  return isIP(hostname.replace(/^\[(.*)\]$/, "$1")) === 0 ? hostname : "";
}

function credentialsOf({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === "" && password === "") return {};
  // Decodes percent-encoded bytes (`%40`) of user name and password. All other characters stay as they are.
  const bytes = `${username}:${password}`.replaceAll(/%([0-9a-f]{2})/gi, (_, code) =>
    String.fromCharCode(Number.parseInt(String(code), 16)),
  );
  return { "proxy-authorization": `Basic ${Buffer.from(bytes, "latin1").toString("base64")}` };
}
