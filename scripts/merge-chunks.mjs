// Merges chunks that the same commands load at start-up. esbuild puts code that several parts share into chunks: one
// for each set of parts that use it. Node needs more time to load another file than to read a few more kilobytes of
// one.
import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const STATIC_IMPORT = /(?:\bfrom|\bimport)"\.\/([^"]+\.js)"/g;
const DYNAMIC_IMPORT = /\bimport\("\.\/([^"]+\.js)"\)/g;
/**
 * Matches parts that are loaded during a call that changes something. They are treated like commands. Otherwise, their
 * code could be merged with code that only a served page needs.
 */
const LOADED_BY_CALLS = /^decision-page-/;
const NAMED_IMPORT = /\b(import|export)\{([^}]*)\}from"\.\/([^"]+\.js)"/g;

/**
 * Merges the minified chunks that esbuild has written into a folder. `main` is the file that loads the commands. Throws
 * if a reference to a merged chunk remains.
 */
export async function mergeChunks(folder, main) {
  const texts = new Map();
  for (const file of await readdir(folder)) {
    if (file.endsWith(".js")) texts.set(file, await readFile(join(folder, file), "utf8"));
  }
  const commands = [...texts.get(main).matchAll(DYNAMIC_IMPORT)].map(([, file]) => file);
  const byCalls = [...texts.keys()].filter((file) => LOADED_BY_CALLS.test(file));
  const groups = groupsOf(texts, [main, ...commands, ...byCalls]);
  const merged = new Map();
  for (const group of groups) {
    for (const [at, chunk] of group.entries()) merged.set(chunk, { file: nameOf(group), prefix: `c${at}_` });
  }
  for (const group of groups) texts.set(nameOf(group), await together(folder, group, texts));
  for (const chunk of merged.keys()) texts.delete(chunk);
  for (const [file, text] of texts) await writeFile(join(folder, file), redirected(text, merged));
  for (const chunk of merged.keys()) await rm(join(folder, chunk));
  for (const [file, text] of texts) {
    const left = [...merged.keys()].find((chunk) => redirected(text, merged).includes(chunk));
    if (left !== undefined) throw new Error(`${file} refers to ${left}, which was merged into another file`);
  }
}

/**
 * Returns the name of the file that replaces a group of chunks. The name depends on the content, like those of the
 * chunks.
 */
function nameOf(group) {
  return `shared-${createHash("sha256").update(group.join(" ")).digest("hex").slice(0, 8).toUpperCase()}.js`;
}

/**
 * Returns groups of at least two chunks that exactly the same entries load at start-up. The entries themselves are not
 * included.
 */
function groupsOf(texts, entries) {
  const loaders = new Map();
  const visit = (file, entry) => {
    const known = loaders.get(file) ?? new Set();
    if (known.has(entry)) return;
    loaders.set(file, known.add(entry));
    for (const [, next] of texts.get(file).matchAll(STATIC_IMPORT)) visit(next, entry);
  };
  for (const entry of entries) visit(entry, entry);
  const groups = new Map();
  for (const [file, by] of loaders) {
    if (!file.startsWith("chunk-")) continue;
    const key = [...by].sort().join(" ");
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
  return [...groups.values()].filter((group) => group.length > 1);
}

/**
 * Bundles several chunks into one module. The exported names of each chunk get a prefix, so that equal names do not
 * collide.
 */
async function together(folder, group, texts) {
  const contents = group.map((chunk, at) => {
    const names = exportsOf(texts.get(chunk));
    const renamed = names.map((name) => `${name} as c${at}_${name}`);
    return names.length === 0 ? `import "./${chunk}";` : `export { ${renamed.join(", ")} } from "./${chunk}";`;
  });
  const { outputFiles } = await build({
    stdin: { contents: contents.join("\n"), resolveDir: folder, loader: "js" },
    bundle: true,
    platform: "node",
    format: "esm",
    minify: true,
    legalComments: "none",
    // The chunks already contain everything that must be bundled.
    packages: "external",
    write: false,
    logLevel: "warning",
    plugins: [
      {
        name: "others-stay",
        setup({ onResolve }) {
          onResolve({ filter: /^\.\// }, ({ path }) =>
            group.includes(path.slice(2)) ? undefined : { path, external: true },
          );
        },
      },
    ],
  });
  return outputFiles[0].text;
}

/** Returns the names that a chunk exports, from its last statement. */
function exportsOf(text) {
  return [...text.matchAll(/\bexport\{([^}]*)\}(?!from)/g)].flatMap(([, list]) =>
    list.split(",").map((one) => one.split(" as ").at(-1)),
  );
}

/** Returns a module whose imports of merged chunks refer to the merged files. */
function redirected(text, merged) {
  const named = text.replaceAll(NAMED_IMPORT, (whole, keyword, list, chunk) => {
    const place = merged.get(chunk);
    if (place === undefined) return whole;
    const names = list.split(",").map((one) => {
      const [name, local = name] = one.split(" as ");
      return `${place.prefix}${name} as ${local}`;
    });
    return `${keyword}{${names.join(",")}}from"./${place.file}"`;
  });
  return named.replaceAll(/\bimport"\.\/([^"]+\.js)";?/g, (whole, chunk) => {
    const place = merged.get(chunk);
    if (place === undefined) return whole;
    // Even an import of a single name runs the file, so no second import is needed.
    return named.includes(`from"./${place.file}"`) ? "" : `import"./${place.file}";`;
  });
}
