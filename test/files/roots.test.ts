import { mkdir, mkdtemp, realpath, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { usableRoots } from "../../src/files/folders.ts";

test("roots of a client open folders to work in, and none that holds or lies beside keys or runs", async () => {
  const top = await realpath(await mkdtemp(join(tmpdir(), "targeting-roots-")));
  const at = (...parts: string[]) => join(top, ...parts);
  for (const folder of ["home/work/lists", "home/.state/runs", "home/.host/extensions", "home/access", "other"]) {
    await mkdir(at(folder), { recursive: true });
  }
  await writeFile(at("home/file.csv"), "name\n");
  await symlink(at("home/.state"), at("home/link"));
  const guard = {
    home: at("home"),
    folders: [at("home/.state"), at("not there")],
    files: [at("home/.host/config.json"), at("home/access/access.json"), at("home/.host.json")],
  };
  const usable = (...paths: readonly string[]) =>
    usableRoots(
      paths.map((path) => pathToFileURL(path).href),
      guard,
    );
  expect(await usable(at("home/work"), at("home/work/lists"), at("other"), at("home/work"))).toEqual([
    at("home/work"),
    at("home/work/lists"),
    at("other"),
  ]);
  const closed = ["/", top, at("home"), at("home/.state"), at("home/.state/runs"), at("home/link")];
  const beside = [at("home/.host"), at("home/.host/extensions"), at("home/access"), at("home/file.csv"), at("none")];
  expect(await usable(...closed, ...beside)).toEqual([]);
  expect(await usableRoots(["https://example.com/work", "work", "file://host/share"], guard)).toEqual([]);
});
