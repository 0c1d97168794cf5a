import { readdirSync, readFileSync } from "node:fs";
import { type Zippable, zipSync } from "fflate";
import packageJson from "../../package.json" with { type: "json" };
import { fileAt } from "./generated.ts";

/** The file name of a bundle. */
export const BUNDLE_NAME = `${packageJson.name}-${packageJson.version}.mcpb`;

/** All files get this time, so that equal contents always give the same bundle. */
const FILE_TIME = new Date("2000-01-01T00:00:00");

/**
 * Returns the bundle as a zip archive: the manifest, the built command, which needs no other package, and its
 * documentation pages.
 */
export function bundleContents(): Uint8Array {
  const { name, version, type, license } = packageJson;
  const built = readdirSync(fileAt("dist")).map((file) => `dist/${file}`);
  const files: Zippable = {
    // Declares that the files in dist/ are ES modules.
    "package.json": Buffer.from(`${JSON.stringify({ name, version, type, license }, null, 2)}\n`),
  };
  // The pictures, which are in subfolders, are not included.
  const pages = readdirSync(fileAt("docs"), { recursive: true, encoding: "utf8" })
    .map((file) => `docs/${file.replaceAll("\\", "/")}`)
    .filter((path) => /\.(?:md|json)$/.test(path));
  const project = ["LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
  for (const path of ["manifest.json", ...project, ...pages, ...built]) files[path] = readFileSync(fileAt(path));
  return zipSync(files, { level: 9, mtime: FILE_TIME });
}
