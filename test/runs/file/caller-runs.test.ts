import { mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callerRuns, keepPart, partIn, runIndex } from "../../../src/runs/files/run-folder.ts";
import { ulidSource } from "../../../src/spec/ulid.ts";

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

describe("the index", () => {
  const run = (runId: string, fingerprint = "call") => {
    return { runId, caller: "ann", project: "p", environment: "sandbox" as const, fingerprint };
  };

  test("knows which runs may be unfinished, of which call, and for whom", async () => {
    const index = runIndex(await newFolder());
    const [first, second] = [newRunId(), newRunId()];
    await index.add(run(first));
    await index.add(run(second, "other"));
    expect(await index.open()).toEqual([second, first]);
    expect(await index.open({ fingerprint: "call" })).toEqual([first]);
    const scope = { caller: "ann", project: "p", environment: "sandbox" as const };
    expect(await index.open(scope)).toEqual([second, first]);
    for (const other of [{ caller: "bob" }, { project: "q" }, { environment: "live" as const }])
      expect(await index.open({ ...scope, ...other })).toEqual([]);
    await index.markAtRest(second);
    expect(await index.open()).toEqual([first]);
    await index.reopen(run(second, "other"));
    expect(await index.open()).toEqual([second, first]);
    expect(idsOf(await index.of("ann"))).toEqual([second, first]);
  });

  test("knows the run of a call that was made last, until it is gone", async () => {
    const index = runIndex(await newFolder());
    const [first, second] = [newRunId(), newRunId()];
    await index.add(run(first));
    await index.add(run(second));
    expect(await index.last("call")).toBe(second);
    const [folder = ""] = [...(await index.all()).keys()];
    await index.forget(first, folder, "call");
    expect(await index.last("call")).toBe(second);
    await index.forget(second, folder, "call");
    expect(await index.last("call")).toBeUndefined();
    expect(await index.open()).toEqual([]);
    expect(await index.of("ann")).toEqual([]);
  });
});

describe("a part of a run", () => {
  async function contentOf(file: string): Promise<string> {
    const pieces: Uint8Array[] = [];
    for await (const piece of partIn(file)()) pieces.push(piece);
    return Buffer.concat(pieces).toString("utf8");
  }

  test("replaces the one before as a whole, and leaves no file where it is empty", async () => {
    const folder = await newFolder();
    const file = join(folder, "part");
    await keepPart(file, ["first ", Buffer.from("text")]);
    expect(await contentOf(file)).toBe("first text");
    await keepPart(file, ["second"]);
    expect(await contentOf(file)).toBe("second");
    await keepPart(file, []);
    expect([await contentOf(file), await readdir(folder)]).toEqual(["", []]);
  });

  test("stays as it was where its successor fails half-way", async () => {
    const file = join(await newFolder(), "part");
    await keepPart(file, ["whole"]);
    function* failing(): Generator<string> {
      yield "half";
      throw new Error("the disk is full");
    }
    await expect(keepPart(file, failing())).rejects.toThrow("the disk is full");
    expect(await contentOf(file)).toBe("whole");
  });
});
