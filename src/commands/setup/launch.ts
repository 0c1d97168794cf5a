import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };
import { type Entry, tableOf } from "./entry.ts";

/** How a host starts the command. */
export type Launch = Pick<Entry, "command" | "args">;

/** The command that fetches the published package. On Windows npx is a script, which only a shell starts. */
export function publishedLaunch(platform: NodeJS.Platform): Launch {
  const args = ["-y", packageJson.name];
  return platform === "win32" ? { command: "cmd", args: ["/c", "npx", ...args] } : { command: "npx", args };
}

/** Where npx keeps what it fetched: a folder of its own for each command line. */
const IN_NPX_CACHE = /^(.*[\\/]_npx[\\/][^\\/]+)[\\/]node_modules[\\/]/;

/**
 * How the program that a built file belongs to is started again: as npx did, where npx fetched it from a registry; else
 * by this Node with its entry, whether it lies in a clone, or was installed from an archive or globally. Hosts on
 * a desktop often have another PATH than a terminal, so that Node is named in full.
 */
export async function launchOf(file: string, { platform, node }: LaunchOptions): Promise<Launch> {
  const [, folder] = IN_NPX_CACHE.exec(file) ?? [];
  if (folder !== undefined && (await isOfRegistry(join(folder, "package.json")))) return publishedLaunch(platform);
  return { command: node, args: [join(dirname(file), "main.js")] };
}

interface LaunchOptions {
  readonly platform: NodeJS.Platform;
  /** The path of the Node that runs. */
  readonly node: string;
}

/** Whether npx was asked for a version of the package, rather than for an archive, a folder or an address. */
async function isOfRegistry(manifest: string): Promise<boolean> {
  try {
    const { dependencies } = tableOf(JSON.parse(await readFile(manifest, "utf8"))) ?? {};
    const asked = tableOf(dependencies)?.[packageJson.name];
    return typeof asked === "string" && !/[:/\\]/.test(asked);
  } catch {
    // A cache of another form: the path works in any case.
    return false;
  }
}
