import { mkdtempSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { targetingMemory } from "../../../../src/runs/files/backend.ts";

function setUp() {
  const folder = join(mkdtempSync(join(tmpdir(), "memory-")), "projects", "p");
  const file = join(folder, "targetings.json");
  let time = 0;
  const problems: unknown[] = [];
  const open = (path: string | undefined = file) =>
    targetingMemory({
      file: path,
      now: () => {
        time += 1;
        return time;
      },
      onProblem: (problem) => void problems.push(problem),
    });
  return { folder, file, open, problems };
}

test("another memory of the same file knows what was remembered, the last seen first", async () => {
  const { open, folder } = setUp();
  await open().remember([
    { _id: "1", name: "One" },
    { _id: "2", name: "Two" },
  ]);
  await open().remember([{ _id: "1", name: "First" }]);
  expect((await open().recent()).map(({ _id, name }) => [_id, name])).toEqual([
    ["1", "First"],
    ["2", "Two"],
  ]);
  expect(await readdir(folder)).toEqual(["targetings.json"]);
});

test("what was seen at one time stays in its order", async () => {
  const { open } = setUp();
  const memory = open();
  const names = ["One", "Two", "Three"];
  await memory.remember(names.map((name) => ({ _id: name, name })));
  expect((await memory.recent()).map(({ name }) => name)).toEqual(names);
});

test("nothing is written before something is remembered", async () => {
  const { open, folder } = setUp();
  expect(await open().recent()).toEqual([]);
  await expect(readdir(folder)).rejects.toThrow("ENOENT");
});

test("many at once lose nothing", async () => {
  const { open } = setUp();
  const memory = open();
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => memory.remember([{ _id: `${index}`, name: `N${index}` }])),
  );
  expect(await open().recent()).toHaveLength(20);
});

test("names are found as they are written, and candidates told otherwise", async () => {
  const { open } = setUp();
  const memory = open();
  await memory.remember([
    { _id: "1", name: "Sports" },
    { _id: "2", name: "Sports fans" },
    { _id: "3", name: "Cooking" },
    { _id: "4", name: "Cooking" },
  ]);
  expect(await memory.resolve("Sports")).toMatchObject({ kind: "one", thing: { _id: "1" }, isExact: true });
  expect(await memory.resolve("sports f")).toMatchObject({ kind: "unknown", candidates: [{ _id: "2" }, {}, {}, {}] });
  expect(await memory.resolve("Cooking")).toMatchObject({ kind: "ambiguous", candidates: [{}, {}] });
  await memory.forget(["4"]);
  expect(await memory.resolve("Cooking")).toMatchObject({ kind: "one", thing: { _id: "3" }, isExact: true });
});

test.each(["", "{", "[]", '{"targetings":[{"_id":5}]}'])(
  "a damaged file (%j) counts as empty and heals",
  async (content) => {
    const { open, file, problems } = setUp();
    await open().remember([{ _id: "1", name: "One" }]);
    await writeFile(file, content);
    expect(await open().recent()).toEqual([]);
    expect(problems).toHaveLength(1);
    await open().remember([{ _id: "2", name: "Two" }]);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ targetings: [{ _id: "2" }] });
  },
);

test("a folder that cannot be made costs the memory only its file", async () => {
  const { open, file, problems } = setUp();
  await open().remember([{ _id: "1", name: "One" }]);
  const memory = open(join(file, "below", "a-file.json"));
  await memory.remember([{ _id: "2", name: "Two" }]);
  expect(await memory.resolve("Two")).toMatchObject({ kind: "one", thing: { _id: "2" } });
  expect(problems.length).toBeGreaterThan(0);
});
