import { once } from "node:events";
import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Log } from "../observe/log.ts";
import { openPort, originOf } from "../platform/listen.ts";
import { allowedHostnames, rejectForeignHost } from "../web/http-errors.ts";
import { type LinkedPage, linkedPage } from "../web/linked-page.ts";
import { RefusedRequest, refusedAnswer } from "../web/page.ts";
import type { PageScope } from "../web/seen.ts";
import type { ShownEnvironment } from "../web/wire.ts";

export const LOOPBACK = "127.0.0.1";

export interface LocalPage extends LinkedPage {
  close(): Promise<void>;
}

interface Served {
  readonly log: Log;
  readonly environment: ShownEnvironment;
  readonly port?: number;
}

/** Serves the page on a loopback port (0: a free port). Does not keep the process alive. */
export async function localPage(shown: PageScope, { log, environment, port = 0 }: Served): Promise<LocalPage> {
  const server = createServer().unref();
  const address = originOf(LOOPBACK, await openPort(server, LOOPBACK, port));
  const page = linkedPage(shown, { address, environment });
  const hostnames = allowedHostnames([]);
  const serve = async (request: Request): Promise<Response> =>
    rejectForeignHost(request.headers, hostnames) === undefined
      ? page.serve(request)
      : refusedAnswer(new RefusedRequest(403, "This page is available only on the machine of its server."));
  const failed = (error: unknown): Response => {
    log.error("a request of the page failed", { error });
    return refusedAnswer(
      new RefusedRequest(500, "The request failed because of an error in the server. The server's log has the reason."),
    );
  };
  server.on(
    "request",
    getRequestListener((request) => serve(request).catch(failed), { overrideGlobalObjects: false }),
  );
  return {
    ...page,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
