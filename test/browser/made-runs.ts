import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { eventStream } from "../../src/web/event-stream.ts";
import { forAgent } from "../../src/web/failure-rows.ts";
import { dataAnswer, orRefused, pageApp, RefusedRequest, takePosted } from "../../src/web/page.ts";
import type { ChangeList, LoginWays, Message, ProblemList, RunDetail, RunRow } from "../../src/web/wire.ts";
import { served } from "../support/stub-server.ts";

const SESSION = "the-token-of-the-session";

/** The runs that the fake server shows, and the requests that it received. */
interface MadeRuns {
  readonly details: readonly RunDetail[];
  /** The changes of each run by its ID; absent: the deletions that a waiting run names. */
  readonly changes?: Readonly<Record<string, ChangeList>>;
  readonly problems?: Readonly<Record<string, ProblemList>>;
  /** If set, nobody is logged in, and these are the ways to log in. */
  readonly login?: LoginWays;
}

/** Serves the built page with runs that a test has made up, instead of those of a real server. */
export async function serveMadeRuns({ details, login, changes = {}, problems = {} }: MadeRuns) {
  const rows = new Map(details.map(({ run }) => [run.runId, run]));
  const asked: string[] = [];
  const watchers = new Set<() => void>();
  let version = 0;
  const hello: Message = {
    kind: "hello",
    views: ["overview", "approvals", "runs"],
    environment: { kind: "live", project: "shop", address: "api.example.com" },
    returns: false,
  };
  const source = {
    since: (position: string | undefined) => ({
      messages: position === String(version) ? [] : [{ kind: "runs", runs: [...rows.values()] } as const],
      position: String(version),
    }),
    watch(changed: () => void) {
      watchers.add(changed);
      return () => void watchers.delete(changed);
    },
  };
  const put = (run: RunRow): void => {
    rows.set(run.runId, run);
    version += 1;
    for (const changed of watchers) changed();
  };
  const server = createServer();
  const url = await served(server);
  const app = pageApp({
    address: url,
    shownAt: ["/"],
    about: () => (login === undefined ? { session: SESSION } : { login }),
    openRoutes: (open) =>
      open.post("*", takePosted, async ({ req, var: { posted } }) => {
        asked.push(`${req.path} ${JSON.stringify(posted)}`);
        return dataAnswer(req.path === "/login" ? { session: SESSION } : {});
      }),
    async enter({ headers }) {
      if (headers.get("x-page-token") !== SESSION) throw new RefusedRequest(401, login ?? "no session");
    },
  });
  app.get("/page/stream", ({ req }) => eventStream<Message>(req.raw, source, { first: [hello] }));
  app.get("/page/runs/:id/failures", ({ req }) => dataAnswer(problems[req.param("id")] ?? { rows: [], total: 0 }));
  app.get("/page/runs/:id/changes", ({ req }) => {
    const id = req.param("id");
    return dataAnswer(changes[id] ?? deletionsOf(rows.get(id)));
  });
  app.get("/page/runs/:id", ({ req }) => {
    const detail = details.find(({ run }) => run.runId === req.param("id"));
    const run = orRefused(rows.get(req.param("id")));
    const { failures, ...others } = orRefused(detail);
    return dataAnswer({ ...others, run, failures, forAgent: forAgent(run, failures) });
  });
  server.on(
    "request",
    getRequestListener((request) => app.fetch(request), { overrideGlobalObjects: false }),
  );
  return {
    url,
    asked,
    put,
    /** Closes all connections, as if the server had ended. */
    end(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the deletions of a waiting run that its row names. */
function deletionsOf(run: RunRow | undefined): ChangeList {
  const parts = run?.waiting?.parts ?? [];
  const rows = parts.flatMap(({ objects }) =>
    objects.map(({ name, says }) => ({ kind: "deleted", before: { name: name.slice(0, 300), says } }) as const),
  );
  const deleted = parts.reduce((sum, { count }) => sum + count, 0);
  return { rows, total: deleted, counts: { created: 0, changed: 0, deleted } };
}
