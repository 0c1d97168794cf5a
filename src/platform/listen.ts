import { once } from "node:events";
import type { Server } from "node:net";

/** Parses the header `Origin` as browsers write it for http and https. Undefined for any other text. */
export function originIn(header: string): URL | undefined {
  if (!URL.canParse(header)) return undefined;
  const url = new URL(header);
  const isWeb = url.protocol === "http:" || url.protocol === "https:";
  return isWeb && url.origin === header ? url : undefined;
}

/** Starts a server and returns its port. For 0, the system chooses one. Throws an error if the port is in use. */
export async function openPort(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return address.port;
}

export function originOf(host: string, port: number): string {
  return `http://${bracketed(host)}:${port}`;
}

/** Returns a host as it is written in a URL: an IPv6 address in brackets, any other host unchanged. */
export function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
