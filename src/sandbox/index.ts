import type { Socket } from "node:net";
import { createAdaptorServer, type HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { openPort, originOf } from "../platform/listen.ts";
import { type FailedRequest, sandboxApp } from "./app.ts";
import { checkForward } from "./event-endpoint.ts";
import type { ArrivedEvent } from "./event-log.ts";
import type { ManagementKey } from "./keys.ts";
import { SeedError } from "./sample.ts";
import { plantSeed, type Seed } from "./seed.ts";
import { dataFile, dumpWorld, loadWorld, noState, readDataFile } from "./state-dump.ts";
import { newWorld, type World } from "./world.ts";

/** The options of a sandbox. All of them have defaults. */
export interface SandboxOptions {
  /** The address to listen on. Default: 127.0.0.1. */
  readonly host?: string;
  /** The port to listen on. The default, 0, uses a free port. */
  readonly port?: number;
  /**
   * Additional host names under which the APIs are served. Names of this machine and IP addresses are always allowed.
   */
  readonly allowedHosts?: readonly string[];
  /** Additional accepted keys. They are never part of a dump. */
  readonly keys?: { readonly managementKeys?: readonly ManagementKey[]; readonly appKeys?: readonly string[] };
  /** The file that stores the state across restarts. */
  readonly dataFile?: string;
  /** The initial content. Ignored if the data file already contains a state. */
  readonly seed?: Seed | undefined;
  /** The base address of a real event endpoint to which events are forwarded. */
  readonly forward?: string;
  /** Creates the handler that serves the page for people, at the first request for it. */
  readonly page?: (world: World, url: string) => Promise<(request: Request) => Promise<Response>>;
  /** Called with each request of the APIs that failed and left no event. */
  readonly failed?: (request: FailedRequest) => void;
  /**
   * How long a write waits for another write of its project before it is answered with 409, in milliseconds. Default:
   * 200.
   */
  readonly lockWaitMs?: number;
  /** Returns the current time, in milliseconds since 1970. */
  readonly now?: () => number;
  /** Returns random numbers in [0, 1), from which IDs are generated. */
  readonly random?: () => number;
}

/** A running sandbox. */
export interface Sandbox {
  /** The base address of both APIs, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Stops listening, closes every connection, and writes the data file. Throws if the file cannot be written. */
  close(): Promise<void>;
  /** Lets the process end even if the sandbox still listens or has connections. */
  unref(): void;
  /** Returns the arrived events that are still remembered, oldest first. */
  events(): readonly ArrivedEvent[];
  /** Calls `arrived` with each event that arrives from now on. */
  onEvent(arrived: (event: ArrivedEvent) => void): void;
  /** Returns the targetings of every project. */
  targetings(): readonly { readonly _id: string; readonly name: string }[];
  /** Summarizes the events so far in one line. */
  shutdownSummary(): string;
}

/**
 * Starts the emulated service: the event API and the management API at one address, and the control plane under
 * `/_sandbox`. Throws a DataFileError if the data file cannot be read or written, a RangeError if `forward` is not an
 * address, a SeedError if the seed is inconsistent, and the error of the operating system if the port cannot be used.
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
  let serving: Promise<(request: Request) => Promise<Response>> | undefined;
  const { page: makePage } = options;
  const page =
    makePage &&
    (async (request: Request) => {
      serving ??= makePage(world, originOf(host, listening.port));
      return (await serving)(request);
    });
  const app = sandboxApp(world, { forward: options.forward, names: { host, allowed }, page, failed: options.failed });
  const listening = await listen(app, host, options.port ?? 0);
  let closing: Promise<void> | undefined;
  return {
    url: originOf(host, listening.port),
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

/** Loads the state of a data file. Returns false if the file has none. */
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
  /** Stops listening and closes every connection. */
  stop(): Promise<void>;
  /** Lets the process end even if this still listens or has connections. */
  unref(): void;
}

/** Serves an app. Port 0 uses a free port. Throws if the port cannot be used. */
async function listen(app: Hono<{ Bindings: HttpBindings }>, host: string, port: number): Promise<Listening> {
  const server = createAdaptorServer({ fetch: app.fetch });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return {
    port: await openPort(server, host, port),
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
