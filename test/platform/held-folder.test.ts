import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { holdFolder, openInside, SymlinkError } from "../../src/platform/held-folder.ts";

const ON_POSIX = process.platform !== "win32";

async function folders() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "targeting-held-")));
  const [inner, deep, outside, aside] = ["inner", "inner/deep", "outside", "aside"].map((name) => join(root, name));
  if (inner === undefined || deep === undefined || outside === undefined || aside === undefined) throw new Error();
  for (const folder of [deep, outside]) await mkdir(folder, { recursive: true });
  await writeFile(join(deep, "mine.csv"), "mine");
  await writeFile(join(outside, "mine.csv"), "secret");
  const steps = ["inner", "deep", "mine.csv"];
  return { root, inner, deep, outside, aside, place: { root, steps, path: join(root, ...steps) } };
}

/** With descriptors that hold the folder, which only Linux has, and with repeated checks, as on other platforms. */
describe.each(process.platform === "linux" ? [true, false] : [false])("held by a descriptor: %s", (isFirm) => {
  test("a file is read, and the path of the folder is checked", async () => {
    const { place } = await folders();
    const folder = await holdFolder(place, isFirm);
    const file = await openInside(folder, "mine.csv");
    expect(await file.readFile("utf8")).toBe("mine");
    await folder.check();
    await file.close();
    await folder.close();
  });

  test.each(["inner", "deep"] as const)("a link in the place of %s, before it is held", async (step) => {
    const given = await folders();
    await rename(given[step], given.aside);
    await symlink(given.outside, given[step], "junction");
    await expect(holdFolder(given.place, isFirm)).rejects.toThrow(step === "deep" ? SymlinkError : Error);
  });

  test("a link in the place of a folder that is held is never followed", async () => {
    const { place, deep, outside, aside } = await folders();
    const folder = await holdFolder(place, isFirm);
    await rename(deep, aside);
    await symlink(outside, deep, "junction");
    await expect(folder.check()).rejects.toThrow(SymlinkError);
    const read = openInside(folder, "mine.csv").then((file) => file.readFile("utf8").finally(() => file.close()));
    if (isFirm) expect(await read).toBe("mine");
    else await expect(read).rejects.toThrow(SymlinkError);
    if (isFirm) await writeFile(folder.at("new.csv"), "new");
    expect(await readdir(outside)).toEqual(["mine.csv"]);
    expect(await readFile(join(aside, "mine.csv"), "utf8")).toBe("mine");
    await folder.close();
  });

  test.runIf(ON_POSIX)("neither a link nor a pipe is opened as a file", async () => {
    const { place, deep, outside } = await folders();
    await symlink(join(outside, "mine.csv"), join(deep, "link.csv"));
    expect(spawnSync("mkfifo", [join(deep, "pipe.csv")]).status).toBe(0);
    const folder = await holdFolder(place, isFirm);
    for (const name of ["link.csv", "pipe.csv"]) {
      await expect(openInside(folder, name), name).rejects.toThrow(SymlinkError);
    }
    await folder.close();
  });
});
