import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { LineCap, type LongLine, requestIdOf } from "../../src/server/line-cap.ts";

async function through(chunks: readonly string[], mostBytes: number) {
  const long: LongLine[] = [];
  const cap = new LineCap({ mostBytes, onLongLine: (line) => void long.push(line), beforeEnd: async () => undefined });
  const passed = await text(Readable.from(chunks.map((one) => Buffer.from(one))).pipe(cap));
  return { passed, long };
}

test("lines pass whole, whatever the chunks", async () => {
  expect((await through(["one\ntw", "o\nth", "ree"], 100)).passed).toBe("one\ntwo\nthree");
});

test("a line over the limit is left out, and the next one passes", async () => {
  const { passed, long } = await through(["short\n", "long long", " long\nnext\n"], 8);
  expect(passed).toBe("short\nnext\n");
  expect(long).toEqual([{ bytes: 15, head: "long long long\n", tail: "long long long\n" }]);
});

test("of a very long line only the ends are kept", async () => {
  const { long } = await through([`${"a".repeat(3000)}`, "b".repeat(3000), "\n"], 10);
  expect(long[0]?.bytes).toBe(6001);
  expect(long[0]?.head).toBe("a".repeat(512));
  expect(long[0]?.tail).toBe(`${"b".repeat(511)}\n`);
});

const line = (head: string, tail = "") => ({ bytes: 1, head, tail });

test.each([
  ['{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{', 7],
  ['{ "method" : "tools/call" , "id" : "a-b" , "params":{', "a-b"],
  ['{"method":"tools/call","params":{"id":9,', undefined],
])("the ID at the beginning: %s", (head, id) => {
  expect(requestIdOf(line(head))).toBe(id);
});

test.each([
  ['"x"]}},"jsonrpc":"2.0","id":12}\n', 12],
  ['"x"]},"id":"q","jsonrpc":"2.0"}', "q"],
  ['"x"],"id":5}},"jsonrpc":"2.0"}', undefined],
])("the ID at the end: %s", (tail, id) => {
  expect(requestIdOf(line('{"method":"tools/call","params":{', tail))).toBe(id);
});
