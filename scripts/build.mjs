// Bundles the command into dist/: one entry, and one chunk per part that only some commands need.
import { chmod, rm } from "node:fs/promises";
import { build } from "esbuild";

await rm("dist", { recursive: true, force: true });
await build({
  entryPoints: ["src/main.ts"],
  outdir: "dist",
  bundle: true,
  splitting: true,
  platform: "node",
  format: "esm",
  target: "node20.18",
  minify: true,
  legalComments: "linked",
  logLevel: "warning",
  // Some bundled CommonJS packages call require for Node's own modules.
  banner: {
    js: 'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);',
  },
});
await chmod("dist/main.js", 0o755);
