import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { startService } from "../kill/service.ts";
import { COMMAND, OPENING, startProgram, toolCall } from "../support/server-process.ts";
import { readTrace } from "./trace.ts";

// Runs the built command and records its system calls. Before a request is sent, the file that announces it must be on
// the disk, with its entry in the folder.

const CALLS =
  "trace=openat,mkdir,rename,link,unlink,fsync,fdatasync,write,writev,pwrite64,pwritev,sendto,ftruncate,copy_file_range";

/** Whether system calls can be recorded here. `strace` is a package of Debian, and some containers do not allow it. */
const canTrace = spawnSync("strace", ["-o", "/dev/null", "true"]).status === 0;

const answered = z.looseObject({
  result: z.looseObject({ structuredContent: z.looseObject({ status: z.string(), runId: z.string() }) }),
});

/**
 * Files that need not survive a power failure. Leases end with the machine, and the others can be read again from runs
 * or the service.
 */
const CACHES = /\.lease\.|write\.asked$|\/calls\/last(?:\/|$)|\/log$|targetings\.json|contents\.ndjson|\.new$/;

async function traced() {
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-trace-"));
  const stateDir = join(folder, "new", "state");
  const file = join(folder, "trace");
  const strace = ["-f", "-y", "-s", "200", "-e", CALLS, "-e", "signal=none", "-o", file];
  const server = startProgram("strace", [...strace, process.execPath, COMMAND], {
    ...{ TARGETING_API_URL: service.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    ...{ EVENT_API_URL: service.url, EVENT_APP_KEY: "sandbox-app-key" },
    ...{ TARGETING_MCP_STATE_DIR: stateDir, TARGETING_MCP_LOG_LEVEL: "silent" },
  });
  for (const message of OPENING) server.send(message);
  let calls = 0;
  return {
    service,
    async call(name: string, args: unknown) {
      calls += 1;
      server.send(toolCall(calls, name, args));
      return answered.parse(await server.answer(calls)).result.structuredContent;
    },
    /** Ends the server, and returns the recorded system calls. */
    async trace() {
      server.child.stdin.end();
      await server.exited;
      return readTrace(readFileSync(file, "utf8"), join(folder, "new"), (path) => !CACHES.test(path));
    },
  };
}

test.skipIf(!canTrace)(
  "what decides whether something was sent is on the disk before it is sent (needs strace)",
  async () => {
    const { service, call, trace } = await traced();
    const targetingId = await service.targeting("Spring");
    const [first = "", second = ""] = await service.options(targetingId, [{ name: "One" }, { name: "Two" }]);
    await call("create_targetings", { items: [{ name: "Summer" }] });
    await call("bulk_add_options", { targetingId, items: [{ name: "Three", contexts: ["c1"] }] });
    await call("update_options", { items: [{ _id: first, name: "Eins" }] });
    const waiting = await call("delete_options", { ids: [second] });
    const { token } = z.looseObject({ token: z.string() }).parse(waiting.confirmation);
    expect(await call("delete_options", { confirmation: token })).toMatchObject({ status: "succeeded" });
    await call("track_event", { uid: "user-1", eventName: "app_open" });
    const { sendings, unsyncedAtEnd } = await trace();
    expect(sendings.map(({ request }) => request.replace(/\?.*/, ""))).toEqual([
      "POST /context-targeting/bulk/create",
      "POST /context-targeting/category/bulk/create",
      "POST /context-targeting/category/bulk/update",
      "POST /context-targeting/category/bulk/delete",
      "POST /event",
    ]);
    // The audit is written during the next call, so it is not checked here.
    const isDeciding = (path: string): boolean => !path.endsWith("audit.ndjson");
    expect(sendings.flatMap(({ unsynced }) => unsynced.filter(isDeciding))).toEqual([]);
    // At the end, the summaries, the audit and the key are on the disk, too.
    expect(unsyncedAtEnd).toEqual([]);
  },
);
