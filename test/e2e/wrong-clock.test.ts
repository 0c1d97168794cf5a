import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { COMMAND, OPENING, startNode, toolCall } from "../support/server-process.ts";
import { startSession } from "../support/writing.ts";

// Runs the built command with a clock that is 40 days ahead. It must not remove the data with which a deletion can be
// undone.

const AHEAD = `data:text/javascript,${encodeURIComponent(
  "const now = Date.now; Date.now = () => now() + 40 * 86400000;",
)}`;

const diagnosis = z.looseObject({ checks: z.array(z.looseObject({ about: z.string(), found: z.string() })) });

async function deletedOnce() {
  const session = await startSession({ live: true, env: { TARGETING_MCP_CONFIRM: "off" } });
  const made = await session.write("create_targetings", { items: [{ name: "Spring" }] });
  const targetingId = made.results[0]?._id ?? "";
  await session.write("bulk_add_options", { targetingId, items: [{ name: "Old", contexts: ["c"] }] });
  const { runId = "" } = await session.write("delete_options", { targetingId, names: ["Old"] });
  await session.client.close();
  const folder = join(session.environment.TARGETING_MCP_STATE_DIR ?? "", "runs");
  return { ...session, targetingId, runId, kept: () => readdirSync(folder).filter((name) => name.length === 26) };
}

test("a start with the clock 40 days ahead removes no run, and says so", async () => {
  const { environment, runId, kept } = await deletedOnce();
  const before = kept();
  expect(before).toContain(runId);
  const server = startNode(["--import", AHEAD, COMMAND], environment);
  for (const message of OPENING) server.send(message);
  await server.answer("open");
  server.send(toolCall(1, "create_targetings", { items: [{ name: "Summer" }] }));
  await server.answer(1);
  server.send(toolCall(2, "get_run", { runId }));
  expect(JSON.stringify(await server.answer(2))).toContain('"status":"succeeded"');
  // The log has two reasons: the clock jumped, and, as soon as the service has answered, the two clocks differ.
  await expect.poll(server.stderr).toMatch(/the clock of this machine jumped from .* no stored run is removed before/);
  await expect
    .poll(server.stderr)
    .toMatch(/the clock of this machine says .* no stored run is removed until they agree/);
  server.child.stdin.end();
  await server.exited;
  expect(kept()).toEqual(expect.arrayContaining(before));
});

test("doctor says that no run is removed, and leaves nothing behind", async () => {
  const { environment, kept } = await deletedOnce();
  const before = kept();
  const doctor = startNode(["--import", AHEAD, COMMAND, "doctor", "--json"], environment);
  await doctor.exited;
  const { checks } = diagnosis.parse(JSON.parse(doctor.lines.join("\n")));
  expect(checks.find(({ about }) => about === "clock")?.found).toContain("no stored run is removed");
  expect(kept()).toEqual(before);
});

test("a server whose reading of the clock cannot be stored goes on, and removes nothing", async () => {
  const { environment, runId, kept } = await deletedOnce();
  const before = kept();
  const clock = join(environment.TARGETING_MCP_STATE_DIR ?? "", "runs", "calls", "clock.json");
  rmSync(clock);
  mkdirSync(clock);
  const server = startNode([COMMAND], environment);
  for (const message of OPENING) server.send(message);
  await server.answer("open");
  for (const id of [1, 2, 3]) {
    server.send(toolCall(id, "create_targetings", { items: [{ name: `Summer ${id}` }] }));
    expect(JSON.stringify(await server.answer(id))).toContain('"status":"succeeded"');
  }
  server.send(toolCall(4, "get_run", { runId }));
  expect(JSON.stringify(await server.answer(4))).toContain('"status":"succeeded"');
  expect(server.child.exitCode).toBeNull();
  expect(kept()).toEqual(expect.arrayContaining(before));
  server.child.stdin.end();
  await server.exited;
});
