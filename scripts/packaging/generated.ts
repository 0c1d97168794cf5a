import * as z from "zod";
import { desiredStateJsonSchema } from "../../src/plans/file/desired.ts";
import { planJsonSchema } from "../../src/plans/plan-document.ts";
import { commandsPage } from "./commands-page.ts";
import { manifest } from "./manifest.ts";
import { metricsPage } from "./metrics-page.ts";
import { serverJson } from "./server-json.ts";
import { settingsPage } from "./settings-page.ts";
import { pluginJson } from "./skills.ts";
import { toolsPage } from "./tools-page.ts";

/** A file of this repository that is generated from the code. */
export interface GeneratedFile {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly text: () => string;
}

const root = new URL("../../", import.meta.url);

/** Returns the URL of a file of the repository. */
export function fileAt(path: string): URL {
  return new URL(path, root);
}

/** Every file that `npm run docs` generates, except those with their own scripts. */
export const GENERATED: readonly GeneratedFile[] = [
  { path: "manifest.json", text: () => jsonText(manifest()) },
  { path: "server.json", text: () => jsonText(serverJson()) },
  { path: ".claude-plugin/plugin.json", text: () => jsonText(pluginJson()) },
  { path: "docs/reference/tools.md", text: toolsPage },
  { path: "docs/reference/settings.md", text: settingsPage },
  { path: "docs/reference/commands.md", text: commandsPage },
  { path: "docs/reference/metrics.md", text: metricsPage },
  { path: "docs/desired-state.schema.json", text: () => jsonText(desiredStateJsonSchema()) },
  { path: "docs/plan.schema.json", text: () => jsonText(planJsonOf()) },
];

function planJsonOf(): Record<string, unknown> {
  return { title: "What targeting-mcp plan --json prints", ...z.toJSONSchema(planJsonSchema) };
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
