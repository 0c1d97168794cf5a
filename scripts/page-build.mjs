// Compiles the page for people into three static files, and holds them to their budget.
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const APP = "src/page/app";
/** The page and all that it loads, each gzip -9, in bytes; and the same as one document, which hosts show as a view. */
const MOST_BYTES = 30 * 1024;
/** What a view needs to speak with its host, minified, in bytes. */
const MOST_BRIDGE_BYTES = 2048;
const COMMON = {
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
};

const FILES = ["page.html", "page.js", "page.css"];

/** Writes page.html, page.js and page.css into a folder, and gives what esbuild says of its inputs. */
export async function buildPage(folder) {
  const { metafile } = await build({
    entryPoints: [
      { in: `${APP}/main.tsx`, out: "page" },
      { in: `${APP}/page.css`, out: "page" },
    ],
    outdir: folder,
    ...COMMON,
    metafile: true,
  });
  await writeFile(`${folder}/page.html`, await readFile(`${APP}/page.html`, "utf8"));
  const files = await Promise.all(FILES.map((file) => readFile(`${folder}/${file}`, "utf8")));
  for (const parts of [files, [files.join("")]]) {
    const bytes = parts.reduce((sum, part) => sum + gzipSync(part, { level: 9 }).length, 0);
    if (bytes > MOST_BYTES) throw new Error(`the page has ${bytes} bytes (gzip -9), more than ${MOST_BYTES}`);
  }
  // Within one document either would end the element that it stands in.
  if (files.slice(1).some((file) => /<\/(?:script|style)/i.test(file))) throw new Error("the page holds an end tag");
  const { outputFiles } = await build({ entryPoints: [`${APP}/host/bridge.ts`], ...COMMON, write: false });
  const bytes = outputFiles.reduce((sum, { contents }) => sum + contents.length, 0);
  if (bytes > MOST_BRIDGE_BYTES) throw new Error(`the bridge has ${bytes} bytes, more than ${MOST_BRIDGE_BYTES}`);
  return metafile;
}
