import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { hold } from "../support/hold.ts";
import { COMMAND, OPENING, startNode, startProgram, toolCall } from "../support/server-process.ts";
import { openGate } from "./gate.ts";
import { sendsIn } from "./journals.ts";
import { startService } from "./service.ts";

// Runs the built command with a full disk, and two commands with the same run.

const report = z.looseObject({
  runId: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
});
const answered = z.looseObject({
  result: z.looseObject({ structuredContent: z.looseObject({}), isError: z.boolean().optional() }),
});

type Server = ReturnType<typeof startNode>;

async function call(server: Server, id: string, name: string, args: unknown) {
  server.send(toolCall(id, name, args));
  return answered.parse(await server.answer(id)).result;
}

const names = (count: number) => Array.from({ length: count }, (_, number) => ({ name: `Option ${number + 1}` }));

async function set() {
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-disk-"));
  const unjournaled: number[] = [];
  const gate = await openGate(service.url, {
    onWrite: (writes) => {
      if (sendsIn(join(folder, "runs")) < writes) unjournaled.push(writes);
    },
    kill: async () => {},
  });
  gate.arm();
  const environment = {
    ...{ TARGETING_API_URL: gate.url, TARGETING_API_KEY: "sandbox-key", TARGETING_MCP_MODE: "live" },
    TARGETING_MCP_STATE_DIR: folder,
    TARGETING_MCP_LOG_LEVEL: "silent",
  };
  const start = (server: Server): Server => {
    for (const message of OPENING) server.send(message);
    return server;
  };
  return {
    service,
    gate,
    unjournaled,
    targetingId: await service.targeting("Spring"),
    server: () => start(startNode([COMMAND], environment)),
    /** Starts a server whose files cannot grow beyond this many blocks of 512 bytes. */
    limited: (blocks: number) =>
      start(startProgram("sh", ["-c", `ulimit -f ${blocks}; exec "$0" "$1"`, process.execPath, COMMAND], environment)),
  };
}

test("a disk that is full from the start: nothing is sent, and the answer says what to do", async () => {
  const { service, gate, targetingId, limited } = await set();
  const server = limited(64);
  const refused = await call(server, "1", "bulk_add_options", { targetingId, items: names(5000) });
  expect(refused.isError).toBe(true);
  expect(JSON.stringify(refused.structuredContent)).toContain("TARGETING_MCP_STATE_DIR");
  expect({ writes: gate.writes(), lines: await service.lines() }).toEqual({ writes: 0, lines: ["Spring"] });
  // A call that needs less space still works.
  const small = await call(server, "2", "bulk_add_options", { targetingId, items: names(1) });
  expect(small.structuredContent).toMatchObject({ status: "succeeded" });
});

test("a disk that fills up in the middle: nothing leaves unjournaled, and a resumed run ends complete", async () => {
  const count = 12_000;
  let interrupted = 0;
  // A run writes its plan to its journal, and then each answer. With one of these limits, the disk is full in between.
  for (const blocks of [1600, 2400]) {
    const { service, gate, unjournaled, targetingId, server, limited } = await set();
    const full = limited(blocks);
    const cut = (await call(full, "1", "bulk_add_options", { targetingId, items: names(count) })).structuredContent;
    const { data } = report.safeParse(cut);
    if (data === undefined) {
      expect({ writes: gate.writes(), lines: await service.lines() }).toEqual({ writes: 0, lines: ["Spring"] });
      continue;
    }
    if (data.status !== "succeeded") {
      expect(data.status).toBe("interrupted");
      interrupted += 1;
    }
    full.child.kill("SIGKILL");
    await full.exited;
    const resumed = await call(server(), "1", "resume_run", { runId: data.runId });
    expect(resumed.structuredContent).toMatchObject({
      status: "succeeded",
      counts: { items: count, succeeded: count },
    });
    expect(new Set(await service.lines()).size).toBe(count + 1);
    expect(unjournaled).toEqual([]);
  }
  expect(interrupted).toBeGreaterThan(0);
});

test("two processes that resume one run at once: one drives it, and both get its report", async () => {
  const { service, gate, unjournaled, targetingId, server } = await set();
  const release = await hold(service.url, "write");
  const first = server();
  first.send(toolCall("1", "bulk_add_options", { targetingId, items: names(12_000) }));
  await expect.poll(() => gate.writes()).toBe(1);
  first.child.kill("SIGKILL");
  await first.exited;
  await release();
  const both = [server(), server()];
  const listed = await call(server(), "1", "get_run", {});
  const { runs } = z
    .looseObject({ runs: z.array(z.looseObject({ runId: z.string() })) })
    .parse(listed.structuredContent);
  const runId = runs.map((run) => run.runId).join();
  await Promise.all(both.map((each) => call(each, "1", "resume_run", { runId })));
  const ends = await Promise.all(both.map((each) => call(each, "2", "get_run", { runId, waitMs: 20_000 })));
  for (const { structuredContent } of ends) {
    expect(structuredContent).toMatchObject({ status: "succeeded", counts: { items: 12_000, succeeded: 12_000 } });
  }
  expect(new Set(await service.lines()).size).toBe(12_001);
  expect(unjournaled).toEqual([]);
});
