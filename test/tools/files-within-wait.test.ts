import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { DeadlineExceeded, fileWithinWait } from "../../src/tools/apis.ts";
import { openedFile } from "../../src/tools/arguments.ts";

/** A call that arrived a minute ago, so its wait has ended before anything can be read. */
const late = {
  ...{ arrivedAt: 0, waitMs: 45_000, maxLineBytes: 1_048_576 },
  clock: { ...systemClock, now: () => 60_000, sleep: () => Promise.resolve() },
};

const SHAPE = { columns: ["name"], required: [["name"]] };

test("the file of a call is read no longer than the call may take", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const file = join(folder, "options.csv");
  await writeFile(file, "name\nRed\n");
  const context = { ...late, allowedDirs: [folder] };
  await expect(openedFile({ file }, {}, SHAPE, context)).rejects.toThrow(DeadlineExceeded);
  const inTime = { ...context, clock: systemClock, arrivedAt: Date.now() };
  expect(await openedFile({ file }, {}, SHAPE, inTime)).toMatchObject({ file: { format: "csv" }, size: 9 });
});

test("a file that never ends to be read is given up, and one that cannot be read says why", async () => {
  await expect(fileWithinWait(late, new Promise(() => undefined))).rejects.toThrow("nothing was sent");
  const failing = Promise.reject(new Error("no such file"));
  await expect(fileWithinWait({ ...late, clock: systemClock, arrivedAt: Date.now() }, failing)).rejects.toThrow(
    "no such file",
  );
});
