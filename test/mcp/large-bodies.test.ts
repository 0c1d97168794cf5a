import { afterEach, expect, test, vi } from "vitest";
import { largeBodies } from "../../src/http/bodies.ts";

const LONG = 3_600_000;

/** Work that ends when `end` is called. */
function work() {
  let end = (): void => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end: () => end() };
}

/** Waits until everything that is ready has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.useRealTimers();
});

test("one body is planned at a time, in the order of arrival", async () => {
  const bodies = largeBodies(100);
  const entered: string[] = [];
  const [first, second, third] = [work(), work(), work()];
  const held = await bodies.enter("ann", 40, LONG, first.done);
  const others = [
    bodies.enter("bob", 40, LONG, second.done).then((room) => {
      entered.push("second");
      return room;
    }),
    bodies.enter("bob", 10, LONG, third.done).then((room) => {
      entered.push("third");
      return room;
    }),
  ];
  await settled();
  expect(entered).toEqual([]);
  held?.planned();
  const room = await others[0];
  await settled();
  expect(entered).toEqual(["second"]);
  room?.planned();
  await others[1];
  expect(entered).toEqual(["second", "third"]);
  for (const { end } of [first, second, third]) end();
});

test("a body waits until what is worked on leaves room for it, runs that go on included", async () => {
  const bodies = largeBodies(100);
  const [call, run, next] = [work(), work(), work()];
  const held = await bodies.enter("bob", 80, LONG, call.done);
  held?.until(run.done);
  held?.planned();
  let isIn = false;
  const entering = bodies.enter("ann", 40, LONG, next.done).then(() => {
    isIn = true;
  });
  call.end();
  await settled();
  expect(isIn).toBe(false);
  run.end();
  await entering;
  next.end();
});

test("a body larger than everything enters alone", async () => {
  const { done, end } = work();
  expect(await largeBodies(100).enter("ann", 500, LONG, done)).toBeDefined();
  end();
});

test("work that fails gives its room back", async () => {
  const bodies = largeBodies(100);
  await bodies.enter("ann", 100, LONG, Promise.reject(new Error("the call failed")));
  const { done, end } = work();
  expect(await bodies.enter("ann", 100, LONG, done)).toBeDefined();
  end();
});

test("a body for which no room comes free is refused, and the next one is not held up by it", async () => {
  const bodies = largeBodies(100);
  const [first, last] = [work(), work()];
  await bodies.enter("ann", 100, LONG, first.done);
  expect(await bodies.enter("ann", 100, 0, work().done)).toBeUndefined();
  first.end();
  expect(await bodies.enter("ann", 100, LONG, last.done)).toBeDefined();
  last.end();
});

test("work that is added after all other work has ended takes the room again, and gives it back once", async () => {
  const bodies = largeBodies(100);
  const [client, call, next, last] = [work(), work(), work(), work()];
  const held = await bodies.enter("ann", 80, LONG, client.done);
  client.end();
  await settled();
  held?.until(call.done);
  let isIn = false;
  const entering = bodies.enter("bob", 40, LONG, next.done).then((room) => {
    isIn = true;
    return room;
  });
  await settled();
  expect(isIn).toBe(false);
  call.end();
  (await entering)?.planned();
  let isLastIn = false;
  const entersLast = bodies.enter("eve", 80, LONG, last.done).then(() => {
    isLastIn = true;
  });
  await settled();
  expect(isLastIn).toBe(false);
  next.end();
  await entersLast;
  last.end();
});

test("a body whose client is gone while it waits is not parsed, and does not hold up the next one", async () => {
  const bodies = largeBodies(100);
  const [first, gone, next] = [work(), work(), work()];
  const held = await bodies.enter("ann", 40, LONG, first.done);
  const left = bodies.enter("bob", 60, LONG, gone.done);
  const entering = bodies.enter("eve", 40, LONG, next.done);
  gone.end();
  expect(await left).toBeUndefined();
  held?.planned();
  expect(await entering).toBeDefined();
  for (const { end } of [first, next]) end();
});

test("a call that waits for an API or a person keeps the others waiting for a moment only", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const bodies = largeBodies(100);
  const [waits, next] = [work(), work()];
  await bodies.enter("ann", 40, LONG, waits.done);
  const entering = bodies.enter("bob", 40, LONG, next.done);
  vi.advanceTimersByTime(5000);
  expect(await entering).toBeDefined();
  for (const { end } of [waits, next]) end();
});

test("one caller has at most half of the room, and the others pass it", async () => {
  const bodies = largeBodies(100);
  const [first, second, other] = [work(), work(), work()];
  (await bodies.enter("ann", 40, LONG, first.done))?.planned();
  let isIn = false;
  const entering = bodies.enter("ann", 40, LONG, second.done).then(() => {
    isIn = true;
  });
  (await bodies.enter("bob", 40, LONG, other.done))?.planned();
  expect(isIn).toBe(false);
  first.end();
  await entering;
  for (const { end } of [second, other]) end();
});

test("callers take turns, however many bodies one of them sends", async () => {
  const bodies = largeBodies(1000);
  const entered: string[] = [];
  const all = work();
  const enter = async (caller: string, name: string): Promise<void> => {
    const held = await bodies.enter(caller, 10, LONG, all.done);
    entered.push(name);
    held?.planned();
  };
  const first = work();
  const held = await bodies.enter("ann", 10, LONG, first.done);
  const entering = [enter("ann", "a1"), enter("ann", "a2"), enter("ann", "a3"), enter("bob", "b1")];
  held?.planned();
  await Promise.all(entering);
  expect(entered).toEqual(["a1", "b1", "a2", "a3"]);
  for (const { end } of [first, all]) end();
});
