import { mkdir, mkdtemp, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { executionGuard } from "../../src/tools/execution-guard.ts";

test("a run that saves a file is refused only if it may write into a folder that is no longer allowed", async () => {
  const parent = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const [before, now, link] = [join(parent, "before"), join(parent, "now"), join(parent, "link")];
  for (const folder of [before, now]) await mkdir(folder);
  await symlink(before, link);
  const guard = executionGuard({
    environment: "sandbox",
    project: "project",
    readOnly: false,
    toolsets: ["targeting"],
    maxDeletes: 1,
    maxChangePercent: 1,
    allowedDirs: [now],
    waitMs: 1000,
    management: undefined,
    rightsOf: undefined,
    input: () => async function* () {},
  });
  const refusedFor = async (saveTo: string, folders: readonly string[]) => {
    const call = { tool: "list_options", input: { targetingId: "ID", saveTo, folders } };
    const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "" } as const;
    return (await guard({ kind: "saves", header: { runId: "RUN", kind: "saves", call, ...of } }))?.code;
  };
  expect(await refusedFor(join(now, "a.csv"), [before, now])).toBeUndefined();
  expect(await refusedFor(join(now, "10:30", "a:b.csv"), [join(parent, "missing"), now])).toBeUndefined();
  expect(await refusedFor("a.csv", [now])).toBeUndefined();
  expect(await refusedFor(join(before, "a.csv"), [before, now])).toBe("FOLDERS");
  expect(await refusedFor(join(before, "a.csv"), [link, now])).toBe("FOLDERS");
  expect(await refusedFor(join(link, "a.csv"), [link, now])).toBe("FOLDERS");
  expect(await refusedFor("a.csv", [before, now])).toBe("FOLDERS");
  expect(await refusedFor(join(parent, "a.csv"), [before])).toBe("FOLDERS");
});
