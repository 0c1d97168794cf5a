// Compiles the page for people into three static files, and holds them to their budget.
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const APP = "src/page/app";
/** The page and all that it loads, each gzip -9, in bytes. */
const MOST_BYTES = 30 * 1024;

/** Writes page.html, page.js and page.css into a folder, and gives what esbuild says of its inputs. */
export async function buildPage(folder) {
  const { metafile } = await build({
    entryPoints: [
      { in: `${APP}/main.tsx`, out: "page" },
      { in: `${APP}/page.css`, out: "page" },
    ],
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
  });
  await writeFile(`${folder}/page.html`, await readFile(`${APP}/page.html`, "utf8"));
  const sizes = await Promise.all(
    ["page.html", "page.js", "page.css"].map(
      async (file) => gzipSync(await readFile(`${folder}/${file}`), { level: 9 }).length,
    ),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes > MOST_BYTES) throw new Error(`the page has ${bytes} bytes (gzip -9), more than ${MOST_BYTES}`);
  return metafile;
}
