import { appendFile, mkdtemp, readFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileContentsStore } from "../../../../src/runs/files/backend.ts";
import { ulidOf } from "../../../support/tool-context.ts";

async function newStore(mostBytes?: number) {
  const file = join(await mkdtemp(join(tmpdir(), "targeting-mcp-contents-")), "below", "contents.ndjson");
  const problems: unknown[] = [];
  const onProblem = (problem: unknown): void => void problems.push(problem);
  const open = () => fileContentsStore({ file, onProblem, ...(mostBytes !== undefined && { mostBytes }) });
  return { file, open, problems };
}

const option = (number: number, more: object = {}) => ({
  targetingId: ulidOf(0),
  optionId: ulidOf(number),
  updatedAt: "2025-01-01T00:00:00.000Z",
  contextCount: 2,
  ...more,
});
const ids = (number: number) => [`한국어 "${number}"\n`, `b-${number}`];

test("a line that is torn, damaged or has another number of Context IDs counts as not kept", async () => {
  const { open, file, problems } = await newStore();
  await open().put(option(1), ids(1));
  const [line = ""] = (await readFile(file, "utf8")).trim().split("\n");
  const written = (number: number, change: (text: string) => string) =>
    appendFile(file, change(line.replaceAll(ulidOf(1), ulidOf(number))));
  await written(2, (text) => `${text.slice(0, -8)}`);
  await open().put(option(3), ids(3));
  await written(4, (text) => `${text.replace("b-1", "b-\\")}\n`);
  await written(5, (text) => `${text.replace(',"b-1"', "")}\n`);
  const store = open();
  await store.refresh();
  for (const number of [2, 4, 5]) expect(await store.get(option(number)), `${number}`).toBeUndefined();
  for (const number of [1, 3]) expect(await store.get(option(number))).toEqual(ids(number));
  expect(problems).toEqual([]);
});

test("it stays within its size, and what was kept last is found", async () => {
  const most = 20_000;
  const { open, file } = await newStore(most);
  const store = open();
  const many = Array.from({ length: 50 }, (_, at) => `context-${at}`);
  const record = (number: number) => option(number, { contextCount: many.length });
  for (let number = 0; number < 200; number += 1) {
    await store.refresh();
    await store.put(record(number), many);
  }
  const sizes = await Promise.all([file, `${file}.before`].map(async (path) => (await stat(path)).size));
  expect(sizes[0] ?? 0).toBeLessThan(most);
  expect((sizes[0] ?? 0) + (sizes[1] ?? 0)).toBeLessThan(1.2 * most);
  await store.refresh();
  expect(await store.get(record(199))).toEqual(many);
  expect(await store.get(record(198))).toEqual(many);
  expect(await store.get(record(0))).toBeUndefined();
  expect((await stat(file)).mode & 0o077).toBe(0);
});

test("a folder that cannot be written costs only another read", async () => {
  const { open, file, problems } = await newStore();
  await open().put(option(1), ids(1));
  const store = fileContentsStore({ file: join(file, "no-folder"), onProblem: (problem) => problems.push(problem) });
  await store.put(option(1), ids(1));
  await store.refresh();
  expect(await store.get(option(1))).toBeUndefined();
  expect(problems.length).toBeGreaterThan(0);
});
