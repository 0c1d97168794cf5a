import { readFile } from "node:fs/promises";
import * as z from "zod";
import packageJson from "../../package.json" with { type: "json" };
import { unlessMissing } from "../platform/files.ts";
import type { CommandOption } from "../settings/command-line.ts";
import { SETTING_LIST } from "../settings/registry.ts";

export function settingsHelp(): string {
  return SETTING_LIST.map((setting) => {
    const names = setting.flag === undefined ? setting.variable : `--${setting.flag}, ${setting.variable}`;
    return `  ${names}\n      ${setting.meaning} (default: ${setting.otherwise})`;
  }).join("\n");
}

export interface HelpedCommand {
  readonly usage: string;
  readonly meaning: string;
  readonly options: readonly CommandOption[];
}

export function commandHelp({ usage, meaning, options }: HelpedCommand): string {
  const flags = options.map((option) => `  --${option.flag}\n      ${option.meaning}`);
  const lines = ["Usage:", `  targeting-mcp ${usage}`, `      ${meaning}`, ""];
  if (flags.length > 0) lines.push("Flags of this command:", ...flags, "");
  return [
    ...lines,
    "For the settings, most of which are also flags, and the other commands: targeting-mcp --help",
    "",
  ].join("\n");
}

export function programHelp(commands: readonly HelpedCommand[]): string {
  const lines = commands.map(({ usage, meaning }) => `  targeting-mcp ${usage}\n      ${meaning}`);
  return ["Usage:", ...lines, "", "Settings, as flags or environment variables:", settingsHelp(), ""].join("\n");
}

const component = z.object({
  name: z.string(),
  version: z.string(),
  properties: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
});
/** The parts of the bill of materials (CycloneDX, written by the build) that are read here. */
const billSchema = z.object({ metadata: z.object({ component }), components: z.array(component) });

/** Returns the running version as JSON. Without a bill of materials, it has no commit and no packages. */
export async function versionJson(): Promise<string> {
  const bill = await billOfMaterials();
  const commit = bill?.metadata.component.properties.find(({ name }) => name === "git:commit")?.value;
  const { name, version } = packageJson;
  const about = {
    name,
    version,
    ...(commit !== undefined && { commit }),
    node: process.versions.node,
    ...(bill && { bundled: Object.fromEntries(bill.components.map((one) => [one.name, one.version])) }),
  };
  return `${JSON.stringify(about, null, 2)}\n`;
}

async function billOfMaterials(): Promise<z.infer<typeof billSchema> | undefined> {
  const text = await unlessMissing(readFile(new URL("sbom.cdx.json", import.meta.url), "utf8"));
  return text === undefined ? undefined : billSchema.parse(JSON.parse(text));
}
