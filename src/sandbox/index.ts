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

export interface SandboxOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 0, which means any free port. */
  readonly port?: number;
  /** Host names under which the APIs answer, in addition to names of this machine and IP addresses. */
  readonly allowedHosts?: readonly string[];
  /** Accepted in addition to the built-in keys. A dump of the state never contains them. */
  readonly keys?: { readonly managementKeys?: readonly ManagementKey[]; readonly appKeys?: readonly string[] };
  readonly dataFile?: string;
  /** Ignored if the data file already contains a state. */
  readonly seed?: Seed | undefined;
  /** The base address of a real event endpoint that receives a copy of every event. */
  readonly forward?: string;
  /** Creates the handler of the web page when a browser first opens it. */
  readonly page?: (world: World, url: string) => Promise<(request: Request) => Promise<Response>>;
  readonly failed?: (request: FailedRequest) => void;
  /** How long a write waits for another write of its project until it gets a 409, in milliseconds. Default: 200. */
  readonly lockWaitMs?: number;
  /** Returns milliseconds since 1970. Default: the system time. */
  readonly now?: () => number;
  /** Returns a number from 0 up to but not including 1. Default: Math.random. */
  readonly random?: () => number;
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

const KEEP_ALIVE_MS = 65_000;

/**
 * Starts a sandbox of both APIs at one address. Throws a DataFileError, a RangeError if `forward` is not an address, a
 * SeedError if the seed is inconsistent, and the error of the system if the port cannot be opened.
 */
export async function startSandbox(options: SandboxOptions = {}) {
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
    /** Without a trailing slash. */
    url: originOf(host, listening.port),
    port: listening.port,
    /** Closes all connections and writes the data file. Throws if the file cannot be written. */
    close: (): Promise<void> => {
      closing ??= listening.stop().then(() => data?.flush());
      return closing;
    },
    /** Lets the process end although the server is listening. */
    unref: listening.unref,
    /** Oldest first. */
    events: (): readonly ArrivedEvent[] => world.events.read({}, Number.POSITIVE_INFINITY).events,
    /** Calls `arrived` with each later event. */
    onEvent(arrived: (event: ArrivedEvent) => void): void {
      let last = world.events.newest();
      world.watch("events", () => {
        for (; last < world.events.newest(); last += 1) {
          const event = world.events.at(last + 1);
          if (event !== undefined) arrived(event);
        }
      });
    },
    targetings: (): readonly { readonly _id: string; readonly name: string }[] =>
      [...world.projects.values()].flatMap(({ targetings }) => [...targetings.values()]),
    shutdownSummary: (): string => {
      const { recorded, ignored, rejected } = world.events.counts();
      const { dropped } = world.events.read({}, 0);
      const forgotten = dropped === 0 ? "" : `; the oldest ${dropped} were dropped for space`;
      return `events: ${recorded} recorded, ${ignored} ignored, ${rejected} rejected${forgotten}`;
    },
  };
}

function plant(world: World, seed: Seed): void {
  try {
    plantSeed(world, seed);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw new SeedError(`the seed is inconsistent: ${thrown.message}`, { cause: thrown });
  }
}

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

/** Throws the error of the system if the port cannot be opened. */
async function listen(app: Hono<{ Bindings: HttpBindings }>, host: string, port: number) {
  // Longer than any pause of a busy machine: a client would lose a request that it sends while the connection is closed.
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions: { keepAliveTimeout: KEEP_ALIVE_MS } });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return {
    port: await openPort(server, host, port),
    stop: () =>
      new Promise<void>((resolve, reject) => {
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
