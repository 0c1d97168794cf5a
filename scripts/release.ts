// Writes everything that a release publishes into release/: the archive for the package registry, the bundle, the bill of
// materials, the entry for the registry of MCP servers, and SHA256SUMS. Needs a built dist/: `npm run release`.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import packageJson from "../package.json" with { type: "json" };
import { BUNDLE_NAME, bundleContents } from "./packaging/bundle-contents.ts";
import { fileAt } from "./packaging/generated.ts";
import { packPublished } from "./packaging/published.ts";

const folder = fileURLToPath(fileAt("release"));
await rm(folder, { recursive: true, force: true });
await mkdir(folder);
await packPublished(folder);
await writeFile(join(folder, BUNDLE_NAME), bundleContents());
await copyFile(fileAt("dist/sbom.cdx.json"), join(folder, `${packageJson.name}-${packageJson.version}.cdx.json`));
await copyFile(fileAt("server.json"), join(folder, "server.json"));
const sums = (await readdir(folder)).sort().map(async (file) => {
  const sum = createHash("sha256")
    .update(await readFile(join(folder, file)))
    .digest("hex");
  return `${sum}  ${file}\n`;
});
const text = (await Promise.all(sums)).join("");
await writeFile(join(folder, "SHA256SUMS"), text);
process.stdout.write(text);
