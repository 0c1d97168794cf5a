import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { dataAnswer, pageAsset, pageDocument, refusalAnswer, rejectForeignPost } from "../../src/web/answers.ts";
import { eventStream } from "../../src/web/event-stream.ts";
import type { ChangeList, LoginWays, Message, ProblemList, RunDetail, RunRow } from "../../src/web/wire.ts";
import { served } from "../support/stub-server.ts";

const SESSION = "the-token-of-the-session";

/** What a server of made runs says, and what it was asked to do. */
interface MadeRuns {
  readonly details: readonly RunDetail[];
  /** What each run changes, by its ID; absent: what it would delete. */
  readonly changes?: Readonly<Record<string, ChangeList>>;
  readonly problems?: Readonly<Record<string, ProblemList>>;
  /** In place of a session: how to log in. */
  readonly login?: LoginWays;
}

/** Serves the built page with runs that are written down in a test, in place of those of a server. */
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
      messages: position === String(version) ? [] : [{ kind: "runs", whole: true, runs: [...rows.values()] } as const],
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
  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (request.method === "POST") {
      const refused = rejectForeignPost(request);
      if (refused !== undefined) return refused;
      asked.push(`${pathname} ${await request.text()}`);
      return dataAnswer(pathname === "/login" ? { session: SESSION } : {});
    }
    const asset = await pageAsset(pathname);
    if (asset !== undefined) return asset;
    if (pathname === "/") return pageDocument(login === undefined ? { session: SESSION } : { login });
    if (request.headers.get("x-page-token") !== SESSION) return dataAnswer(login, 401);
    if (pathname === "/page/stream") return eventStream<Message>(request, source, { first: [hello] });
    const [, id = "", list] = /^\/page\/runs\/(\w+)\/(changes|failures)$/.exec(pathname) ?? [];
    if (list === "failures") return dataAnswer(problems[id] ?? { rows: [], total: 0 });
    if (list === "changes") return dataAnswer(changes[id] ?? deletionsOf(rows.get(id)));
    const detail = details.find(({ run }) => pathname === `/page/runs/${run.runId}`);
    const run = detail && rows.get(detail.run.runId);
    return detail === undefined || run === undefined
      ? refusalAnswer(404, "there is no such run")
      : dataAnswer({ ...detail, run });
  };
  const server = createServer(getRequestListener(answer, { overrideGlobalObjects: false }));
  return {
    url: await served(server),
    asked,
    put,
    /** Ends it, as a server that has ended. */
    end(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** What a run that waits would delete, as far as its row names it. */
function deletionsOf(run: RunRow | undefined): ChangeList {
  const parts = run?.waiting?.parts ?? [];
  const rows = parts.flatMap(({ objects }) =>
    objects.map(({ name, says }) => ({ kind: "deleted", before: { name: name.slice(0, 300), says } }) as const),
  );
  const deleted = parts.reduce((sum, { count }) => sum + count, 0);
  return { rows, total: deleted, counts: { created: 0, changed: 0, deleted } };
}
