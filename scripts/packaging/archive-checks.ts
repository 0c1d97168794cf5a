import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { fileAt } from "./generated.ts";

/** Licenses whose only condition is that their text is distributed with the code. */
const LICENSES = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "BlueOak-1.0.0"];

const component = z.object({
  "bom-ref": z.string(),
  name: z.string(),
  version: z.string(),
  purl: z.string().startsWith("pkg:npm/"),
  licenses: z.array(z.object({ license: z.object({ id: z.string() }) })).length(1),
});
const billSchema = z.looseObject({
  bomFormat: z.literal("CycloneDX"),
  specVersion: z.literal("1.6"),
  metadata: z.object({ component: component.extend({ properties: z.array(z.object({ name: z.string() })) }) }),
  components: z.array(component).min(5),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

/** The packages that users install themselves. This package uses them if they exist. */
const peers = z.looseObject({
  peerDependencies: z.record(z.string(), z.string()).optional(),
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean() })).optional(),
});

/** Throws if the package.json of an unpacked archive contains fields that only the repository needs. */
export function checkPackageJson(folder: string): void {
  const found = z.looseObject({}).parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")));
  const needless = ["scripts", "devDependencies", "dependencies", "optionalDependencies"];
  const held = needless.filter((name) => Object.hasOwn(found, name));
  if (held.length > 0) throw new Error(`package.json contains fields that must not be published: ${held.join(", ")}`);
  const { peerDependencies = {}, peerDependenciesMeta = {} } = peers.parse(found);
  const needed = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  if (needed.length > 0) throw new Error(`package.json must not require other packages: ${needed.join(", ")}`);
}

/**
 * Throws if a bundled package has no license text, or a license of another kind. Returns a text with the number of
 * packages.
 */
export function checkBill(folder: string): string {
  const bill = billSchema.parse(JSON.parse(readFileSync(join(folder, "dist/sbom.cdx.json"), "utf8")));
  const texts = readFileSync(join(folder, "dist/LICENSES.txt"), "utf8");
  const headings = new Set(texts.match(/^\S+ \d+\.\d+\.\d+\S*: \S+$/gm));
  const expected = bill.components.map(({ name, version, licenses: [held] }) => {
    const id = held?.license.id ?? "";
    if (!LICENSES.includes(id)) throw new Error(`${name} has the license ${id}. Check it, and add it to LICENSES`);
    return `${name} ${version}: ${id}`;
  });
  const missing = expected.filter((heading) => !headings.has(heading));
  const surplus = [...headings].filter((heading) => !expected.includes(heading));
  if (missing.length + surplus.length > 0)
    throw new Error(`the license texts do not match the bundled packages: ${[...missing, ...surplus].join(", ")}`);
  if (!bill.metadata.component.properties.some(({ name }) => name === "git:commit"))
    throw new Error("the bill of materials names no commit");
  return `${expected.length} packages`;
}

/**
 * Matches paths below folders that belong to a person or to one machine. Paths in examples use names that are not of
 * real people.
 */
const MACHINE_PATHS = /(?<![\w.])(?:\/(?:home|Users|root)\/[\w.-]+|[A-Z]:\\+Users\\+\w+)/g;
const EXAMPLES = /^(?:\/(?:home|Users)\/(?:a|me|you|anna)\b)/;

/** Throws if a file of an unpacked archive contains a path of this machine, or one that looks like a person's. */
export function checkPaths(folder: string): string {
  const own = [fileURLToPath(fileAt(".")), homedir(), process.cwd()].map((path) => path.replace(/[\\/]+$/, ""));
  const names = [...own.filter((path) => path.length > 1), ...(hostname().length > 5 ? [hostname()] : [])];
  const files = filesBelow(folder);
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const named = names.filter((name) => new RegExp(`${escaped(name)}(?![\\w-])`).test(text));
    const others = (text.match(MACHINE_PATHS) ?? []).filter((path) => !EXAMPLES.test(path));
    const found = [...named, ...others];
    if (found.length > 0)
      throw new Error(`${file.slice(folder.length + 1)} contains local paths: ${found.slice(0, 3).join(", ")}`);
  }
  return `${files.length} files`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}
