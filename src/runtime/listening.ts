import { once } from "node:events";
import type { Server } from "node:http";
import { SettingsError } from "../settings/value-types.ts";

/** Opens the port of a server. Returns its address. Throws a SettingsError if the port cannot be opened. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  try {
    return originOf(host, await openPort(server, host, port));
  } catch (cause) {
    throw cannotListen(host, port, cause);
  }
}

/** Opens the port of a server. Returns its number. Throws the error of the system if it cannot be opened. */
export async function openPort(server: Server, host: string, port: number): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return address.port;
}

/** The error for a server that cannot listen, for the person who started it. */
export function cannotListen(host: string, port: number, cause: unknown): SettingsError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SettingsError(`cannot listen on ${host}, port ${port} (${why}): choose others with --host and --port`);
}

/** The address of a server without a path. */
export function originOf(host: string, port: number): string {
  return `http://${bracketed(host)}:${port}`;
}

/** An IPv6 address as in a URL. */
export function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}
