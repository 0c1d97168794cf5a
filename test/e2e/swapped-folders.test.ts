import { renameSync, symlinkSync } from "node:fs";
import { mkdir, mkdtemp, readdir, realpath, rename, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openFile } from "../../src/files/open-file.ts";
import { FileError } from "../../src/platform/files.ts";
import { OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startStub } from "../support/stub-server.ts";

// After the server has checked a path, another program may replace a folder of the path by a link before the server
// uses it.

const TARGETING = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

async function folders() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "targeting-swapped-")));
  const [allowed, inner, outside] = [join(root, "allowed"), join(root, "allowed", "inner"), join(root, "outside")];
  await mkdir(inner, { recursive: true });
  await mkdir(outside);
  return { allowed, inner, outside, aside: join(root, "aside") };
}

function rules(allowed: string) {
  return { allowedDirs: [allowed], maxLineBytes: 1_048_576 };
}

async function textOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

test("a folder that became a link is not read through", async () => {
  const { allowed, inner, outside, aside } = await folders();
  await writeFile(join(inner, "options.csv"), "name\nMine\n");
  await writeFile(join(outside, "options.csv"), "name\nSecret\n");
  const { bytes } = await openFile(join("inner", "options.csv"), {}, rules(allowed));
  expect(await textOf(bytes())).toContain("Mine");
  await rename(inner, aside);
  await symlink(outside, inner, "junction");
  const read = textOf(bytes());
  await expect(read).rejects.toThrow(FileError);
  await expect(read).rejects.toThrow("contains a link, which is refused");
});

test("a file that became a link is not followed", async () => {
  const { allowed, inner, outside, aside } = await folders();
  await writeFile(join(inner, "options.csv"), "name\nMine\n");
  await writeFile(join(outside, "options.csv"), "name\nSecret\n");
  const { bytes } = await openFile(join("inner", "options.csv"), {}, rules(allowed));
  await rename(join(inner, "options.csv"), aside);
  await symlink(join(outside, "options.csv"), join(inner, "options.csv"));
  await expect(textOf(bytes())).rejects.toThrow("contains a link, which is refused");
});

test.each([
  ["a file", "options.csv"],
  ["a folder", "."],
])("%s that is gone when it is read is named", async (_, gone) => {
  const { allowed, inner, aside } = await folders();
  await writeFile(join(inner, "options.csv"), "name\nMine\n");
  const { bytes } = await openFile(join("inner", "options.csv"), {}, rules(allowed));
  await rename(join(inner, gone), aside);
  const read = textOf(bytes());
  await expect(read).rejects.toThrow(FileError);
  await expect(read).rejects.toThrow('options.csv" cannot be read (ENOENT)');
});

test.each(["before the file is written", "while it is written"])("%s, a folder that became a link", async (moment) => {
  const { allowed, inner, outside, aside } = await folders();
  const option = { _id: TARGETING, name: "One", type: "atomic", contextCount: 1, createdAt: "", updatedAt: "" };
  const api = await startStub(({ url }) => {
    if (/\/context-targeting\/[^/?]+$/.test(url)) {
      return { status: 200, json: { _id: TARGETING, name: "Spring", optionCount: 1, createdAt: "", updatedAt: "" } };
    }
    const isContents = url.includes("/category/") && !url.includes("?parent");
    if ((moment === "while it is written") === isContents) swap();
    return { status: 200, json: isContents ? { ...option, contexts: ["c"], total: 1 } : { items: [option], total: 1 } };
  });
  let swapped = false;
  const swap = (): void => {
    if (swapped) return;
    swapped = true;
    renameSync(inner, aside);
    symlinkSync(outside, inner, "junction");
  };
  const command = startCommand([], {
    TARGETING_API_URL: api.url,
    TARGETING_API_KEY: "some-management-key",
    TARGETING_MCP_ALLOWED_DIRS: allowed,
  });
  for (const message of OPENING) command.send(message);
  command.send(toolCall(1, "list_options", { targetingId: TARGETING, saveTo: join("inner", "saved.csv") }));
  const answer = await command.answer(1);
  expect(swapped).toBe(true);
  expect(answer).toMatchObject({ result: { isError: true } });
  expect({ outside: await readdir(outside), aside: await readdir(aside) }).toEqual({ outside: [], aside: [] });
});
