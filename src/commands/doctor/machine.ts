import { access, constants, mkdtemp, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../../package.json" with { type: "json" };

/** One thing that was looked at. A note costs nothing but may surprise; a problem must be fixed. */
export interface Check {
  readonly about: string;
  readonly state: "ok" | "note" | "problem";
  readonly found: string;
  /** What to do; only where something is to be done. */
  readonly remedy?: string;
}

/** Whether this version of Node ("20.18.1") is one that the package asks for. */
export function checkNode(running: string): Check {
  const least = packageJson.engines.node.replace(">=", "");
  if (isAtLeast(running, least)) return { about: "Node", state: "ok", found: running };
  return {
    about: "Node",
    state: "problem",
    found: `${running} is too old`,
    remedy: `Install Node ${least} or newer.`,
  };
}

function isAtLeast(running: string, least: string): boolean {
  return running.localeCompare(least, "en", { numeric: true }) >= 0;
}

/** Whether runs could be kept in the folder. One that is not there yet is not made: its parent is looked at. */
export async function checkStateFolder(folder: string): Promise<Check> {
  const about = "state folder";
  try {
    const existing = await nearestExisting(folder);
    if (existing !== folder) {
      await access(existing, constants.W_OK);
      return { about, state: "ok", found: `${folder} will be made by the first run` };
    }
    // Only writing tells: permissions alone do not, on every platform and file system.
    await rm(await mkdtemp(join(folder, "doctor-")), { recursive: true });
    return { about, state: "ok", found: `${folder} can be written` };
  } catch (thrown) {
    return {
      about,
      state: "problem",
      found: `${folder} cannot be written: ${reasonOf(thrown)}`,
      remedy: "Let TARGETING_MCP_STATE_DIR name a folder that can be written.",
    };
  }
}

/** Whether the folders that `file` and `saveTo` may use are there, and what they allow. */
export function checkFolders(folders: readonly string[]): Promise<readonly Check[]> {
  if (folders.length > 0) return Promise.all(folders.map(checkFolder));
  const found = "none: file and saveTo are refused";
  return Promise.resolve([{ about: "allowed folders", state: "ok", found }]);
}

async function checkFolder(folder: string): Promise<Check> {
  const about = "allowed folders";
  const remedy = "Make the folder readable, or take it out of TARGETING_MCP_ALLOWED_DIRS.";
  try {
    if (!(await stat(folder)).isDirectory()) {
      return { about, state: "problem", found: `${folder} is no folder`, remedy };
    }
    await access(folder, constants.R_OK);
  } catch (thrown) {
    return { about, state: "problem", found: `${folder} cannot be read: ${reasonOf(thrown)}`, remedy };
  }
  try {
    await access(folder, constants.W_OK);
    return { about, state: "ok", found: `${folder} can be read and written` };
  } catch (thrown) {
    return { about, state: "note", found: `${folder} can be read; saveTo cannot write there: ${reasonOf(thrown)}` };
  }
}

async function nearestExisting(folder: string): Promise<string> {
  try {
    await stat(folder);
    return folder;
  } catch (thrown) {
    const parent = dirname(folder);
    if (reasonOf(thrown) !== "ENOENT" || parent === folder) throw thrown;
    return nearestExisting(parent);
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : String(thrown);
}
