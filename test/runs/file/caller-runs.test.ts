import { mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { callerRuns, keepPart, partIn } from "../../../src/runs/files/run-folder.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";

const newRunId = ulidSource(
  () => 1_800_000_000_000,
  () => 0.5,
);

const newFolder = () => mkdtemp(join(tmpdir(), "targeting-mcp-"));
const idsOf = (marks: readonly { readonly runId: string }[]) => marks.map(({ runId }) => runId);

describe("the runs of a caller", () => {
  test("come newest first, each once, with what they hold", async () => {
    const runs = callerRuns(await newFolder());
    const [first, second] = [newRunId(), newRunId()];
    await runs.note("ann", first, "kept");
    await runs.note("ann", second, "kept");
    await runs.note("ann", first, "removed");
    await runs.note("bob", newRunId(), "kept");
    expect(await runs.of("ann")).toEqual([
      { runId: second, holdsRemoved: false },
      { runId: first, holdsRemoved: true },
    ]);
    expect([...(await runs.callers())].sort()).toEqual(["ann", "bob"]);
  });

  test("are none where there is no folder", async () => {
    const runs = callerRuns(join(await newFolder(), "missing"));
    expect([await runs.of("ann"), await runs.callers()]).toEqual([[], []]);
  });

  test("that another process notes show in a list that was read before", async () => {
    const folder = await newFolder();
    const [mine, other] = [callerRuns(folder), callerRuns(folder)];
    const [first, second, third] = [newRunId(), newRunId(), newRunId()];
    await mine.note("ann", first, "kept");
    expect(idsOf(await mine.of("ann"))).toEqual([first]);
    await other.note("ann", third, "kept");
    expect(idsOf(await mine.of("ann"))).toEqual([third, first]);
    await other.note("ann", second, "kept");
    expect(idsOf(await mine.of("ann"))).toEqual([third, second, first]);
    await other.note("ann", second, "gone");
    expect(idsOf(await mine.of("ann"))).toEqual([third, first]);
    expect(idsOf(await callerRuns(folder).of("ann"))).toEqual([third, first]);
  });
});

describe("a part of a run", () => {
  async function contentOf(file: string): Promise<string> {
    const pieces: Uint8Array[] = [];
    for await (const piece of partIn(file)()) pieces.push(piece);
    return Buffer.concat(pieces).toString("utf8");
  }

  test("stays as it was where its successor fails half-way", async () => {
    const file = join(await newFolder(), "part");
    await keepPart(file, ["whole"]);
    function* failing(): Generator<string> {
      yield "half";
      throw new Error("the disk is full");
    }
    await expect(keepPart(file, failing())).rejects.toThrow("the disk is full");
    expect(await contentOf(file)).toBe("whole");
    await keepPart(file, []);
    expect([await contentOf(file), await readdir(dirname(file))]).toEqual(["", []]);
  });
});
