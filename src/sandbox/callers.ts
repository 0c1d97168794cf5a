import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { originIn } from "../platform/listen.ts";

/** The origin of a request, according to its headers. */
interface Caller {
  /** The address at the other end of the connection. */
  readonly peer: string | undefined;
  /** The headers `Host` and `Origin`. */
  readonly host: string | undefined;
  readonly origin: string | undefined;
}

/** Returns the origin of a request. */
export function callerOf({ socket, headers }: IncomingMessage): Caller {
  return { peer: socket.remoteAddress, host: headers.host, origin: headers.origin };
}

/** The names under which a sandbox is served, besides those of this machine and IP addresses. */
export interface ServedNames {
  /** The host that it listens on. */
  readonly host: string;
  /** Allowed host names, in lower case. */
  readonly allowed: readonly string[];
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Returns whether a request may use the control plane: it came over a connection from this machine and was addressed to
 * a loopback name, and so was the page that sent it, if any.
 */
export function isFromLoopback({ peer, host, origin }: Caller): boolean {
  if (!isLoopbackAddress(peer ?? "")) return false;
  const hostname = hostnameOf(`http://${host ?? ""}`);
  if (hostname === undefined || !LOOPBACK.has(hostname)) return false;
  if (origin === undefined) return true;
  const from = originIn(origin);
  return from !== undefined && LOOPBACK.has(from.hostname);
}

/**
 * Returns whether a request may use the APIs. It keeps out web pages that point their own name at this machine (DNS
 * rebinding): only names that no page on the internet can have are served. With `anyOrigin` a page may come from
 * anywhere, as pages under test do; otherwise it must have been served under such a name, too.
 */
export function isServed({ host, origin }: Caller, names: ServedNames, anyOrigin: boolean): boolean {
  if (!isOurs(hostnameOf(`http://${host ?? ""}`), names)) return false;
  if (anyOrigin || origin === undefined) return true;
  const from = originIn(origin);
  return from !== undefined && isOurs(from.hostname, names);
}

function isOurs(hostname: string | undefined, { host, allowed }: ServedNames): boolean {
  if (hostname === undefined || hostname === "") return false;
  // An IP address cannot be pointed elsewhere. An Android emulator reaches its host machine as 10.0.2.2.
  if (isIP(bare(hostname)) !== 0) return true;
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return true;
  if (hostname === host.toLowerCase() || allowed.includes(hostname)) return true;
  // Names of containers and of machines in a private network. On the internet every name contains a dot.
  return !isLoopbackHost(host) && !hostname.includes(".");
}

function isLoopbackHost(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}

/** Returns whether an address, also an IPv4 address written as IPv6, is a loopback address. */
function isLoopbackAddress(address: string): boolean {
  const plain = bare(address).replace(/^::ffff:/i, "");
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

/** Returns an address without the brackets of a URL. */
function bare(address: string): string {
  return address.replace(/^\[(.*)\]$/, "$1");
}

/** Returns the host name of an address, in lower case. */
function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
