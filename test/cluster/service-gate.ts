import { mkdtemp, writeFile } from "node:fs/promises";
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { ROUTES } from "../../src/spec/routes.ts";
import { listening } from "../support/stub-server.ts";

/** A write whose last byte has just arrived. */
export interface SeenWrite {
  /** The number of the process that sent it, from its routes; 0: no number. */
  readonly from: number;
  /** The key of the project. */
  readonly key: string;
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Functions that a gate calls while it forwards requests. */
interface Watching {
  /** Called before the write is forwarded, which waits for the returned promise. */
  readonly onWrite?: (write: SeenWrite) => Promise<void> | void;
  /** Called with the bytes of a body that have arrived so far, and their total number. */
  readonly onBytes?: (from: number, arrived: number, total: number) => void;
}

/** A proxy between all processes and the service. It knows each process by a number in its routes. */
export interface ServiceGate {
  readonly url: string;
  /** Returns the setting with which a process uses the gate under its own number. */
  routesOf(process: number): Promise<{ readonly TARGETING_MCP_ROUTES: string }>;
  /** All writes so far, in the order in which their last bytes arrived. */
  readonly writes: readonly SeenWrite[];
  /** Writes that arrived while the service was still executing another one of the same project. */
  readonly overlaps: readonly string[];
  /** From now on, reads only `bytesPerSecond` of what a process sends; undefined: reads at full speed. */
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
  /** Records a write. Returns a function to call when the write is answered. */
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
