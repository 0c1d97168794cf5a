import { mkdir, mkdtemp, readdir, readFile, realpath, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findFile } from "../../src/files/folders.ts";
import { freePlaceFor, saveFile } from "../../src/files/save-file.ts";
import { FileError } from "../../src/platform/files.ts";

async function folders() {
  const root = await realpath(await mkdtemp(join(tmpdir(), "targeting-files-")));
  const [one, two, other] = [join(root, "one"), join(root, "two"), join(root, "other")];
  for (const folder of [join(one, "deep"), two, other]) await mkdir(folder, { recursive: true });
  await writeFile(join(one, "options.csv"), "name\n");
  await writeFile(join(one, "deep", "more.csv"), "name\n");
  await writeFile(join(two, "second.csv"), "name\n");
  await writeFile(join(other, "secret.csv"), "name\n");
  return { one, two, other, allowed: [one, two] };
}

/** Returns the message and remedy of the error that is thrown. */
async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (thrown) {
    if (thrown instanceof FileError) return `${thrown.message} ${thrown.remedy}`;
    throw thrown;
  }
  throw new Error("nothing was refused");
}

async function pathOf(given: string, allowed: readonly string[]): Promise<string> {
  return (await findFile(given, allowed)).path;
}

async function* pieces(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

test("files of allowed folders are found, by absolute and by relative path", async () => {
  const { one, two, allowed } = await folders();
  expect(await pathOf(join(one, "options.csv"), allowed)).toBe(join(one, "options.csv"));
  expect(await pathOf("second.csv", allowed)).toBe(join(two, "second.csv"));
  expect(await pathOf(join("deep", "more.csv"), allowed)).toBe(join(one, "deep", "more.csv"));
});

test("an allowed folder may be named through a link", async () => {
  const { one, other } = await folders();
  const linked = join(other, "link");
  await symlink(one, linked, "junction");
  expect(await pathOf(join(linked, "options.csv"), [linked])).toBe(join(one, "options.csv"));
  expect(await pathOf(join(one, "options.csv"), [linked])).toBe(join(one, "options.csv"));
});

test("whatever leads out of the folders is refused, and the folders are named", async () => {
  const { one, other, allowed } = await folders();
  await symlink(other, join(one, "out"), "junction");
  await symlink(join(other, "secret.csv"), join(one, "linked.csv"));
  for (const path of [
    join(other, "secret.csv"),
    "../other/secret.csv",
    `${one}/../other/secret.csv`,
    "deep/../options.csv",
    join("out", "secret.csv"),
    "linked.csv",
    `${one}x/options.csv`,
    one,
    ".",
    "",
    "options.csv\0",
  ]) {
    expect(await refusal(findFile(path, allowed)), path).toContain(JSON.stringify(one));
  }
  expect(await refusal(findFile("deep", allowed))).toContain("is not a file");
  expect(await refusal(freePlaceFor(join("out", "new.csv"), allowed))).toContain("link");
});

test("a file that is not there: the nearest names are listed", async () => {
  const { allowed } = await folders();
  const said = await refusal(findFile("option.csv", allowed));
  expect(said).toContain('there is no file "option.csv"');
  expect(said).toContain('The nearest files there: "options.csv"');
  expect(said).toContain('"second.csv"');
  expect(said).not.toContain("secret");
});

test("an allowed folder that does not exist is named", async () => {
  const { one, other, allowed } = await folders();
  const gone = join(one, "gone");
  for (const path of ["options.csv", join(gone, "options.csv")]) {
    const refused = await refusal(findFile(path, [gone]));
    expect(refused).toContain(`the allowed folder ${JSON.stringify(gone)} does not exist`);
  }
  expect(await refusal(findFile(join(other, "secret.csv"), [gone]))).toContain("outside the allowed folders");
  expect(await pathOf("second.csv", [gone, ...allowed])).toContain("second.csv");
});

test("without allowed folders the setting is named", async () => {
  expect(await refusal(findFile("options.csv", []))).toContain("TARGETING_MCP_ALLOWED_DIRS");
  expect(await refusal(freePlaceFor("options.csv", []))).toContain("TARGETING_MCP_ALLOWED_DIRS");
});

test("a file is saved as a whole, and never over another", async () => {
  const { one, allowed } = await folders();
  const place = await freePlaceFor("new.csv", allowed);
  const { path, form } = place;
  expect({ path, form }).toEqual({ path: join(one, "new.csv"), form: { format: "csv", delimiter: "," } });
  await saveFile(place, pieces("a", "b"));
  expect(await readFile(path, "utf8")).toBe("ab");
  expect(await refusal(freePlaceFor("new.csv", allowed))).toContain("files are not overwritten");
  expect(await refusal(saveFile(place, pieces("c")))).toContain("files are not overwritten");
  expect(await readFile(path, "utf8")).toBe("ab");
  expect((await readdir(one)).sort()).toEqual(["deep", "new.csv", "options.csv"]);
});

test("what cannot be read to its end leaves no file", async () => {
  const { one, allowed } = await folders();
  const place = await freePlaceFor("new.ndjson", allowed);
  const failing = async function* () {
    yield "a";
    throw new Error("no more");
  };
  await expect(saveFile(place, failing())).rejects.toThrow("no more");
  expect((await readdir(one)).sort()).toEqual(["deep", "options.csv"]);
});

test.each(["ENOTSUP", "EPERM", "ENOSYS", "EISDIR"])(
  "where there are no links (%s) a file is copied, over none",
  async (code) => {
    const { one, allowed } = await folders();
    const noLink = () => Promise.reject(Object.assign(new Error(code), { code, syscall: "link" }));
    const place = await freePlaceFor("new.csv", allowed);
    await saveFile(place, pieces("a", "b"), noLink);
    expect(await readFile(place.path, "utf8")).toBe("ab");
    expect(await refusal(saveFile(place, pieces("c"), noLink))).toContain("files are not overwritten");
    expect(await readFile(place.path, "utf8")).toBe("ab");
    expect((await readdir(one)).filter((name) => name.endsWith(".unfinished"))).toEqual([]);
  },
);

test("sheets and NDJSON are saved, in folders that are there, with a delimiter where there is one", async () => {
  const { allowed } = await folders();
  expect(await refusal(freePlaceFor("new.ods", allowed))).toContain(".xlsx, .csv, .tsv or .ndjson");
  expect(await freePlaceFor("new.xlsx", allowed)).toMatchObject({ form: { format: "xlsx" } });
  expect(await freePlaceFor("new.tsv", allowed)).toMatchObject({ form: { format: "csv", delimiter: "\t" } });
  expect(await freePlaceFor("new.csv", allowed, "tab")).toMatchObject({ form: { format: "csv", delimiter: "\t" } });
  expect(await refusal(freePlaceFor("new.csv", allowed, "|"))).toContain(
    'delimiter is for .csv files: ",", ";" or "tab"',
  );
  expect(await refusal(freePlaceFor("new.xlsx", allowed, ";"))).toContain("cannot be used in");
  expect(await refusal(freePlaceFor(join("none", "new.csv"), allowed))).toContain("does not exist");
});
