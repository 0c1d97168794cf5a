import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";

/** A proxy on the way to an API, and the hosts that need none, as in NO_PROXY. */
export interface ProxyRoute {
  readonly url: string;
  readonly except: string;
}

const LARGEST_ANSWER = 64 * 1_048_576;

const CONNECTIONS = 16;
const CONNECT_TIMEOUT_MS = 10_000;

/** How requests travel: the time for one, the proxy, the largest answer in bytes, and how many at the same time. */
interface Way {
  readonly connections?: number | undefined;
  readonly requestTimeoutMs: number;
  readonly proxy?: ProxyRoute | undefined;
  readonly largestAnswer?: number;
}

/** The bodies of undici, and one that its types leave out: it asks for each slice when the one before has drained. */
type Body = Dispatcher.DispatchOptions["body"] | AsyncIterable<Uint8Array>;

/** Connections that requests travel through. */
export interface Sender {
  dispatch(
    options: Omit<Dispatcher.DispatchOptions, "body"> & { readonly body?: Body },
    handler: Dispatcher.DispatchHandler,
  ): boolean;
  close(): Promise<void>;
}

/** Kept-alive connections to one origin. The time of a whole request is limited by its sender. */
export function dispatcherTo(origin: string, way: Way): Sender {
  const { requestTimeoutMs, proxy, largestAnswer = LARGEST_ANSWER, connections = 0 } = way;
  const options = {
    connections: Math.max(CONNECTIONS, connections),
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeoutMs),
    maxResponseSize: largestAnswer,
  };
  if (proxy === undefined) return new Pool(origin, options);
  return new EnvHttpProxyAgent({ ...options, httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except });
}
