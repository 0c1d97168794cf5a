// Compiles the web page into three static files, and checks their sizes.
import { readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const APP = "src/web/app";
/**
 * The maximum sizes in bytes: of the page with all files that it loads, and of the view for hosts as one document. Each
 * file is compressed with gzip -9.
 */
const MAX_BYTES = { page: 45 * 1024, view: 30 * 1024 };
/** The maximum size of the code with which a view communicates with its host, minified, in bytes. */
const MAX_BRIDGE_BYTES = 2048;
const COMMON = {
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
};
/** Calls of preact's `h` are shorter than calls of its JSX runtime, against which the types are checked. */
const JSX = {
  tsconfigRaw: { compilerOptions: { jsx: "react", jsxFactory: "h", jsxFragmentFactory: "Fragment" } },
  inject: [`${APP}/jsx.ts`],
};

const FILES = { page: ["page.html", "page.js", "page.css"], view: ["page.html", "view.js", "view.css"] };

/** Writes the page, and the view for hosts, into a folder. Returns esbuild's list of their inputs. */
export async function buildPage(folder) {
  const { metafile } = await build({
    entryPoints: [
      { in: `${APP}/main.tsx`, out: "page" },
      { in: `${APP}/page.css`, out: "page" },
      { in: `${APP}/view-main.ts`, out: "view" },
      { in: `${APP}/view.css`, out: "view" },
    ],
    outdir: folder,
    ...COMMON,
    ...JSX,
    metafile: true,
  });
  await writeFile(`${folder}/page.html`, await readFile(`${APP}/page.html`, "utf8"));
  const read = (names) => Promise.all(names.map((name) => readFile(`${folder}/${name}`, "utf8")));
  const [page, view] = await Promise.all([read(FILES.page), read(FILES.view)]);
  checkSize("page", page);
  checkSize("view", [view.join("")]);
  // In a single document, such a tag would end the script or style that contains it.
  if (view.slice(1).some((file) => /<\/(?:script|style)/i.test(file)))
    throw new Error("the view contains </script> or </style>, which would end its own element");
  const { outputFiles } = await build({ entryPoints: [`${APP}/bridge.ts`], ...COMMON, write: false });
  const bytes = outputFiles.reduce((sum, { contents }) => sum + contents.length, 0);
  if (bytes > MAX_BRIDGE_BYTES)
    throw new Error(`the code for hosts has ${bytes} bytes; at most ${MAX_BRIDGE_BYTES} are allowed`);
  return metafile;
}

function checkSize(name, parts) {
  const bytes = parts.reduce((sum, part) => sum + gzipSync(part, { level: 9 }).length, 0);
  const most = MAX_BYTES[name];
  if (bytes > most) throw new Error(`the ${name} has ${bytes} bytes (gzip -9); at most ${most} are allowed`);
}
