import { expect, test } from "vitest";
import { failureGroups } from "../../../src/runs/report.ts";
import { startService } from "../service.ts";

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

test("a targeting whose options cannot be read is not deleted; resumed, they are kept first", async () => {
  const { changes, runs, run, targeting, faults, api } = await startService();
  const _id = await targeting("News");
  const items = [
    { name: "Ball games", type: "collection", children: [{ name: "Football", contexts: ["goal"] }] },
    { name: "Running", contexts: ["shoe", "sole"] },
  ] as const;
  await run({ tool: "bulk_add_options", input: { targetingId: _id, items } });
  const call = { tool: "delete_targeting", input: { ids: [_id] } } as const;
  const plan = await changes.plan(call, new AbortController().signal);
  const header = await changes.keep(call, "tester");
  await faults([{ kind: "status", status: 500, on: "listOptions", times: 1 }]);
  const stopped = await changes.start(header, plan);
  await stopped?.rest;
  expect(stopped?.status()).toBe("interrupted");
  expect(stopped && failureGroups(stopped.state)[0]?.reason.code).toBe("NOT_PLANNED");
  expect((await api.getTargeting(_id)).name).toBe("News");

  const resumed = await runs.resume(header.runId);
  await resumed?.rest;
  expect(resumed?.status()).toBe("succeeded");
  const lines = (await textOf(runs.part(header.runId, "removed")())).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { name: "Ball games", type: "collection", contexts: [] },
    { name: "Football", parentName: "Ball games", contexts: ["goal"] },
    { name: "Running", type: "atomic", contexts: ["shoe", "sole"] },
  ]);
});

test("Context IDs that are taken away are kept as changes that give them back", async () => {
  const { runs, run, targeting } = await startService();
  const targetingId = await targeting("News");
  const { results } = await run({
    tool: "bulk_add_options",
    input: { targetingId, items: [{ name: "One", contexts: ["a", "b"] }] },
  });
  const _id = results[0]?._id ?? "";
  const changed = await run({ tool: "update_contexts", input: { items: [{ _id, remove: ["b", "c"] }] } });
  expect(changed.status).toBe("succeeded");
  const kept = [];
  for await (const { runId } of runs.list("tester")) kept.push(await textOf(runs.part(runId, "removed")()));
  expect(kept.filter((text) => text !== "")).toEqual([`${JSON.stringify({ _id, add: ["b"] })}\n`]);
});
