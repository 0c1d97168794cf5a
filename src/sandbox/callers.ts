import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { originIn } from "../platform/listen.ts";

/** Where a request comes from and which host name it uses. */
interface Caller {
  /** The address of the client that opened the connection. */
  readonly peer: string | undefined;
  readonly host: string | undefined;
  readonly origin: string | undefined;
}

export function callerOf({ socket, headers }: IncomingMessage): Caller {
  return { peer: socket.remoteAddress, host: headers.host, origin: headers.origin };
}

/** Host names under which a sandbox answers, in addition to those of this machine and IP addresses. */
export interface ServedNames {
  /** The host name that the sandbox listens on. */
  readonly host: string;
  /** Host names from the settings, in lower case. */
  readonly allowed: readonly string[];
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Returns whether a request may use the control plane. The connection must come from this machine, and the headers
 * `Host` and, if present, `Origin` must name this machine, so that no web page can use it.
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
 * Returns whether a request may use the APIs. Only host names that no page on the internet can have are accepted,
 * because a page can point its own name at this machine (DNS rebinding). With `anyOrigin` the request may be sent by a
 * page of any origin, such as a shop under test.
 */
export function isServed({ host, origin }: Caller, names: ServedNames, anyOrigin: boolean): boolean {
  if (!isOurs(hostnameOf(`http://${host ?? ""}`), names)) return false;
  if (anyOrigin || origin === undefined) return true;
  const from = originIn(origin);
  return from !== undefined && isOurs(from.hostname, names);
}

function isOurs(hostname: string | undefined, { host, allowed }: ServedNames): boolean {
  if (hostname === undefined || hostname === "") return false;
  // A page cannot point an IP address elsewhere. An Android emulator reaches its host machine as 10.0.2.2.
  if (isIP(bare(hostname)) !== 0) return true;
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return true;
  if (hostname === host.toLowerCase() || allowed.includes(hostname)) return true;
  // Containers and machines in a private network have names without a dot. Names on the internet contain one.
  return !isLoopbackHost(host) && !hostname.includes(".");
}

function isLoopbackHost(host: string): boolean {
  return host === "localhost" || isLoopbackAddress(host);
}

/** Returns whether an address is a loopback address. It may be an IPv4 address written as IPv6. */
function isLoopbackAddress(address: string): boolean {
  const plain = bare(address).replace(/^::ffff:/i, "");
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

/** Removes the brackets of an IPv6 address in a URL. */
function bare(address: string): string {
  return address.replace(/^\[(.*)\]$/, "$1");
}

/** Returns the host name of a URL in lower case; undefined if it is not a URL. */
function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
