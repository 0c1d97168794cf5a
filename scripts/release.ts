// Writes all files of a release into release/: the archive for the package registry, the bundle, the bill of materials,
// the entry for the registry of MCP servers, and SHA256SUMS. Needs a built dist/: `npm run release`.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../package.json" with { type: "json" };
import { BUNDLE_NAME, bundleContents } from "./packaging/bundle-contents.ts";
import { fileAt } from "./packaging/generated.ts";
import { packPublished } from "./packaging/published.ts";
import { releasedServerJson, serverJson } from "./packaging/server-json.ts";

const folder = fileURLToPath(fileAt("release"));
await rm(folder, { recursive: true, force: true });
await mkdir(folder);
await packPublished(folder);
const bundle = bundleContents();
await writeFile(join(folder, BUNDLE_NAME), bundle);
await copyFile(fileAt("dist/sbom.cdx.json"), join(folder, `${packageJson.name}-${packageJson.version}.cdx.json`));
// A release by hand has no repository from which the bundle could be downloaded. The entry then names only the package.
const repository = process.env.GITHUB_REPOSITORY;
const entry =
  repository === undefined
    ? serverJson()
    : releasedServerJson({ repository, file: BUNDLE_NAME, sha256: sha256Of(bundle) });
await writeFile(join(folder, "server.json"), `${JSON.stringify(entry, null, 2)}\n`);
const sums = (await readdir(folder)).sort().map(async (file) => {
  return `${sha256Of(await readFile(join(folder, file)))}  ${file}\n`;
});
const text = (await Promise.all(sums)).join("");
await writeFile(join(folder, "SHA256SUMS"), text);
process.stdout.write(text);

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
