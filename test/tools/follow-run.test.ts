import { expect, test } from "vitest";
import { timeLeft } from "../../src/tools/context.ts";
import { atMostOneWait } from "../../src/tools/writing/follow-run.ts";
import { readingApi, toolContext } from "../support/tool-context.ts";

test.each([
  ["just arrived", 0, 1000],
  ["planned and asked for a while", 400, 600],
  ["asked for longer than a call may take", 5000, 0],
])("a call that %s waits only for what is left of its time", async (_case, takenMs, leftMs) => {
  const { context, pass } = toolContext(readingApi([]).api);
  pass(takenMs);
  expect(timeLeft(context)).toBe(leftMs);
  const before = context.clock.now();
  await atMostOneWait(new Promise(() => {}), context);
  expect(context.clock.now() - before).toBe(leftMs);
});
