import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import type { Method, Operation } from "../spec/routes.ts";
import { AmbiguousError, NotSentError } from "./errors.ts";
import { connectionReason, StoppedError } from "./reasons.ts";

/** A proxy on the way to an API, and the hosts that need none, as in NO_PROXY. */
export interface Proxy {
  readonly url: string;
  readonly except: string;
}

/** Where an API is and how its requests travel. */
export interface HttpSettings {
  /** Base address, perhaps with a path; no trailing slash. */
  readonly url: string;
  /** The header that carries the key. */
  readonly credential: Readonly<Record<string, string>>;
  /** For one request, from its first step to the last byte of its answer. */
  readonly requestTimeoutMs: number;
  readonly proxy?: Proxy | undefined;
}

/** One request: `path` with its query, below the base address; `body` is JSON text. */
export interface HttpRequest {
  readonly operation: Operation;
  readonly method: Method;
  readonly path: string;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What came back: any status, and the body as text. Header names are in lower case. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Requests to one API over kept-alive connections. */
export interface Http {
  /**
   * Sends one request, once; redirects are not followed. Throws a NotSentError when nothing had left this machine,
   * an AmbiguousError when no whole answer came, and the signal's reason when it was aborted before sending.
   */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Closes the connections once they are idle. */
  close(): Promise<void>;
}

/** An answer above this many bytes is not read: the largest that the documents allow for is far below it. */
const LARGEST_ANSWER = 64 * 1_048_576;

const CONNECTIONS = 16;
const CONNECT_TIMEOUT_MS = 10_000;

/** Opens an API: connections are made when the first request needs them. */
export function openHttp(settings: HttpSettings): Http {
  const { origin, pathname } = new URL(settings.url);
  const prefix = pathname.replace(/\/+$/, "");
  const dispatcher = makeDispatcher(settings, origin);
  return {
    send: (request) => sendOnce(dispatcher, settings, { ...request, origin, path: prefix + request.path }),
    close: () => dispatcher.close(),
  };
}

function makeDispatcher({ requestTimeoutMs, proxy }: HttpSettings, origin: string): Dispatcher {
  const options = {
    connections: CONNECTIONS,
    // Our own timer covers the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeoutMs),
    maxResponseSize: LARGEST_ANSWER,
  };
  if (proxy === undefined) return new Pool(origin, options);
  return new EnvHttpProxyAgent({ ...options, httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except });
}

/**
 * The dispatcher tells when a request starts on a connection. What fails before that moment was not sent, whatever
 * the failure; what fails after it may have reached the service.
 */
async function sendOnce(
  dispatcher: Dispatcher,
  { credential, requestTimeoutMs }: HttpSettings,
  request: HttpRequest & { readonly origin: string },
): Promise<HttpAnswer> {
  const { operation, signal } = request;
  signal?.throwIfAborted();
  const stop = stopAfter(requestTimeoutMs, signal);
  let started = false;
  try {
    return await new Promise<HttpAnswer>((resolve, reject) => {
      let statusCode = 0;
      let headers: HttpAnswer["headers"] = {};
      const chunks: Buffer[] = [];
      stop.signal.addEventListener("abort", () => reject(stop.reason()), { once: true });
      dispatcher.dispatch(
        {
          origin: request.origin,
          path: request.path,
          method: request.method,
          body: request.body ?? null,
          headers: { ...credential, ...(request.body !== undefined && { "content-type": "application/json" }) },
        },
        {
          onRequestStart(controller) {
            if (stop.signal.aborted) return controller.abort(stop.reason());
            started = true;
            stop.signal.addEventListener("abort", () => controller.abort(stop.reason()), { once: true });
          },
          onResponseStart(_controller, status, received) {
            statusCode = status;
            headers = received;
          },
          onResponseData: (_controller, chunk) => void chunks.push(chunk),
          onResponseEnd: () => resolve({ statusCode, headers, body: Buffer.concat(chunks).toString("utf8") }),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
  } catch (cause) {
    if (!started) {
      signal?.throwIfAborted();
      throw new NotSentError({ operation, reason: connectionReason(cause) }, { cause });
    }
    throw new AmbiguousError({ operation, reason: connectionReason(cause) }, { cause });
  } finally {
    stop.clear();
  }
}

/** What stops one request: its time limit and the caller's signal. `clear` lets go of both. */
function stopAfter(ms: number, signal: AbortSignal | undefined) {
  const stop = new AbortController();
  let reason = `its time limit of ${ms} ms passed`;
  const onAbort = () => {
    reason = "the call was cancelled";
    stop.abort();
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => stop.abort(), ms);
  const clear = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
  return { signal: stop.signal, reason: () => new StoppedError(reason), clear };
}
