// Bundles the command into dist/: one entry, and one chunk per part that only some commands need.
import { chmod, rm } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const COMMON = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20.18",
  logLevel: "warning",
  // Some bundled CommonJS packages call require for Node's own modules.
  banner: {
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
};

/** The JSON Schemas of all tools by name, as the code makes them. */
async function toolSchemas() {
  const outfile = "dist/tool-schemas.mjs";
  await build({ ...COMMON, entryPoints: ["scripts/tool-schemas.ts"], outfile });
  const { TOOL_SCHEMAS } = await import(pathToFileURL(outfile).href);
  await rm(outfile);
  return TOOL_SCHEMAS;
}

/** Puts the schemas into the module that waits for them. */
function madeSchemas(schemas) {
  const text = JSON.stringify(JSON.stringify(schemas));
  return {
    name: "made-schemas",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/]server[\\/]made-schemas\.ts$/ }, () => ({
        contents: `export const MADE_SCHEMAS = new Map(JSON.parse(${text}));`,
        loader: "js",
      }));
    },
  };
}

await rm("dist", { recursive: true, force: true });
await build({
  ...COMMON,
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  splitting: true,
  minify: true,
  legalComments: "linked",
  alias: { "@modelcontextprotocol/server/_shims": fileURLToPath(new URL("sdk-shims.mjs", import.meta.url)) },
  plugins: [madeSchemas(await toolSchemas())],
});
await chmod("dist/main.js", 0o755);
