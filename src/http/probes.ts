import { setTimeout } from "node:timers/promises";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";

/** What the probes of a process check. */
export interface Probed {
  /** Aborted when the process is about to end. */
  readonly stopping: AbortSignal;
  /** Resolves if the store can be used; absent: it always can. */
  readonly ready?: (() => Promise<void>) | undefined;
  /** The metrics, and who may read them; absent: they are not served. */
  readonly metrics?: ServedFigures | undefined;
}

/** Metrics as they are served. */
export interface ServedFigures {
  readonly contentType: string;
  text(): string;
  /**
   * Returns the response that refuses a request; undefined if it may read the metrics. `from` is the address of the
   * peer.
   */
  refuse(request: Request, from: string | undefined): Promise<Response | undefined>;
}

/** How long a store may take to answer a probe, in milliseconds: less than most platforms wait. */
const PATIENCE_MS = 800;

/**
 * Answers `/healthz` (the process runs), `/readyz` (its store can be used, too) and, if enabled, `/metrics`. The first
 * two reveal nothing confidential.
 */
export function probes({ stopping, ready, metrics }: Probed): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const answer = (status: string, code: 200 | 503): Response => Response.json({ status }, { status: code });
  app.get("/healthz", () => (stopping.aborted ? answer("stopping", 503) : answer("ok", 200)));
  app.get("/readyz", async () => {
    if (stopping.aborted) return answer("stopping", 503);
    return ready === undefined || (await isReady(ready)) ? answer("ok", 200) : answer("the store cannot be used", 503);
  });
  if (metrics === undefined) return app;
  app.get("/metrics", async ({ req, env }) => {
    const refused = await metrics.refuse(req.raw, env.incoming.socket.remoteAddress);
    return refused ?? new Response(metrics.text(), { headers: { "content-type": metrics.contentType } });
  });
  return app;
}

async function isReady(ready: () => Promise<void>): Promise<boolean> {
  const asked = ready().then(
    () => true,
    () => false,
  );
  return Promise.race([asked, setTimeout(PATIENCE_MS, false, { ref: false })]);
}
