import { mkdtempSync } from "node:fs";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { appendLine, createFile, makeFolder, replaceFile, syncFolder } from "../../src/platform/files.ts";

// test/durability checks in which order data reaches the disk.

const newFolder = (): string => mkdtempSync(join(tmpdir(), "durable-"));

test("a file takes the place of another, and nothing stays beside it", async () => {
  const folder = newFolder();
  await writeFile(join(folder, "file"), "old");
  await replaceFile(join(folder, "file"), ["new", Buffer.from(" bytes")]);
  expect(await readFile(join(folder, "file"), "utf8")).toBe("new bytes");
  expect((await stat(join(folder, "file"))).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(["file"]);
});

test("where the pieces end in an error the file stays as it was", async () => {
  const folder = newFolder();
  await writeFile(join(folder, "file"), "old");
  const pieces = function* () {
    yield "half";
    throw new Error("no more");
  };
  await expect(replaceFile(join(folder, "file"), pieces())).rejects.toThrow("no more");
  expect(await readFile(join(folder, "file"), "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["file"]);
});

test("of several that make a file at once one does, and the others leave its content", async () => {
  const folder = newFolder();
  const made = await Promise.all(["one", "two", "three"].map((text) => createFile(join(folder, "file"), text)));
  expect(made.filter((isMade) => isMade)).toHaveLength(1);
  const text = await readFile(join(folder, "file"), "utf8");
  expect(text).toBe(["one", "two", "three"][made.indexOf(true)]);
  expect(await readdir(folder)).toEqual(["file"]);
});

test("folders are made with those above them, and a folder that is there is left alone", async () => {
  const folder = newFolder();
  await makeFolder(join(folder, "a", "b", "c"));
  await makeFolder(join(folder, "a", "b"));
  expect((await stat(join(folder, "a", "b", "c"))).mode & 0o777).toBe(0o700);
});

test("a line that was cut off stays a line of its own", async () => {
  const file = join(newFolder(), "audit.ndjson");
  await appendLine(file, "one");
  await writeFile(file, '{"cut', { flag: "a" });
  await appendLine(file, "two");
  await appendLine(file, "three");
  expect((await readFile(file, "utf8")).split("\n")).toEqual(["one", '{"cut', "two", "three", ""]);
});

describe("a folder whose names cannot be put on the disk", () => {
  test.skipIf(process.platform !== "linux")("is no error, and is said", async () => {
    expect(await syncFolder("/proc/self")).toBe(false);
    expect(await syncFolder(newFolder())).toBe(true);
  });

  test("that is not there is an error", async () => {
    const folder = newFolder();
    await mkdir(join(folder, "there"));
    await expect(syncFolder(join(folder, "missing"))).rejects.toThrow("ENOENT");
  });
});
