import { isLoopback } from "./loopback.ts";

/** Proxies by the scheme of an address, and the hosts that need none, as in NO_PROXY. */
export interface Proxies {
  readonly https?: string | undefined;
  readonly http?: string | undefined;
  readonly none?: string | undefined;
}

/**
 * The address of the proxy on the way to `url`; undefined for a direct way. Addresses of this machine never go through
 * a proxy, for which they would mean its own machine.
 */
export function proxyFor(url: string, proxies: Proxies): string | undefined {
  const proxy = url.startsWith("https:") ? proxies.https : proxies.http;
  return proxy === undefined || isLoopback(url) || needsNoProxy(url, proxies.none ?? "") ? undefined : proxy;
}

/**
 * Whether NO_PROXY names the host of an address: a comma list of hosts, each with all of its subdomains and perhaps a
 * port, or `*` for all hosts.
 */
function needsNoProxy(url: string, none: string): boolean {
  const { protocol, hostname, port } = new URL(url);
  const host = bare(hostname);
  const portUsed = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  return none.split(/[,\s]+/).some((entry) => {
    if (entry === "*") return true;
    const [, name = "", onPort = portUsed] = /^(\[.*\]|[^:]*|.*:.*:.*?)(?::(\d+))?$/.exec(entry) ?? [];
    const wanted = bare(name.replace(/^\*?\./, ""));
    return wanted !== "" && onPort === portUsed && (host === wanted || host.endsWith(`.${wanted}`));
  });
}

/** A host in lower case, an IPv6 address without its brackets. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}
