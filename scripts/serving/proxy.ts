import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, request, type Server } from "node:http";
import { parse } from "yaml";
import * as z from "zod";
import { fileAt } from "../packaging/generated.ts";

const compose = z.looseObject({ configs: z.looseObject({ proxy: z.object({ content: z.string() }) }) });

/** Creates a function that says which paths the proxy of compose.yaml forwards to the replicas. */
export function passesOn(): (path: string) => boolean {
  const { content } = compose.parse(parse(readFileSync(fileAt("compose.yaml"), "utf8"), { merge: true })).configs.proxy;
  const locations = [...content.matchAll(/location (= )?(\S+) \{ proxy_pass http:\/\/replicas; \}/g)];
  return (path) =>
    locations.some(([, exact, place = ""]) => (exact === undefined ? path.startsWith(place) : path === place));
}

/** Headers that apply to only one connection (RFC 9110, 7.6.1). They are not forwarded. */
const OF_ONE_CONNECTION = new Set(["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"]);

/**
 * Returns the headers that a proxy forwards. Without `keep-alive`: a replica keeps idle connections open for longer
 * than the proxy does.
 */
function passedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_ONE_CONNECTION.has(name)));
}

/**
 * Creates a proxy that forwards requests to the replicas in rotation, and to the next one if a replica refuses the
 * connection. It answers 404 for paths that it does not forward.
 */
export function proxyTo(replicas: readonly string[], isPassedOn: (path: string) => boolean): Server {
  let turn = 0;
  return createServer((incoming, outgoing) => {
    const { pathname } = new URL(incoming.url ?? "/", replicas[0]);
    if (!isPassedOn(pathname)) return void outgoing.writeHead(404).end();
    const attempt = (left: number): void => {
      turn += 1;
      const target = new URL(incoming.url ?? "/", replicas[turn % replicas.length]);
      // Without an agent, each request gets a new connection. A connection that was kept open could lead to a replica
      // that has died.
      const options = { method: incoming.method, headers: passedHeaders(incoming.headers), agent: false };
      const passed = request(target, options, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, passedHeaders(answer.headers));
        answer.pipe(outgoing);
        answer.on("error", () => outgoing.destroy());
      });
      passed.on("error", (error) => {
        // A request is forwarded to another replica only if nothing of it can have arrived.
        const isRefused = "code" in error && error.code === "ECONNREFUSED";
        if (isRefused && left > 1 && !outgoing.headersSent) attempt(left - 1);
        else if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(502).end();
      });
      passed.once("socket", (socket) => {
        const send = (): void => void incoming.pipe(passed);
        if (socket.connecting) socket.once("connect", send);
        else send();
      });
    };
    attempt(replicas.length);
  });
}
