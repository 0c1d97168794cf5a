import { expect, test } from "vitest";
import { Lines, type LongLine, requestIdOf } from "../../src/mcp/stdio.ts";

function through(chunks: readonly string[], mostBytes: number) {
  const [read, long]: [string[], LongLine[]] = [[], []];
  const lines = new Lines({
    mostBytes,
    onLine: (line) => void read.push(line),
    onLongLine: (line) => void long.push(line),
  });
  for (const chunk of chunks) lines.add(Buffer.from(chunk));
  lines.end();
  return { read, long };
}

test("lines come whole, whatever the chunks", () => {
  expect(through(["one\ntw", "o\n\nth", "ree"], 100).read).toEqual(["one", "two", "", "three"]);
});

test.each([[["\uFEFFone\ntwo\n"]], [["\uFEFF", "one\n\uFEFFtwo\n"]]])(
  "a byte order mark at the beginning: %j",
  (chunks) => {
    expect(through(chunks, 100).read).toEqual(["one", chunks.length === 1 ? "two" : "\uFEFFtwo"]);
  },
);

test("a line over the limit is left out, and the next one passes", () => {
  const { read, long } = through(["short\n", "long long", " long\nnext\n"], 8);
  expect(read).toEqual(["short", "next"]);
  expect(long).toEqual([{ bytes: 14, head: "long long long", tail: "long long long" }]);
});

test("of a very long line only the ends are kept", () => {
  const { long } = through([`${"a".repeat(3000)}`, "b".repeat(3000), "\n"], 10);
  expect(long[0]?.bytes).toBe(6000);
  expect(long[0]?.head).toBe("a".repeat(512));
  expect(long[0]?.tail).toBe("b".repeat(512));
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
