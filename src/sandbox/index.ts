import type { AddressInfo, Socket } from "node:net";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { type FailedRequest, sandboxApp } from "./app.ts";
import { checkForward } from "./event-endpoint.ts";
import type { ArrivedEvent } from "./event-log.ts";
import type { ManagementKey } from "./keys.ts";
import { SeedError } from "./sample.ts";
import { plantSeed, type Seed } from "./seed.ts";
import { dataFile, dumpWorld, loadWorld, noState, readDataFile } from "./state-dump.ts";
import { newWorld, type World } from "./world.ts";

/** How a sandbox is set up; everything has a default. */
export interface SandboxOptions {
  /** Address to listen on: 127.0.0.1. */
  readonly host?: string;
  /** Port to listen on; 0, the default, takes a free one. */
  readonly port?: number;
  /** Host names under which the APIs are served, besides those of this machine and addresses. */
  readonly allowedHosts?: readonly string[];
  /** Keys accepted besides the built-in ones. They are never part of a dump. */
  readonly keys?: { readonly managementKeys?: readonly ManagementKey[]; readonly appKeys?: readonly string[] };
  /** A file in which the state is kept across restarts. */
  readonly dataFile?: string;
  /** What it holds at its start; left out where a data file holds a state already. */
  readonly seed?: Seed | undefined;
  /** Base address of a real event endpoint to which events are passed on. */
  readonly forward?: string;
  /** Makes what serves the page for people, once it is first asked for. */
  readonly page?: (world: World, url: string) => Promise<(request: Request) => Promise<Response>>;
  /** Called with each request of the APIs that failed and left no event. */
  readonly failed?: (request: FailedRequest) => void;
  /** How long a write waits for another one of its project before it is answered 409, in milliseconds: 200. */
  readonly lockWaitMs?: number;
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
  /** Numbers in [0, 1), from which IDs are made. */
  readonly random?: () => number;
}

/** A running sandbox. */
export interface Sandbox {
  /** Base address of both APIs, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Stops listening, cuts every connection, and writes the data file. Throws when the file cannot be written. */
  close(): Promise<void>;
  /** Lets the process end while the sandbox still listens, or holds connections. */
  unref(): void;
  /** The events that arrived and are still remembered, oldest first. */
  events(): readonly ArrivedEvent[];
  /** Calls `arrived` with each event from now on. */
  onEvent(arrived: (event: ArrivedEvent) => void): void;
  /** The targetings of every project. */
  targetings(): readonly { readonly _id: string; readonly name: string }[];
  /** One line about the events seen so far. */
  shutdownSummary(): string;
}

/**
 * Starts the emulated service: the event API and the management API at one address, and the control plane under
 * `/_sandbox`. Throws a DataFileError when the data file cannot be read or written, a RangeError when `forward` is no
 * address, a SeedError when the seed does not fit together, and what the operating system says when the port cannot be taken.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  if (options.forward !== undefined) checkForward(options.forward);
  const world = newWorld({
    managementKeys: options.keys?.managementKeys ?? [],
    appKeys: options.keys?.appKeys ?? [],
    lockWaitMs: options.lockWaitMs ?? 200,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    changed: () => data?.touch(),
  });
  const data = options.dataFile === undefined ? undefined : dataFile(options.dataFile, () => dumpWorld(world));
  const isLoaded = options.dataFile !== undefined && (await loadFrom(world, options.dataFile));
  if (options.seed !== undefined && !isLoaded) plant(world, options.seed);
  world.readyAt = world.sources.now();
  await data?.flush();
  const host = options.host ?? "127.0.0.1";
  const allowed = (options.allowedHosts ?? []).map((name) => name.toLowerCase());
  const addressAt = (port: number): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  let serving: Promise<(request: Request) => Promise<Response>> | undefined;
  const { page: makePage } = options;
  const page =
    makePage &&
    (async (request: Request) => {
      serving ??= makePage(world, addressAt(listening.port));
      return (await serving)(request);
    });
  const app = sandboxApp(world, { forward: options.forward, names: { host, allowed }, page, failed: options.failed });
  const listening = await listen(app, host, options.port ?? 0);
  let closing: Promise<void> | undefined;
  return {
    url: addressAt(listening.port),
    port: listening.port,
    close: () => {
      closing ??= listening.stop().then(() => data?.flush());
      return closing;
    },
    unref: listening.unref,
    events: () => world.events.read({}, Number.POSITIVE_INFINITY).events,
    onEvent(arrived) {
      let last = world.events.newest();
      world.watch("events", () => {
        for (; last < world.events.newest(); last += 1) {
          const event = world.events.at(last + 1);
          if (event !== undefined) arrived(event);
        }
      });
    },
    targetings: () => [...world.projects.values()].flatMap(({ targetings }) => [...targetings.values()]),
    shutdownSummary: () => {
      const { recorded, ignored, rejected } = world.events.counts();
      const { dropped } = world.events.read({}, 0);
      const forgotten = dropped === 0 ? "" : `; the oldest ${dropped} were dropped for room`;
      return `events: ${recorded} recorded, ${ignored} ignored, ${rejected} rejected${forgotten}`;
    },
  };
}

function plant(world: World, seed: Seed): void {
  try {
    plantSeed(world, seed);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new SeedError(`the seed does not fit together: ${thrown.message}`, { cause: thrown });
  }
}

/** Whether there was a state to load. */
async function loadFrom(world: World, file: string): Promise<boolean> {
  const saved = await readDataFile(file);
  if (saved === undefined) return false;
  try {
    loadWorld(world, saved);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw noState(file, thrown.message, thrown);
  }
}

/** An app that is being served. */
interface Listening {
  readonly port: number;
  /** Stops listening and cuts every connection. */
  stop(): Promise<void>;
  /** Lets the process end while this still listens, or holds connections. */
  unref(): void;
}

/** Serves an app; port 0 takes a free one. Throws when the port cannot be taken. */
async function listen(app: Hono<{ Bindings: HttpBindings }>, host: string, port: number): Promise<Listening> {
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
