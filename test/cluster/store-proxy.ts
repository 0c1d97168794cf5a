import { connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** A proxy to the store whose connections a test can cut, delay or suspend. */
export interface StoreProxy {
  /** Returns the address of a database through this proxy. */
  through(store: string): string;
  /** Closes all connections, and refuses new ones. */
  cut(): void;
  /** Forwards this many more connections. When the next one is opened, cuts all. Returns a promise of that moment. */
  cutAfter(connections: number): Promise<void>;
  /** Keeps and accepts connections, but forwards nothing, not even that one side has closed its connection. */
  hang(): void;
  /** Forwards everything again, each piece after this many milliseconds. */
  pass(delayMs?: number): void;
  close(): void;
}

/** Opens a proxy to a port of this machine. */
export async function storeProxy(port: number): Promise<StoreProxy> {
  let mode: "pass" | "cut" | "hang" = "pass";
  let delayMs = 0;
  const sockets = new Set<Socket>();
  let awake = (): void => {};
  let hung = Promise.resolve();

  /** Forwards the data of one side, piece by piece and in order. */
  const pipe = async (from: Socket, to: Socket): Promise<void> => {
    for await (const piece of from) {
      if (mode === "hang") await hung;
      if (delayMs > 0) await delay(delayMs);
      if (to.destroyed || from.destroyed) return;
      if (!to.write(piece)) await new Promise((resolve) => to.once("drain", resolve).once("close", resolve));
    }
    if (mode !== "hang") to.end();
  };
  let left = Number.POSITIVE_INFINITY;
  let noneLeft = (): void => {};
  const server = createServer((client) => {
    if (left === 0) {
      left = Number.POSITIVE_INFINITY;
      cut();
      noneLeft();
    }
    left -= 1;
    if (mode === "cut") {
      client.on("error", () => undefined).destroy();
      return;
    }
    const store = connect(port, "127.0.0.1");
    for (const [socket, other] of [
      [client, store],
      [store, client],
    ] as const) {
      sockets.add(socket);
      socket
        .on("error", () => undefined)
        .on("close", () => {
          sockets.delete(socket);
          if (mode !== "hang") other.destroy();
        });
    }
    for (const passed of [pipe(client, store), pipe(store, client)]) passed.catch(() => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const wake = (): void => {
    awake();
    awake = () => {};
  };
  const cut = (): void => {
    mode = "cut";
    wake();
    breakAll();
  };
  return {
    through(store) {
      const url = new URL(store);
      url.port = String(address.port);
      return url.href;
    },
    cut,
    cutAfter(connections) {
      left = connections;
      return new Promise((resolve) => {
        noneLeft = resolve;
      });
    },
    hang() {
      mode = "hang";
      hung = new Promise((resolve) => {
        awake = resolve;
      });
    },
    pass(ms = 0) {
      mode = "pass";
      delayMs = ms;
      wake();
    },
    close() {
      cut();
      server.close();
    },
  };
}
