import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { sealKeyIn } from "../../../src/runs/files/backend.ts";
import { RunStoreError } from "../../../src/runs/store.ts";

const newFolder = (): string => mkdtempSync(join(tmpdir(), "seal-key-"));

test("a key is made once, whoever asks first, and stays", async () => {
  const folder = join(newFolder(), "new", "state");
  const keys = await Promise.all([sealKeyIn(folder), sealKeyIn(folder), sealKeyIn(folder)]);
  expect(new Set(keys.map((key) => Buffer.from(key).toString("hex"))).size).toBe(1);
  expect(await sealKeyIn(folder)).toEqual(keys[0]);
  expect(await readdir(folder)).toEqual(["seal.key"]);
  expect((await stat(join(folder, "seal.key"))).mode & 0o777).toBe(0o600);
});

describe("what a power failure left of a key", () => {
  const left = {
    "an empty file": "",
    zeros: "\0".repeat(44),
    "a part of it": "c2hvcnQ=",
    "something else": "no key",
  };
  test.each(Object.entries(left))("%s: the key is made again, the same one for all", async (_, content) => {
    const folder = newFolder();
    writeFileSync(join(folder, "seal.key"), content);
    const keys = await Promise.all([sealKeyIn(folder), sealKeyIn(folder)]);
    expect(keys[0]).toHaveLength(32);
    expect(keys[1]).toEqual(keys[0]);
    expect(Buffer.from(await readFile(join(folder, "seal.key"), "utf8"), "base64")).toEqual(keys[0]);
  });
});

describe("a key that cannot be used names its path and what to do", () => {
  const left: Readonly<Record<string, readonly [why: string, make: (file: string) => void]>> = {
    "a folder": ["this is a folder", (file) => mkdirSync(file)],
    "a link to nothing": ["this is a link to a file that does not exist", (file) => symlinkSync("nothing", file)],
    "a file that nobody may read": [
      "this server may not read or write it",
      (file) => writeFileSync(file, "", { mode: 0 }),
    ],
  };
  test.each(Object.entries(left))("%s", async (name, [why, make]) => {
    // Root can read every file, so this case cannot be tested.
    if (process.getuid?.() === 0 && name.includes("nobody")) return;
    const file = join(newFolder(), "seal.key");
    make(file);
    const thrown: unknown = await sealKeyIn(dirname(file)).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(RunStoreError);
    expect(thrown).toMatchObject({
      message: `the key that signs confirmations cannot be stored in ${file}: ${why}`,
      remedy: expect.stringContaining("or remove it. A new key is then created"),
    });
  });
});
