import { readFileSync } from "node:fs";
import { manifest } from "./manifest.ts";
import { serverJson } from "./server-json.ts";
import { settingsPage } from "./settings-page.ts";
import { toolsPage, toolsTable } from "./tools-page.ts";

/** A file of this repository that is made from the code. */
export interface GeneratedFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: () => string;
}

const root = new URL("../../", import.meta.url);

/** Where a file of the repository is. */
export function fileAt(path: string): URL {
  return new URL(path, root);
}

/** Every file that `npm run docs` makes or keeps up to date, besides those that have scripts of their own. */
export const GENERATED: readonly GeneratedFile[] = [
  { path: "manifest.json", text: () => jsonText(manifest()) },
  { path: "server.json", text: () => jsonText(serverJson()) },
  { path: "docs/tools.md", text: toolsPage },
  { path: "docs/settings.md", text: settingsPage },
  { path: "README.md", text: readmeWithTools },
];

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The README as it is, with the table of tools as it should be. */
function readmeWithTools(): string {
  const text = readFileSync(fileAt("README.md"), "utf8");
  const marked = /(<!-- tools -->\n)[\s\S]*?(<!-- end of tools -->)/;
  if (!marked.test(text)) throw new Error("README.md lacks the marks around the table of tools");
  return text.replace(marked, (_whole, begin: string, end: string) => `${begin}\n${toolsTable()}\n\n${end}`);
}
