import { once } from "node:events";
import type { Server } from "node:http";
import { cannotListen } from "../cannot-listen.ts";
import { bracketed } from "./http-access.ts";

/** Opens the port of a server; gives its address. Throws where the port cannot be opened. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (cause) {
    throw cannotListen(host, port, cause);
  }
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the server listens on no port");
  return originOf(host, address.port);
}

/** The address of a server without a path. */
export function originOf(host: string, port: number): string {
  return `http://${bracketed(host)}:${port}`;
}
