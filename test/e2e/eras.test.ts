import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { startSession } from "../support/writing.ts";

const answer = z.looseObject({
  runId: z.string().default(""),
  suiteId: z.string().default(""),
  resourceUri: z.string().default(""),
  results: z.array(z.looseObject({ _id: z.string().default("") })).default([]),
});
const YES = { action: "accept", content: { confirm: true } } as const;

// Other tests check what the tools do, with one client. This one calls every tool with the clients of each protocol
// era.
describe.each(Object.entries(CLIENTS))("%s", (_name, connect) => {
  test("lists the tools and calls each of them; a person is asked, and progress and resources arrive", async () => {
    const asked: string[] = [];
    const session = await startSession({
      connect,
      answer: (message) => {
        asked.push(message);
        return YES;
      },
    });
    const { client } = session;
    const called = new Set<string>();
    const heard: number[] = [];
    const call = async (name: string, args: Record<string, unknown>) => {
      called.add(name);
      const result = await client.callTool(name, args, ({ progress }) => heard.push(progress));
      expect(result.isError ?? false, `${name}: ${textOf(result)}`).toBe(false);
      return answer.parse(result.structuredContent);
    };
    const idsOf = ({ results }: z.infer<typeof answer>) => results.map(({ _id }) => _id);

    const [targetingId = "", other = ""] = idsOf(
      await call("create_targetings", { items: [{ name: "Sports fans" }, { name: "Other" }] }),
    );
    await call("rename_targetings", { items: [{ _id: other, name: "Renamed" }] });
    const [one = "", two = ""] = idsOf(
      await call("bulk_add_options", { targetingId, items: [{ name: "One", contexts: ["a"] }, { name: "Two" }] }),
    );
    await call("update_options", { items: [{ _id: one, name: "First" }] });
    await call("update_contexts", { items: [{ _id: one, add: ["b"] }] });
    await call("get_targeting", { targetingId });
    await call("list_options", { targetingId });
    await call("get_option", { optionId: one });
    expect(asked).toEqual([]);
    const deleted = await call("delete_options", { ids: [two] });
    expect(asked).toEqual([expect.stringContaining('"Two"')]);
    await call("undo_run", { runId: deleted.runId });
    const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "Three", contexts: ["c"] }] };
    const planned = await call("plan_targeting", { desired });
    await call("apply_plan", { runId: planned.runId });
    await call("delete_targeting", { ids: [other] });
    await call("get_run", { runId: deleted.runId });
    await call("resume_run", { runId: deleted.runId });
    const unused = await call("plan_targeting", { desired: { ...desired, options: [{ name: "Four", contexts: [] }] } });
    await call("cancel_run", { runId: unused.runId });

    await call("list_event_types", {});
    await call("track_event", { uid: "u", eventName: "app_open" });
    heard.splice(0);
    const events = Array.from({ length: 500 }, (_, index) => ({ uid: `u-${index % 9}`, eventName: "app_open" }));
    await call("track_events", { events });
    expect(heard.length).toBeGreaterThan(1);
    const { suiteId, resourceUri } = await call("generate_event_tests", { eventNames: ["sign_up"] });
    await call("run_event_tests", { suiteId });
    await call("inspect_events", {});
    expect((await client.listResources()).map(({ uri }) => uri)).toContain(resourceUri);
    expect(await client.readResource(resourceUri)).toContain("sign_up");
    expect(client.instructions()?.length).toBeGreaterThan(100);
    expect([...called].sort()).toEqual((await client.listTools()).map(({ name }) => name).sort());
  });
});
