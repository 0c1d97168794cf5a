import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import packageJson from "../../package.json" with { type: "json" };
import { fileAt } from "./generated.ts";

/** Returns the package.json to publish, without the fields that only this repository needs. */
export function publishedPackageJson(): Readonly<Record<string, unknown>> {
  const { scripts: _scripts, devDependencies: _devDependencies, ...published } = packageJson;
  return published;
}

const packed = z
  .array(z.object({ filename: z.string(), size: z.number(), files: z.array(z.object({ path: z.string() })) }))
  .length(1);

/** An archive for a package registry. */
export type Archive = z.infer<typeof packed>[number];

/**
 * Creates the archive to publish in a folder. Needs a built dist/. The archive is packed from a copy, so the
 * package.json of the repository does not change. Throws if npm fails.
 */
export async function packPublished(destination: string): Promise<Archive> {
  const copy = await mkdtemp(join(tmpdir(), "targeting-mcp-pack-"));
  try {
    for (const path of ["dist", "docs", "skills", "README.md", "LICENSE"]) {
      await cp(fileAt(path), join(copy, path), { recursive: true });
    }
    await writeFile(join(copy, "package.json"), `${JSON.stringify(publishedPackageJson(), null, 2)}\n`);
    const { files } = await packFolder(copy, "--dry-run");
    const readme = await readFile(fileAt("README.md"), "utf8");
    await writeFile(join(copy, "README.md"), publishedReadme(readme, new Set(files.map(({ path }) => path))));
    return await packFolder(copy, `--pack-destination=${destination}`);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Packs a folder with npm. Throws if npm fails. */
async function packFolder(folder: string, option: string): Promise<Archive> {
  const { code, output } = await npm(["pack", "--json", option], folder);
  const [archive] = code === 0 ? packed.parse(JSON.parse(output)) : [];
  if (archive === undefined) throw new Error(`npm pack ended with ${String(code)}:\n${output}`);
  return archive;
}

/**
 * Returns the README with only those links that lead to the web or to files of the archive. Other links are replaced by
 * their text, and other pictures are removed.
 */
function publishedReadme(readme: string, files: ReadonlySet<string>): string {
  return readme.replaceAll(
    /(!?)\[([^\]]+)\]\(([^)#\s]+)[^)]*\)/g,
    (link: string, picture: string, text: string, path: string) => {
      if (path.startsWith("https://") || files.has(path)) return link;
      return picture === "" ? `${text} (in the repository)` : "";
    },
  );
}

/** Runs npm. Returns its exit code and its standard output. */
export async function npm(
  args: readonly string[],
  cwd: string,
): Promise<{ readonly code: unknown; readonly output: string }> {
  // `npm run` sets this variable to the path of npm, so no shell is needed to find npm. On Windows, npm is a script.
  const program = process.env.npm_execpath ?? "";
  // Under npx and other package managers, the variable contains their path.
  const child = !program.endsWith("npm-cli.js")
    ? spawn("npm", [...args], { cwd, stdio: ["ignore", "pipe", "inherit"], shell: process.platform === "win32" })
    : spawn(process.execPath, [program, ...args], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  return { code, output };
}
