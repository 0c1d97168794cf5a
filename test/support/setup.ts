import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const HERE = import.meta.dirname;
/** The programs that tests start in addition to the built command. */
const PROGRAMS = ["asking-server", "client-process", "warm-command"];

/**
 * Builds the programs that tests start, and creates a folder for all temporary files of the tests. Returns a function
 * that removes the folder at the end.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const before = process.env.TMPDIR;
  const folder = await mkdtemp(join(tmpdir(), "tests-"));
  // Databases run as another user, so that user must be able to enter the folder.
  await chmod(folder, 0o755);
  process.env.TMPDIR = folder;
  process.env.TEST_PROGRAMS = join(folder, "programs");
  await build({
    entryPoints: PROGRAMS.map((name) => join(HERE, `${name}.ts`)),
    outdir: process.env.TEST_PROGRAMS,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.18",
    logLevel: "warning",
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
    },
  });
  return async () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
}
