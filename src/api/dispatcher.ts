import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";

/** A proxy on the way to an API, and the hosts that need none, as in NO_PROXY. */
export interface ProxyRoute {
  readonly url: string;
  readonly except: string;
}

const LARGEST_ANSWER = 64 * 1_048_576;

const CONNECTIONS = 16;
const CONNECT_TIMEOUT_MS = 10_000;

/** How requests travel: the time for one, the proxy, and the largest answer in bytes. */
interface Way {
  readonly requestTimeoutMs: number;
  readonly proxy?: ProxyRoute | undefined;
  readonly largestAnswer?: number;
}

/** Kept-alive connections to one origin. Whoever sends is to limit the time of a whole request. */
export function dispatcherTo(
  origin: string,
  { requestTimeoutMs, proxy, largestAnswer = LARGEST_ANSWER }: Way,
): Dispatcher {
  const options = {
    connections: CONNECTIONS,
    headersTimeout: 0,
    bodyTimeout: 0,
    connectTimeout: Math.min(CONNECT_TIMEOUT_MS, requestTimeoutMs),
    maxResponseSize: largestAnswer,
  };
  if (proxy === undefined) return new Pool(origin, options);
  return new EnvHttpProxyAgent({ ...options, httpProxy: proxy.url, httpsProxy: proxy.url, noProxy: proxy.except });
}
