// Lists the contents of the bundle from its metafile: the packages with their licenses, and a CycloneDX bill of
// materials.
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";

/** Matches a path up to the folder of its package, which may be inside another package. */
const IN_PACKAGE = /^(.*\bnode_modules\/(?:@[^/]+\/)?[^/]+)\//;

/** Returns the packages that have code in the bundle, by name: `{name, version, license, text}`. */
export async function bundledPackages({ outputs }) {
  const inputs = Object.values(outputs).flatMap((output) => Object.entries(output.inputs));
  const used = inputs.flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : []));
  const folders = new Set(used.flatMap((path) => IN_PACKAGE.exec(path)?.[1] ?? []));
  return Promise.all([...folders].sort().map(packageAt));
}

async function packageAt(folder) {
  const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const files = await readdir(folder);
  const file = files.find((one) => /^licen[cs]e/i.test(one));
  const text = file === undefined ? await licenseInReadme(folder, files) : await readFile(`${folder}/${file}`, "utf8");
  if (text === undefined) throw new Error(`no license text was found in the bundled package ${name} ${version}`);
  return { name, version, license, text: text.trim() };
}

/** Returns the last section of a README if it is the complete text of a license. Some packages have no license file. */
async function licenseInReadme(folder, files) {
  const readme = files.find((one) => /^readme/i.test(one));
  if (readme === undefined) return undefined;
  const [, text] = /^#+ *licen[cs]e\s*$([\s\S]*)/im.exec(await readFile(`${folder}/${readme}`, "utf8")) ?? [];
  return text?.includes("Permission is hereby granted") ? text : undefined;
}

/** Returns the licenses of all packages as one text. Most must be distributed with the code. */
export function licenseTexts(packages) {
  return packages
    .map(({ name, version, license, text }) => `${name} ${version}: ${license}\n\n${text}\n`)
    .join(`\n${"-".repeat(80)}\n\n`);
}

/**
 * Returns the bill of materials in CycloneDX 1.6. The same commit always produces the same text, because it contains no
 * time and no serial number. `commit` is undefined if the source is not in a repository.
 */
export function billOfMaterials({ name, version, license }, packages, commit) {
  const components = packages.map((one) => ({ type: "library", ...identity(one) }));
  const about = {
    type: "application",
    ...identity({ name, version, license }),
    ...(commit !== undefined && { properties: [{ name: "git:commit", value: commit }] }),
  };
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: about },
    components,
    dependencies: [
      { ref: about["bom-ref"], dependsOn: components.map((one) => one["bom-ref"]) },
      ...components.map((one) => ({ ref: one["bom-ref"], dependsOn: [] })),
    ],
  };
}

function identity({ name, version, license }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return { "bom-ref": purl, name, version, purl, licenses: [{ license: { id: license } }] };
}

/** Returns the commit that is built, with `-dirty` if files differ from it; undefined if it is not known. */
export function builtCommit() {
  try {
    const said = execFileSync("git", ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    return said.toString().trim();
  } catch {
    return process.env.SOURCE_COMMIT;
  }
}
