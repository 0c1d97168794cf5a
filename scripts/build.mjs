// Bundles the command into dist/: one entry, and one chunk for each part that only some commands need.
import { existsSync, rmSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";
import { billOfMaterials, builtCommit, bundledPackages, licenseTexts } from "./bill-of-materials.mjs";
import { mergeChunks } from "./merge-chunks.mjs";
import { buildPage } from "./page-build.mjs";

const COMMON = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.18",
  logLevel: "warning",
  alias: {
    "@modelcontextprotocol/server/_shims": beside("sdk-shims.mjs"),
    // The package's main file is UMD. esbuild cannot resolve its imports.
    "jsonc-parser": "jsonc-parser/lib/esm/main.js",
    // The package's entry for Node is CommonJS, which would have no named exports in a separate chunk.
    yaml: beside("../node_modules/yaml/browser/dist/index.js"),
  },
  // Some bundled CommonJS packages call require for Node's own modules.
  banner: {
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
};

const requireHere = createRequire(import.meta.url);

/** The folder of the new files, before they replace those of the last build. */
const fresh = `dist.${process.pid}`;

/** Returns the tools in the form in which clients get them, generated from the code (see made-tools.ts). */
async function listOfTools() {
  const outfile = `${fresh}/made-tools.mjs`;
  await build({ ...COMMON, entryPoints: ["scripts/made-tools.ts"], outfile });
  const lists = await import(pathToFileURL(outfile).href);
  await rm(outfile);
  return lists;
}

/** Fills two modules with finished lists of tools, so that the command need not create the tools at each start. */
function madeTools({ MADE_TOOLS, MADE_VIEW_TOOLS }) {
  const of = (name, tools) => ({
    contents: `export const ${name} = JSON.parse(${JSON.stringify(JSON.stringify(tools))});`,
    loader: "js",
  });
  return {
    name: "made-tools",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/]mcp[\\/]made-tools\.ts$/ }, () => of("MADE_TOOLS", MADE_TOOLS));
      onLoad({ filter: /[\\/]mcp[\\/]made-view-tools\.ts$/ }, () => of("MADE_VIEW_TOOLS", MADE_VIEW_TOOLS));
    },
  };
}

/** Inserts the texts of the skills into the module that reads their files. */
function madeSkillTexts() {
  return {
    name: "made-skill-texts",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]mcp[\\/]skill-texts\.ts$/ }, async () => {
        const names = (await readdir("skills")).sort();
        const texts = names.map(async (name) => [name, await readFile(`skills/${name}/SKILL.md`, "utf8")]);
        const made = Object.fromEntries(await Promise.all(texts));
        return { contents: `export const SKILL_TEXTS = ${JSON.stringify(made)};`, loader: "js" };
      });
    },
  };
}

function beside(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}

/**
 * Bundles only the parts of undici that are used. esbuild's option `alias` cannot do this, because it would also
 * replace the paths of these parts. Of undici's two HTTP parsers, keeps the one that runs on every processor, and drops
 * the one with SIMD. Each is a tenth of the package.
 */
function partsOfUndici() {
  return {
    name: "undici-parts",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^undici$/ }, () => ({ path: beside("undici-parts.mjs") }));
      onLoad({ filter: /[\\/]llhttp_simd-wasm\.js$/ }, () => ({ contents: "module.exports = new Uint8Array();" }));
      onLoad({ filter: /[\\/]llhttp-wasm\.js$/ }, ({ path }) => ({ contents: compressed(requireHere(path)) }));
      // The code for forms and HTTP/2 is left out: the command sends no forms, and offers no HTTP/2.
      onLoad({ filter: /[\\/]undici[\\/]lib[\\/](?:web[\\/]fetch[\\/]body|dispatcher[\\/]client-h2)\.js$/ }, () => ({
        contents: "module.exports = {};",
      }));
    },
  };
}

/**
 * Returns a module that exports these bytes. They are compressed before they become base64, because an archive
 * compresses base64 worse than bytes.
 */
function compressed(bytes) {
  const text = brotliCompressSync(bytes).toString("base64");
  return `module.exports = require("node:zlib").brotliDecompressSync(Buffer.from("${text}", "base64"));`;
}

/**
 * Removes the tables of all encodings except CP949, because no other decoded encoding needs a table. That of CP949 is
 * generated when it is needed.
 */
function tableOfKoreanAlone() {
  return {
    name: "table-of-korean-alone",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]iconv-lite[\\/]encodings[\\/]tables[\\/]/ }, ({ path }) => {
        if (!/[\\/]cp949\.json$/.test(path)) return { contents: "[]", loader: "json" };
        const made = JSON.stringify(beside("korean-table.mjs"));
        return { contents: `module.exports = require(${made}).koreanTable();`, loader: "js", resolveDir: beside(".") };
      });
      onLoad(
        { filter: /[\\/]iconv-lite[\\/]encodings[\\/](?:sbcs-data|sbcs-data-generated|utf7|utf16|utf32)\.js$/ },
        () => ({
          contents: "module.exports = {};",
        }),
      );
    },
  };
}

/**
 * Keeps only the fields of package.json that the commands read. Most other fields are for the package registry and this
 * repository.
 */
function partOfPackageJson() {
  return {
    name: "part-of-package-json",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]package\.json$/ }, async ({ path }) => {
        if (path !== beside("../package.json")) return undefined;
        const { name, version, engines } = JSON.parse(await readFile(path, "utf8"));
        return { contents: JSON.stringify({ name, version, engines }), loader: "json" };
      });
    },
  };
}

// CI builds once and sets this variable for all later commands, because dist/ is up to date.
if (process.env.SKIP_BUILD !== undefined && existsSync("dist/main.js")) process.exit(0);
await mkdir(fresh);
process.once("exit", () => rmSync(fresh, { recursive: true, force: true }));
const { metafile } = await build({
  ...COMMON,
  entryPoints: ["src/main.ts"],
  outdir: fresh,
  splitting: true,
  minify: true,
  legalComments: "none",
  metafile: true,
  // Not bundled, because traces must use the same copy of this package as the user's own code.
  external: ["@opentelemetry/api"],
  plugins: [
    madeTools(await listOfTools()),
    madeSkillTexts(),
    partsOfUndici(),
    tableOfKoreanAlone(),
    partOfPackageJson(),
  ],
});
await mergeChunks(fresh, "main.js");
const page = await buildPage(fresh);
const bundled = await bundledPackages({ outputs: { ...metafile.outputs, ...page.outputs } });
const bill = billOfMaterials(JSON.parse(await readFile("package.json", "utf8")), bundled, builtCommit());
await writeFile(`${fresh}/LICENSES.txt`, licenseTexts(bundled));
await writeFile(`${fresh}/sbom.cdx.json`, `${JSON.stringify(bill, null, 2)}\n`);
await chmod(`${fresh}/main.js`, 0o755);
await putInPlace();

/**
 * Moves the new files into dist/ one by one, so that a command that starts at the same time always finds all its files.
 * Then removes files of the last build.
 */
async function putInPlace() {
  await mkdir("dist", { recursive: true });
  const files = await readdir(fresh);
  for (const file of files) await rename(`${fresh}/${file}`, `dist/${file}`);
  for (const file of await readdir("dist")) {
    if (!files.includes(file)) await rm(`dist/${file}`, { recursive: true });
  }
}
