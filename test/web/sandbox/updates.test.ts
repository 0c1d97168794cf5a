import { expect, test } from "vitest";
import { plantSeed, seedSchema } from "../../../src/sandbox/seed.ts";
import { newWorld } from "../../../src/sandbox/world.ts";
import { sandboxUpdates } from "../../../src/web/sandbox-page.ts";
import type { Message } from "../../../src/web/wire.ts";

function world() {
  const options = { lockWaitMs: 0, now: () => Date.UTC(2026, 0, 2), random: () => 0.5 };
  return newWorld(options, () => undefined);
}

const event = (eventName: string) => ({ event: { uid: "u", eventName } });

/** Returns what updates say about events: whether earlier events are removed, and the number and name of new ones. */
function eventsIn(messages: readonly Message[]) {
  return messages.flatMap((message) =>
    message.kind === "events"
      ? [{ whole: message.whole, events: message.events.map(({ seq, name }) => `${seq} ${name}`) }]
      : [],
  );
}

test("a page gets everything, then only what is new, also after it was away", async () => {
  const sandbox = world();
  const plant = (seed: unknown) => plantSeed(sandbox, seedSchema.parse(seed));
  plant({ targetings: [{ name: "Spring" }], events: [event("app_open"), event("app_open")] });
  const updates = sandboxUpdates(sandbox);
  const first = await updates.since(undefined);
  expect(first.messages.map(({ kind }) => kind)).toEqual(["events", "targetings", "faults"]);
  expect(eventsIn(first.messages)).toEqual([{ whole: true, events: ["1 app_open", "2 app_open"] }]);
  expect((await updates.since(first.position)).messages).toEqual([]);
  sandbox.faults.add([{ kind: "reset", on: "any", seed: 1, applied: false }]);
  const fault = await updates.since(first.position);
  expect(fault.messages).toMatchObject([{ kind: "faults", faults: [{ id: 1, kind: "reset", operation: "any" }] }]);
  plant({ events: [event("purchase")] });
  const later = await updates.since(fault.position);
  expect(eventsIn(later.messages)).toEqual([{ whole: false, events: ["3 purchase"] }]);
  const [counted] = later.messages.flatMap((message) => (message.kind === "events" ? [message] : []));
  expect(counted?.counts).toEqual({ recorded: 2, ignored: 1, rejected: 0 });
  expect(counted?.coverage?.find(({ name }) => name === "purchase")).toMatchObject({ count: 1, wrong: 1 });
});

test("after a reset, and from another process, a page begins anew", async () => {
  const sandbox = world();
  const plant = (names: readonly string[]) => plantSeed(sandbox, seedSchema.parse({ events: names.map(event) }));
  plant(["app_open", "click"]);
  const updates = sandboxUpdates(sandbox);
  const { position } = await updates.since(undefined);
  sandbox.events.clear();
  const cleared = await updates.since(position);
  expect(eventsIn(cleared.messages)).toEqual([{ whole: true, events: [] }]);
  plant(["page_view"]);
  expect(eventsIn((await updates.since(cleared.position)).messages)).toEqual([
    { whole: false, events: ["3 page_view"] },
  ]);
  expect(eventsIn((await updates.since(position)).messages)).toEqual([{ whole: true, events: ["3 page_view"] }]);
  const other = sandboxUpdates(sandbox);
  expect((await other.since(position)).messages).toHaveLength(3);
  const [{ coverage } = {}] = (await other.since(undefined)).messages.flatMap((message) =>
    message.kind === "events" ? [message] : [],
  );
  expect(coverage?.reduce((sum, { count }) => sum + count, 0)).toBe(1);
});

test("of a burst a page gets the newest 100, and leads to the others", async () => {
  const sandbox = world();
  const updates = sandboxUpdates(sandbox);
  const { position } = await updates.since(undefined);
  plantSeed(sandbox, seedSchema.parse({ events: Array.from({ length: 250 }, () => event("app_open")) }));
  const [{ events } = { events: [] }] = eventsIn((await updates.since(position)).messages);
  expect([events.length, events[0], events.at(-1)]).toEqual([100, "151 app_open", "250 app_open"]);
});

test("changes of any part wake a watcher, until it stops", () => {
  const sandbox = world();
  let woken = 0;
  const stop = sandboxUpdates(sandbox).watch(() => {
    woken += 1;
  });
  sandbox.events.clear();
  sandbox.faults.clear();
  sandbox.changed();
  expect(woken).toBe(3);
  stop();
  sandbox.changed();
  expect(woken).toBe(3);
});
