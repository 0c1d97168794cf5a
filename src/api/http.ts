import type { Dispatcher } from "undici";
import { type Fence, HeldBackError } from "../platform/fence.ts";
import type { Method } from "../spec/routes.ts";
import { type OnItsWay, onItsWay } from "./delivered.ts";
import type { ProxyRoute, Sender } from "./dispatcher.ts";
import { AmbiguousError, connectionReason, NotSentError, type Purpose, StoppedError } from "./errors.ts";

/** Where an API is and how its requests travel. */
export interface HttpSettings {
  /** Base address, perhaps with a path; or a way to get it, used when the first request needs it. */
  readonly url: string | (() => Promise<string>);
  /** The header that carries the key. */
  readonly credential: Readonly<Record<string, string>>;
  /** For one request, from its first step to the last byte of its answer. */
  readonly requestTimeoutMs: number;
  readonly proxy?: ProxyRoute | undefined;
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

/** The connections of an API, its origin, and the prefix of its paths. */
interface Opened {
  readonly dispatcher: Sender;
  readonly origin: string;
  readonly prefix: string;
}

/** Prepares requests to an API. Loads, resolves and connects nothing before the first request. */
export function openHttp(settings: HttpSettings): Http {
  let opening: Promise<Opened> | undefined;
  const opened = async (operation: Purpose): Promise<Opened> => {
    opening ??= open(settings);
    try {
      return await opening;
    } catch (cause) {
      opening = undefined;
      throw new NotSentError({ operation, reason: connectionReason(cause) }, { cause });
    }
  };
  return {
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
      const { dispatcher } = (await opening) ?? {};
      await dispatcher?.close();
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

async function open(settings: HttpSettings): Promise<Opened> {
  // Loaded late: a server that is only asked for its tools starts faster without it.
  const { dispatcherTo } = await import("./dispatcher.ts");
  const { origin, pathname } = new URL(typeof settings.url === "string" ? settings.url : await settings.url());
  return { dispatcher: dispatcherTo(origin, settings), origin, prefix: pathname.replace(/\/+$/, "") };
}

/**
 * The dispatcher tells when a request starts on a connection; the last slice of a large body waits for the fence. A
 * failure before the bytes that complete the request means that it was not sent, since a service cannot apply a part of
 * a request; a failure after them means that it may have been applied.
 */
async function sendOnce(
  { dispatcher, origin, prefix }: Opened,
  { credential, requestTimeoutMs }: HttpSettings,
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
  const way = isSliced(body) ? onItsWay(body) : undefined;
  let stop = (_why: string): void => {};
  const onAbort = (): void => stop("the call was cancelled");
  signal?.addEventListener("abort", onAbort, { once: true });
  const limitMs = Math.min(requestTimeoutMs, request.timeoutMs ?? requestTimeoutMs);
  const timer = setTimeout(() => stop(`its time limit of ${limitMs} ms passed`), limitMs);
  try {
    return await new Promise<HttpAnswer>((resolve, reject) => {
      stop = (why) => {
        stopped ??= new StoppedError(why);
        reject(stopped);
        started?.abort(stopped);
      };
      let statusCode = 0;
      let headers: HttpAnswer["headers"] = {};
      const chunks: Buffer[] = [];
      dispatcher.dispatch(
        {
          origin,
          path: prefix + request.path,
          method: request.method,
          body,
          headers: { ...credential, ...ofBody },
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
  } catch (cause) {
    if (!isComplete) {
      signal?.throwIfAborted();
      throw new NotSentError({ operation, reason: connectionReason(cause) }, { cause });
    }
    throw new AmbiguousError({ operation, reason: connectionReason(cause) }, { cause });
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
