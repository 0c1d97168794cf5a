import { mkdtemp, writeFile } from "node:fs/promises";
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROUTES } from "../../src/spec/routes.ts";
import { listening } from "../support/stub-server.ts";

/** A write, at the moment when its last byte has arrived. */
export interface SeenWrite {
  /** The process that sent it, by the number that its routes name; 0 without one. */
  readonly from: number;
  /** The key of the project. */
  readonly key: string;
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** What a gate tells as it happens. */
interface Watching {
  /** Awaited before the write is passed on. */
  readonly onWrite?: (write: SeenWrite) => Promise<void> | void;
  /** Bytes of a body so far, and how many there are. */
  readonly onBytes?: (from: number, arrived: number, total: number) => void;
}

/** A way to the service for all processes, which knows each by its routes. */
export interface ServiceGate {
  readonly url: string;
  /** The setting that lets a process come through the gate under a number of its own. */
  routesOf(process: number): Promise<{ readonly TARGETING_MCP_ROUTES: string }>;
  /** Every write so far, in the order of their last bytes. */
  readonly writes: readonly SeenWrite[];
  /** Writes that arrived while another one of the same project was under way in the service. */
  readonly overlaps: readonly string[];
  /** Reads `bytesPerSecond` of what a process sends from now on; undefined: as fast as it comes. */
  slowTo(process: number, bytesPerSecond: number | undefined): void;
  close(): void;
}

/** Opens a gate in front of a service. */
export async function openServiceGate(service: string, watching: Watching = {}): Promise<ServiceGate> {
  const writes: SeenWrite[] = [];
  const overlaps: string[] = [];
  const underWay = new Map<string, SeenWrite>();
  const agent = new Agent({ keepAlive: true });
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-routes-"));
  const rates = new Map<number, number | undefined>();

  const bodyOf = async (request: IncomingMessage, from: number): Promise<Buffer> => {
    const total = Number(request.headers["content-length"] ?? 0);
    const chunks: Buffer[] = [];
    let arrived = 0;
    for await (const chunk of request) {
      const bytes = Buffer.from(chunk);
      chunks.push(bytes);
      arrived += bytes.length;
      watching.onBytes?.(from, arrived, total);
      const rate = rates.get(from);
      if (rate !== undefined) await delay((1000 * bytes.length) / rate);
    }
    return Buffer.concat(chunks);
  };
  /** Notes a write; gives what is to be called when it is answered. */
  const noted = async (write: SeenWrite): Promise<() => void> => {
    const other = underWay.get(write.key);
    if (other !== undefined) overlaps.push(`${write.from} wrote with ${write.key} beside ${other.from}`);
    underWay.set(write.key, write);
    writes.push(write);
    await watching.onWrite?.(write);
    return () => {
      if (underWay.get(write.key) === write) underWay.delete(write.key);
    };
  };
  const pass = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = "/" } = incoming;
    const [, number = "0", path = url] = /^\/of\/(\d+)(\/.*)$/.exec(url) ?? [];
    const { host: _host, ...headers } = incoming.headers;
    const from = Number(number);
    const isWrite = incoming.method !== "GET";
    const body = isWrite ? await bodyOf(incoming, from) : Buffer.alloc(0);
    const key = String(headers["x-api-key"] ?? headers.authorization ?? "");
    const answered = isWrite ? await noted({ from, key, path, at: Date.now() }) : () => {};
    const options = { agent, method: incoming.method ?? "GET", headers };
    await new Promise<void>((resolve, reject) => {
      const outgoing = httpRequest(new URL(path, service), options, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => void chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", () => {
          answered();
          response.writeHead(answer.statusCode ?? 502, answer.headers).end(Buffer.concat(chunks));
          resolve();
        });
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    }).finally(answered);
  };
  const server = createServer((incoming, response) => {
    pass(incoming, response).catch(() => response.destroy());
  });
  return {
    url: await listening(server),
    async routesOf(process) {
      const file = join(folder, `${process}.json`);
      const routes = Object.entries(ROUTES).map(([name, { method, path }]) => [
        name,
        `${method} /of/${process}${path}`,
      ]);
      await writeFile(file, JSON.stringify(Object.fromEntries(routes)));
      return { TARGETING_MCP_ROUTES: file };
    },
    writes,
    overlaps,
    slowTo(process, bytesPerSecond) {
      rates.set(process, bytesPerSecond);
    },
    close() {
      agent.destroy();
      server.closeAllConnections();
      server.close();
    },
  };
}
