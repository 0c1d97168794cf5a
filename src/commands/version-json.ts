import { readFile } from "node:fs/promises";
import * as z from "zod";
import packageJson from "../../package.json" with { type: "json" };

const component = z.object({
  name: z.string(),
  version: z.string(),
  properties: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
});
/** What is read of the bill of materials (CycloneDX) that the build writes. */
const billSchema = z.object({ metadata: z.object({ component }), components: z.array(component) });

/**
 * What runs, as JSON for programs: the version, the commit it was built from, the Node that runs it, and the packages
 * that are bundled with their versions. Commit and packages come from the bill of materials beside the built code, and
 * are left out where there is none.
 */
export async function versionJson(): Promise<string> {
  const bill = await billOfMaterials();
  const commit = bill?.metadata.component.properties.find(({ name }) => name === "git:commit")?.value;
  const { name, version } = packageJson;
  const told = {
    name,
    version,
    ...(commit !== undefined && { commit }),
    node: process.versions.node,
    ...(bill && { bundled: Object.fromEntries(bill.components.map((one) => [one.name, one.version])) }),
  };
  return `${JSON.stringify(told, null, 2)}\n`;
}

async function billOfMaterials(): Promise<z.infer<typeof billSchema> | undefined> {
  try {
    return billSchema.parse(JSON.parse(await readFile(new URL("sbom.cdx.json", import.meta.url), "utf8")));
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw thrown;
  }
}
