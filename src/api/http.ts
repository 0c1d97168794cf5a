import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { type Fence, HeldBackError } from "../platform/fence.ts";
import type { Method } from "../spec/routes.ts";
import type { Connections } from "./dispatcher.ts";
import { AmbiguousError, NotSentError, type Purpose } from "./errors.ts";
import { decoded, networkFailure, StoppedError } from "./network-causes.ts";

/** Where an API is and how its requests travel. */
export interface HttpSettings {
  /** Base address, perhaps with a path; or a way to get it, used when the first request needs it. */
  readonly url: string | (() => Promise<string>);
  /** The setting that names the address, for messages; absent where none does. */
  readonly setBy?: string | undefined;
  /** The header that carries the key. */
  readonly credential: Readonly<Record<string, string>>;
  /** For one request, from its first step to the last byte of its answer. */
  readonly requestTimeoutMs: number;
  /** The address of a proxy on the way, perhaps with a user and a password. */
  readonly proxy?: string | undefined;
  /** How many requests may be under way at the same time, where that is to be more than 16. */
  readonly connections?: number | undefined;
  /**
   * An answer above this many bytes is not read; absent: the 64 MB of an API, far above what the documents allow for.
   */
  readonly largestAnswer?: number;
}

/** One request: `path` with its query, below the base address; `body` is JSON text, or its UTF-8. */
interface HttpRequest {
  readonly operation: Purpose;
  readonly method: Method;
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
  /** What kind of text the body is, where it is no JSON. */
  readonly type?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Says at the last moment whether it may leave; it always may where there is none. */
  readonly fence?: Fence | undefined;
  /** How long it may take, where that is less than `requestTimeoutMs`. */
  readonly timeoutMs?: number | undefined;
}

/** An answer with any status; the body is not decoded. Header names are in lower case. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Requests to one API over kept-alive connections. */
export interface Http {
  /** The setting that names the address, for messages. */
  readonly setBy?: string | undefined;
  /**
   * Sends one request, once; redirects are not followed. Throws a NotSentError when no whole request had left this
   * machine, an AmbiguousError when no whole answer came, and the signal's reason when it was aborted before sending.
   */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Opens a connection where none is idle, so that the next request leaves at once. Throws a NotSentError. */
  connect(operation: Purpose): Promise<void>;
  /** Closes the connections once they are idle. */
  close(): Promise<void>;
}

/** The most bytes of an answer, before and after it is decompressed. */
const LARGEST_ANSWER = 64 * 1_048_576;

/** Prepares requests to an API. Loads, resolves and connects nothing before the first request. */
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
/** Stops a request once its connection is open. */
const CONNECTED_ONLY: Fence = {
  mayLeave: () => {
    throw CONNECTED;
  },
  hasLeft: () => {},
  renew: () => Promise.resolve(),
};

async function open(settings: HttpSettings): Promise<Connections> {
  // Loaded late: a server that is only asked for its tools starts faster without it.
  const { connectionsTo } = await import("./dispatcher.ts");
  const { origin, pathname } = new URL(typeof settings.url === "string" ? settings.url : await settings.url());
  const way = { largestAnswer: LARGEST_ANSWER, ...settings };
  const connections = connectionsTo(origin, way);
  return { ...connections, prefix: connections.prefix + pathname.replace(/\/+$/, "") };
}

/**
 * The dispatcher tells when a request starts on a connection; the last slice of a large body waits for the fence. A
 * failure before the bytes that complete the request means that it was not sent, since a service cannot apply a part of
 * a request; a failure after them means that it may have been applied.
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
              // What follows in this turn of the event loop writes the request.
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

/** A body larger than this goes out in two slices, of which the last one has no more bytes. */
const SLICE = 65_536;

/** How long the slices before the last one may take without a renewal of the right to send it; a fence allows for two seconds. */
const RENEWED_AFTER_MS = 500;

type Sliced = AsyncGenerator<Uint8Array>;
type Outgoing = string | Uint8Array | Sliced | null;

function isSliced(body: Outgoing): body is Sliced {
  return body !== null && typeof body === "object" && Symbol.asyncIterator in body;
}

/** The body as it goes out, and its headers. `complete` is called right before the last slice of a large one. */
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
 * The two slices of a body. The first is as large as a socket's buffer or larger, so that the last one is asked for when
 * it has drained; that leaves when the other end has nearly all of the first.
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

/** undici tells here which connection a request begins to leave by. */
const LEAVING = "undici:client:sendHeaders";
/** Nearly all of it arrives at once where the way is fast; a slow way is looked at less and less often. */
const LOOK_AGAIN_MS = { first: 1, most: 10 };
/** By the version of IP: reading a table takes the system a millisecond and more, however few lines it has. */
const TABLES: Readonly<Record<string, string>> = { IPv4: "/proc/self/net/tcp", IPv6: "/proc/self/net/tcp6" };

type Connection = Pick<Socket, "localPort" | "remotePort" | "remoteFamily" | "destroyed">;

/**
 * Bytes that may be on their way: a second of 1 Mbit/s. The other end says that it has the last ones only after a while
 * (Linux: 40 ms), which each request would wait for.
 */
const FEW_BYTES = 131_072;

/** How much of a request is still on its way. */
interface OnItsWay {
  /**
   * Resolves once the machine at the other end has all that was written but a few bytes, or the connection is gone. A
   * system holds megabytes, and sends them although the process stands still. Resolves at once where the system does not
   * tell: only Linux does.
   */
  delivered(): Promise<void>;
  /** Stops looking. */
  end(): void;
}

/** Looks at the connection of the request that has this body. */
function trackSocketQueue(body: object): OnItsWay {
  let socket: Connection | undefined;
  const note = (message: unknown): void => {
    if (isLeaving(message) && message.request.body === body) socket = message.socket;
  };
  subscribe(LEAVING, note);
  return {
    async delivered() {
      for (let waitMs = LOOK_AGAIN_MS.first; socket !== undefined; waitMs = Math.min(2 * waitMs, LOOK_AGAIN_MS.most)) {
        if (socket.destroyed || (await queuedBytes(socket)) <= FEW_BYTES) return;
        await delay(waitMs);
      }
    },
    end: () => void unsubscribe(LEAVING, note),
  };
}

interface Leaving {
  readonly request: { readonly body?: unknown };
  readonly socket: Connection;
}

function isLeaving(message: unknown): message is Leaving {
  return typeof message === "object" && message !== null && "request" in message && "socket" in message;
}

/** How many bytes the system holds that the other end has not acknowledged, as far as it tells. */
async function queuedBytes({ localPort = 0, remotePort = 0, remoteFamily = "" }: Connection): Promise<number> {
  const table = TABLES[remoteFamily];
  if (table === undefined) return 0;
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");
  // The address of either end with its port, the state, and the bytes in the queue for sending.
  const line = new RegExp(`:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} .. ([0-9A-F]{8}):`);
  const [, queued = "0"] = line.exec(await readFile(table, "latin1").catch(() => "")) ?? [];
  return Number.parseInt(queued, 16);
}
