import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { type Fence, HeldBackError } from "../runs/turn.ts";
import type { Method } from "../spec/routes.ts";
import type { Connections } from "./dispatcher.ts";
import { AmbiguousError, decoded, NotSentError, networkFailure, type Purpose, StoppedError } from "./errors.ts";

export interface HttpSettings {
  /** The base address, or a function that returns it. The function is called before the first request. */
  readonly url: string | (() => Promise<string>);
  readonly setBy?: string | undefined;
  readonly credential: Readonly<Record<string, string>>;
  /** The maximum time of one request until the last byte of its answer, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly proxy?: string | undefined;
  /** How many requests may run at a time. A number below 16 counts as 16. */
  readonly connections?: number | undefined;
  /** The largest answer that is read, in bytes. Default: 64 MB, far more than the documents allow. */
  readonly largestAnswer?: number;
}

/** A request. `path` is appended to the base address of the API. `body` is JSON, as a string or as UTF-8 bytes. */
interface HttpRequest {
  readonly operation: Purpose;
  readonly method: Method;
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
  readonly type?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly fence?: Fence | undefined;
  readonly timeoutMs?: number | undefined;
}

/** An answer. The body is decompressed but not parsed. Header names are in lower case. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface Http {
  readonly setBy?: string | undefined;
  /**
   * Sends one request, without retries or redirects. Throws a NotSentError if the request was not sent completely, and
   * an AmbiguousError if it was sent but had no complete, readable answer. If it was aborted before it was sent, throws
   * the signal's reason.
   */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Opens a connection if none is idle, so that the next request need not wait. Throws a NotSentError if it fails. */
  connect(operation: Purpose): Promise<void>;
  close(): Promise<void>;
}

const LARGEST_ANSWER = 64 * 1_048_576;

/** Returns a client for one API. Nothing is loaded, resolved or connected before the first request. */
export function openHttp(settings: HttpSettings): Http {
  const { setBy } = settings;
  let opening: Promise<Connections> | undefined;
  const opened = async (operation: Purpose): Promise<Connections> => {
    opening ??= open(settings);
    try {
      return await opening;
    } catch (cause) {
      opening = undefined;
      throw new NotSentError({ operation, setBy, ...networkFailure(cause) }, { cause });
    }
  };
  return {
    setBy,
    send: async (request) => sendOnce(await opened(request.operation), settings, request),
    async connect(operation) {
      const request = { operation, method: "GET", path: "/", fence: CONNECTED_ONLY } as const;
      try {
        await sendOnce(await opened(operation), settings, request);
      } catch (thrown) {
        if (!(thrown instanceof NotSentError) || thrown.cause !== CONNECTED) throw thrown;
      }
    },
    async close() {
      const { sender } = (await opening) ?? {};
      await sender?.close();
    },
  };
}

const CONNECTED = new HeldBackError("only a connection was wanted");
/** Stops a request when its connection is open, before anything is sent. The next request can use the connection. */
const CONNECTED_ONLY: Fence = {
  mayLeave: () => {
    throw CONNECTED;
  },
  hasLeft: () => {},
  renew: () => Promise.resolve(),
};

async function open(settings: HttpSettings): Promise<Connections> {
  // Imported only when needed, so that the server starts fast.
  const { connectionsTo } = await import("./dispatcher.ts");
  const { origin, pathname } = new URL(typeof settings.url === "string" ? settings.url : await settings.url());
  const way = { largestAnswer: LARGEST_ANSWER, ...settings };
  const connections = connectionsTo(origin, way);
  return { ...connections, prefix: connections.prefix + pathname.replace(/\/+$/, "") };
}

/**
 * Sends a request. The service cannot apply an incomplete one. So if sending fails before the last bytes, the request
 * counts as not sent; after them, it may have been applied. The last part of a large body, and a small request as a
 * whole, are sent only if the fence allows it.
 */
async function sendOnce(
  { sender, origin, prefix, headers: ofWay }: Connections,
  { credential, requestTimeoutMs, setBy, largestAnswer = LARGEST_ANSWER }: HttpSettings,
  request: HttpRequest,
): Promise<HttpAnswer> {
  const { operation, signal, fence } = request;
  signal?.throwIfAborted();
  let started: Dispatcher.DispatchController | undefined;
  let stopped: StoppedError | undefined;
  let isComplete = false;
  const complete = (): void => {
    if (stopped !== undefined) throw stopped;
    fence?.mayLeave();
    isComplete = true;
  };
  const { body, headers: ofBody } = outgoing(request, complete, () => way);
  const way = isSliced(body) ? trackSocketQueue(body) : undefined;
  let stop = (_why: string): void => {};
  const onAbort = (): void => stop("the call was cancelled");
  signal?.addEventListener("abort", onAbort, { once: true });
  const limitMs = Math.min(requestTimeoutMs, request.timeoutMs ?? requestTimeoutMs);
  const timer = setTimeout(() => stop(`its time limit of ${limitMs} ms passed`), limitMs);
  try {
    const answer = await new Promise<HttpAnswer>((resolve, reject) => {
      stop = (why) => {
        stopped ??= new StoppedError(why);
        reject(stopped);
        started?.abort(stopped);
      };
      let statusCode = 0;
      let headers: HttpAnswer["headers"] = {};
      const chunks: Buffer[] = [];
      sender.dispatch(
        {
          origin,
          path: prefix + request.path,
          method: request.method,
          body,
          headers: { ...ofWay, ...credential, ...ofBody },
        },
        {
          onRequestStart(controller) {
            if (stopped !== undefined) return controller.abort(stopped);
            if (!isSliced(body)) {
              complete();
              // undici writes the request in this turn of the event loop, and the microtask runs right after that.
              if (fence !== undefined) queueMicrotask(() => fence.hasLeft());
            }
            started = controller;
          },
          onResponseStart(_controller, status, received) {
            statusCode = status;
            headers = received;
          },
          onResponseData: (_controller, chunk) => void chunks.push(chunk),
          onResponseEnd: () => resolve({ statusCode, headers, body: Buffer.concat(chunks) }),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
    const encodings = answer.headers["content-encoding"];
    if (encodings === undefined) return answer;
    return { ...answer, body: await decoded(answer.body, String(encodings), largestAnswer) };
  } catch (cause) {
    const failure = { operation, setBy, ...networkFailure(cause) };
    if (isComplete) throw new AmbiguousError(failure, { cause });
    signal?.throwIfAborted();
    throw new NotSentError(failure, { cause });
  } finally {
    way?.end();
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** The most bytes of the last part of a body. A larger body is sent in two parts. */
const SLICE = 65_536;

/**
 * If sending the first part takes longer than this (in milliseconds), the write lease is renewed before the last part.
 * The fence allows only two seconds after a renewal, so it could otherwise stop the request.
 */
const RENEWED_AFTER_MS = 500;

type Sliced = AsyncGenerator<Uint8Array>;
type Outgoing = string | Uint8Array | Sliced | null;

function isSliced(body: Outgoing): body is Sliced {
  return body !== null && typeof body === "object" && Symbol.asyncIterator in body;
}

/** Returns a body as undici accepts it. Calls `complete` right before the last part of a large body is sent. */
function outgoing(
  { body, type: kind = "application/json", fence }: HttpRequest,
  complete: () => void,
  way: () => OnItsWay | undefined,
) {
  if (body === undefined) return { body: null, headers: {} } satisfies { body: Outgoing; headers: object };
  const type = { "content-type": kind };
  const bytes = typeof body === "string" && body.length > SLICE / 4 ? Buffer.from(body) : body;
  if (typeof bytes === "string" || bytes.length <= SLICE) return { body: bytes, headers: type };
  return {
    body: sliced(bytes, fence, complete, way),
    headers: { ...type, "content-length": String(bytes.length) },
  };
}

/**
 * Yields a large body in two parts. The first part fills the write buffer of the socket. So undici asks for the last
 * part only after the operating system has taken the first one. With a fence, on Linux, the last part then waits until
 * the other end has received nearly all of the first one.
 */
async function* sliced(
  bytes: Uint8Array,
  fence: Fence | undefined,
  complete: () => void,
  way: () => OnItsWay | undefined,
): Sliced {
  const at = Math.floor((bytes.length - 1) / SLICE) * SLICE;
  const beganAt = performance.now();
  yield bytes.subarray(0, at);
  if (fence !== undefined) await way()?.delivered();
  if (performance.now() - beganAt > RENEWED_AFTER_MS) await fence?.renew();
  complete();
  yield bytes.subarray(at);
  fence?.hasLeft();
}

const LEAVING = "undici:client:sendHeaders";
/** The pause between two checks of what the service has received, in milliseconds. It doubles up to `most`. */
const LOOK_AGAIN_MS = { first: 1, most: 10 };
/** Where Linux lists open connections, by IP version. Reading a file takes about a millisecond. */
const TABLES: Readonly<Record<string, string>> = { IPv4: "/proc/self/net/tcp", IPv6: "/proc/self/net/tcp6" };

type Connection = Pick<Socket, "localPort" | "remotePort" | "remoteFamily" | "destroyed">;

/**
 * The first part counts as received if at most this many bytes have not been acknowledged. 128 KB take one second at 1
 * Mbit/s. Waiting for the last bytes would delay every request, because receivers acknowledge them late (Linux: after
 * 40 ms).
 */
const FEW_BYTES = 131_072;

/** Finds the connection that sends this body, in order to check how much of the body the service has received. */
function trackSocketQueue(body: object) {
  let socket: Connection | undefined;
  const note = (message: unknown): void => {
    if (isLeaving(message) && message.request.body === body) socket = message.socket;
  };
  subscribe(LEAVING, note);
  return {
    /**
     * Resolves when the service has received nearly all bytes that were written, or when the connection is closed. The
     * operating system buffers megabytes, and sends them even while this process is suspended. Only Linux reports what
     * was received. On other systems, resolves at once.
     */
    async delivered(): Promise<void> {
      for (let waitMs = LOOK_AGAIN_MS.first; socket !== undefined; waitMs = Math.min(2 * waitMs, LOOK_AGAIN_MS.most)) {
        if (socket.destroyed || (await queuedBytes(socket)) <= FEW_BYTES) return;
        await delay(waitMs);
      }
    },
    end: () => void unsubscribe(LEAVING, note),
  };
}

type OnItsWay = ReturnType<typeof trackSocketQueue>;

interface Leaving {
  readonly request: { readonly body?: unknown };
  readonly socket: Connection;
}

function isLeaving(message: unknown): message is Leaving {
  return typeof message === "object" && message !== null && "request" in message && "socket" in message;
}

/** Returns how many bytes the service has not acknowledged; 0 if the system does not report it. */
async function queuedBytes({ localPort = 0, remotePort = 0, remoteFamily = "" }: Connection): Promise<number> {
  const table = TABLES[remoteFamily];
  if (table === undefined) return 0;
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");
  const line = new RegExp(`:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} .. ([0-9A-F]{8}):`);
  const [, queued = "0"] = line.exec(await readFile(table, "latin1").catch(() => "")) ?? [];
  return Number.parseInt(queued, 16);
}
