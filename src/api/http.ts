import type { Dispatcher } from "undici";
import type { Method } from "../spec/routes.ts";
import type { ProxyRoute } from "./dispatcher.ts";
import { AmbiguousError, NotSentError, type Purpose } from "./errors.ts";
import { connectionReason, StoppedError } from "./reasons.ts";

/** Where an API is and how its requests travel. */
export interface HttpSettings {
  /** Base address, perhaps with a path; or a way to get it, used when the first request needs it. */
  readonly url: string | (() => Promise<string>);
  /** The header that carries the key. */
  readonly credential: Readonly<Record<string, string>>;
  /** For one request, from its first step to the last byte of its answer. */
  readonly requestTimeoutMs: number;
  readonly proxy?: ProxyRoute | undefined;
}

/** One request: `path` with its query, below the base address; `body` is JSON text, or its UTF-8. */
interface HttpRequest {
  readonly operation: Purpose;
  readonly method: Method;
  readonly path: string;
  readonly body?: string | Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, where that is less than `requestTimeoutMs`. */
  readonly timeoutMs?: number | undefined;
}

/** What came back: any status, and the body as it came. Header names are in lower case. */
export interface HttpAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
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

/** What requests travel through, and what their paths begin with. */
interface Opened {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
  readonly prefix: string;
}

/** Opens an API: nothing is loaded, looked up or connected before the first request. */
export function openHttp(settings: HttpSettings): Http {
  let opening: Promise<Opened> | undefined;
  return {
    async send(request) {
      opening ??= open(settings);
      let opened: Opened;
      try {
        opened = await opening;
      } catch (cause) {
        opening = undefined;
        throw new NotSentError({ operation: request.operation, reason: connectionReason(cause) }, { cause });
      }
      return sendOnce(opened, settings, request);
    },
    async close() {
      const opened = await opening;
      await opened?.dispatcher.close();
    },
  };
}

async function open(settings: HttpSettings): Promise<Opened> {
  // Loaded late: a server that is only asked for its tools starts faster without it.
  const { dispatcherTo } = await import("./dispatcher.ts");
  const { origin, pathname } = new URL(typeof settings.url === "string" ? settings.url : await settings.url());
  return { dispatcher: dispatcherTo(origin, settings), origin, prefix: pathname.replace(/\/+$/, "") };
}

/**
 * The dispatcher tells when a request starts on a connection. What fails before that moment was not sent, whatever
 * the failure; what fails after it may have reached the service.
 */
async function sendOnce(
  { dispatcher, origin, prefix }: Opened,
  { credential, requestTimeoutMs }: HttpSettings,
  request: HttpRequest,
): Promise<HttpAnswer> {
  const { operation, signal } = request;
  signal?.throwIfAborted();
  let started: Dispatcher.DispatchController | undefined;
  let stopped: StoppedError | undefined;
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
          body: request.body ?? null,
          headers: { ...credential, ...(request.body !== undefined && { "content-type": "application/json" }) },
        },
        {
          onRequestStart(controller) {
            if (stopped !== undefined) return controller.abort(stopped);
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
    if (started === undefined) {
      signal?.throwIfAborted();
      throw new NotSentError({ operation, reason: connectionReason(cause) }, { cause });
    }
    throw new AmbiguousError({ operation, reason: connectionReason(cause) }, { cause });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}
