/** Proxies by the scheme of an address, and the hosts that need none, as in NO_PROXY. */
export interface Proxies {
  readonly https?: string | undefined;
  readonly http?: string | undefined;
  readonly none?: string | undefined;
}

/**
 * The proxy on the way to an address, with the hosts that need none; undefined for a direct way. Addresses of this
 * machine never go through a proxy, for which they would mean its own machine.
 */
export function proxyFor(url: string, proxies: Proxies): { readonly url: string; readonly except: string } | undefined {
  const proxy = url.startsWith("https:") ? proxies.https : proxies.http;
  if (proxy === undefined || isLoopback(url)) return undefined;
  return { url: proxy, except: proxies.none ?? "" };
}

/** Whether an address is this machine. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url);
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** Whether requests to an address leave this machine unencrypted. */
export function isPlain(url: string): boolean {
  return /^http:/i.test(url) && !isLoopback(url);
}
