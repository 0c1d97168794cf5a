import { once } from "node:events";
import type { Server } from "node:net";

/**
 * Returns the address in an `Origin` header as browsers write it: `http` or `https`, host and port. Undefined for other
 * texts.
 */
export function originIn(header: string): URL | undefined {
  if (!URL.canParse(header)) return undefined;
  const url = new URL(header);
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  return isWeb && url.origin === header ? url : undefined;
}

/** Opens the port of a server. Returns its number. Throws the error of the system if it cannot be opened. */
export async function openPort(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return address.port;
}

/** Returns the address of a server without a path. */
export function originOf(host: string, port: number): string {
  return `http://${bracketed(host)}:${port}`;
}

/** Returns an IPv6 address as in a URL. */
export function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
