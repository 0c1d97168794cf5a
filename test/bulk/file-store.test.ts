import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileRunStore } from "../../src/bulk/file-store.ts";
import { WRITE_FORM } from "../../src/bulk/run-form.ts";
import { ulidSource } from "../../src/spec/ulid.ts";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

test("a run that another process is just about to keep is not taken for an abandoned one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const idAt = (time: number): string =>
    ulidSource(
      () => time,
      () => 0.5,
    )();
  const [mine, theirs, abandoned] = [idAt(NOW), idAt(NOW - 5), idAt(NOW - 40 * DAY_MS)];
  // What another process leaves between making the folder and writing into it.
  for (const runId of [theirs, abandoned]) await mkdir(join(folder, runId), { recursive: true });
  await fileRunStore(folder, () => NOW, WRITE_FORM).create({
    runId: mine,
    call: { tool: "delete_targeting", input: { ids: [] } },
    project: "project",
    caller: "local",
    environment: "sandbox",
    createdAt: NOW,
    fingerprint: "x",
  });
  expect((await readdir(folder)).sort()).toEqual([theirs, mine].sort());
});
