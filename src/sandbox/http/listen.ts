import type { AddressInfo, Socket } from "node:net";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";

/** An app that is being served. */
export interface Listening {
  readonly port: number;
  /** Stops listening and cuts every connection. */
  stop(): Promise<void>;
  /** Lets the process end while this still listens, or holds connections. */
  unref(): void;
}

/** Serves an app; port 0 takes a free one. Throws when the port cannot be taken. */
export async function listen(app: Hono<{ Bindings: HttpBindings }>, host: string, port: number): Promise<Listening> {
  const server = createAdaptorServer({ fetch: app.fetch });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    port: portOf(server.address()),
    stop: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)));
        for (const socket of sockets) socket.destroy();
      }),
    unref() {
      server.unref();
      for (const socket of sockets) socket.unref();
      server.on("connection", (socket: Socket) => socket.unref());
    },
  };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new TypeError("the sandbox listens on no port");
  return address.port;
}
