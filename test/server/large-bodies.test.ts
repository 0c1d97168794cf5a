import { expect, test } from "vitest";
import { largeBodies } from "../../src/server/http/large-bodies.ts";

const LONG = 3_600_000;

/** Work that ends when `end` is called. */
function work() {
  let end = (): void => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end: () => end() };
}

/** Lets everything that is ready go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("one body is planned at a time, in the order of arrival", async () => {
  const bodies = largeBodies(100);
  const entered: string[] = [];
  const [first, second, third] = [work(), work(), work()];
  const held = await bodies.enter(40, LONG, first.done);
  const others = [
    bodies.enter(40, LONG, second.done).then((room) => {
      entered.push("second");
      return room;
    }),
    bodies.enter(10, LONG, third.done).then((room) => {
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
  const held = await bodies.enter(80, LONG, call.done);
  held?.until(run.done);
  held?.planned();
  let isIn = false;
  const entering = bodies.enter(40, LONG, next.done).then(() => {
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
  expect(await largeBodies(100).enter(500, LONG, done)).toBeDefined();
  end();
});

test("work that fails gives its room back", async () => {
  const bodies = largeBodies(100);
  await bodies.enter(100, LONG, Promise.reject(new Error("the call failed")));
  const { done, end } = work();
  expect(await bodies.enter(100, LONG, done)).toBeDefined();
  end();
});

test("a body for which no room comes free is refused, and the next one is not held up by it", async () => {
  const bodies = largeBodies(100);
  const [first, last] = [work(), work()];
  await bodies.enter(100, LONG, first.done);
  expect(await bodies.enter(100, 0, work().done)).toBeUndefined();
  first.end();
  expect(await bodies.enter(100, LONG, last.done)).toBeDefined();
  last.end();
});
