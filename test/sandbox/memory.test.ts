import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { emptyProject, putOption, putTargeting } from "../../src/sandbox/rules/store.ts";

const OPTIONS = 50_000;
/**
 * The most bytes for an option: a third more than measured (420). An earlier version needed 1,030, because each option
 * had its own set and list of sub-options.
 */
const MAX_BYTES = 560;

test("an option with two Context IDs takes little memory, as the sandbox may share a process with the server", () => {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  const heap = (): number => {
    if (typeof collect === "function") collect();
    return process.memoryUsage().heapUsed;
  };
  const project = emptyProject("project", "Project");
  const at = new Date(0).toISOString();
  putTargeting(project, { _id: "targeting", name: "Big", createdAt: at, updatedAt: at });
  const before = heap();
  for (let option = 0; option < OPTIONS; option += 1) {
    putOption(project, {
      ...{ _id: `01KJMMA2G002KWY6GC8${String(option).padStart(7, "0")}`, targeting: "targeting" },
      ...{ name: `Option ${option}`, type: "atomic", contexts: [`article-${option}`, `article-${option + 1}`] },
      ...{ createdAt: at, updatedAt: at },
    });
  }
  const bytes = (heap() - before) / OPTIONS;
  expect(project.options.size).toBe(OPTIONS);
  expect(bytes).toBeLessThan(MAX_BYTES);
});
