import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { originIn } from "../platform/listen.ts";

export type Scope = "context-targeting:read" | "context-targeting:write";

export interface ManagementKey {
  readonly key: string;
  readonly project?: string | undefined;
  /** What the key may do. Default: both scopes. */
  readonly scopes?: readonly Scope[] | undefined;
  /** A revoked key is rejected like an unknown one. */
  readonly revoked?: boolean | undefined;
}

export const SCOPES = ["context-targeting:read", "context-targeting:write"] as const satisfies readonly Scope[];

export const DEFAULT_PROJECT = "sandbox";

export const BUILT_IN_KEYS = {
  management: [
    { key: "sandbox-key", project: DEFAULT_PROJECT, scopes: SCOPES },
    { key: "sandbox-read-key", project: DEFAULT_PROJECT, scopes: ["context-targeting:read"] },
  ],
  app: ["sandbox-app-key"],
} as const satisfies { readonly management: readonly ManagementKey[]; readonly app: readonly string[] };

type Caller = ReturnType<typeof callerOf>;

export function callerOf({ socket, headers }: IncomingMessage) {
  return { peer: socket.remoteAddress, host: headers.host, origin: headers.origin };
}

/** The host names under which the APIs answer. `localhost` and IP addresses are always accepted, too. */
export interface ServedNames {
  readonly host: string;
  /** Must be in lower case. */
  readonly allowed: readonly string[];
}

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * Returns whether a request comes from this machine, by its connection, `Host` and `Origin`. Only such requests may use
 * the control plane and the web page.
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
 * Returns whether a request may use the APIs. A malicious web page can make its own host name point to this machine
 * (DNS rebinding), so unknown host names are refused. `anyOrigin`: pages of any origin may send requests, such as a
 * shop under test.
 */
export function isServed({ host, origin }: Caller, names: ServedNames, anyOrigin: boolean): boolean {
  if (!isOurs(hostnameOf(`http://${host ?? ""}`), names)) return false;
  if (anyOrigin || origin === undefined) return true;
  const from = originIn(origin);
  return from !== undefined && isOurs(from.hostname, names);
}

function isOurs(hostname: string | undefined, { host, allowed }: ServedNames): boolean {
  if (hostname === undefined || hostname === "") return false;
  // DNS rebinding needs a host name, so IP addresses are safe. An Android emulator reaches its host as 10.0.2.2.
  if (isIP(bare(hostname)) !== 0) return true;
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return true;
  if (hostname === host.toLowerCase() || allowed.includes(hostname)) return true;
  // Names without a dot, as containers have, are accepted if other machines can reach the sandbox.
  const isLoopbackHost = host === "localhost" || isLoopbackAddress(host);
  return !isLoopbackHost && !hostname.includes(".");
}

function isLoopbackAddress(address: string): boolean {
  const plain = bare(address).replace(/^::ffff:/i, "");
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

function bare(address: string): string {
  return address.replace(/^\[(.*)\]$/, "$1");
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
