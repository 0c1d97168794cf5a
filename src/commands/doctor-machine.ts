import { access, constants, mkdtemp, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { syncFolder } from "../platform/files.ts";
import { runsIn } from "../runs/files/run-folder.ts";
import type { FoundStore } from "../runs/postgres/start.ts";
import type { Settings } from "../settings/settings.ts";

/** The result of a check. `note`: harmless, but perhaps unexpected. `problem`: must be fixed. */
export interface Check {
  readonly about: string;
  readonly state: "ok" | "note" | "problem";
  readonly found: string;
  readonly remedy?: string;
}

export function ok(about: string, found: string): Check {
  return { about, state: "ok", found };
}

export function note(about: string, found: string, remedy?: string): Check {
  return { about, state: "note", found, ...(remedy !== undefined && { remedy }) };
}

export function problem(about: string, found: string, remedy?: string): Check {
  return { about, state: "problem", found, ...(remedy !== undefined && { remedy }) };
}

export function checkNode(running: string): Check {
  const least = packageJson.engines.node.replace(">=", "");
  const isRecent = running.localeCompare(least, "en", { numeric: true }) >= 0;
  return isRecent ? ok("Node", running) : problem("Node", `${running} is too old`, `Install Node ${least} or newer.`);
}

/** Checks whether the state folder is writable. If it does not exist, its parent is checked. */
async function checkStateFolder(folder: string): Promise<Check> {
  const about = "state folder";
  try {
    const existing = await nearestExisting(folder);
    if (existing !== folder) {
      await access(existing, constants.W_OK);
      return ok(about, `${folder} will be created by the first run`);
    }
    // Only writing to the folder proves that it is writable. On some file systems, permissions do not show it.
    await rm(await mkdtemp(join(folder, "doctor-")), { recursive: true });
    if (await syncFolder(folder)) return ok(about, `${folder} is writable`);
    return note(
      about,
      `${folder} is writable, but its file system does not guarantee that new files survive a power failure. The newest runs and the record of their requests may then be lost`,
      "Set TARGETING_MCP_STATE_DIR to a folder on a local file system.",
    );
  } catch (thrown) {
    const remedy = "Set TARGETING_MCP_STATE_DIR to a writable folder.";
    return problem(about, `${folder} is not writable: ${reasonOf(thrown)}`, remedy);
  }
}

export async function checkFolders(folders: readonly string[]): Promise<readonly Check[]> {
  if (folders.length === 0) return [ok("allowed folders", "none: file and saveTo are refused")];
  return Promise.all(folders.map(checkFolder));
}

async function checkFolder(folder: string): Promise<Check> {
  const about = "allowed folders";
  const remedy = "Make the folder readable, or remove it from TARGETING_MCP_ALLOWED_DIRS.";
  try {
    if (!(await stat(folder)).isDirectory()) return problem(about, `${folder} is not a folder`, remedy);
    await access(folder, constants.R_OK);
  } catch (thrown) {
    return problem(about, `${folder} cannot be read: ${reasonOf(thrown)}`, remedy);
  }
  try {
    await access(folder, constants.W_OK);
    return ok(about, `${folder} is readable and writable`);
  } catch (thrown) {
    return note(about, `${folder} is readable, but saveTo cannot write there: ${reasonOf(thrown)}`);
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

export interface StoreShown {
  readonly kind: "files" | "postgres";
  readonly ok: boolean;
  /** The version of the database server. Absent if the database was not reached. */
  readonly server?: string | undefined;
  /** The last migration, the migration that this version needs, and the size of each table in bytes. */
  readonly tables?: FoundStore["tables"];
  readonly problems: readonly string[];
}

export async function checkStore({ store, stateDir }: Pick<Settings, "store" | "stateDir">): Promise<{
  readonly store: StoreShown;
  readonly checks: readonly Check[];
}> {
  if (store === undefined) {
    const check = await checkStateFolder(stateDir);
    const isUsable = check.state === "ok";
    return { store: { kind: "files", ok: isUsable, problems: isUsable ? [] : [check.found] }, checks: [check] };
  }
  const { lookAtStore } = await import("../runs/postgres/start.ts");
  const { server, tables, weaknesses, problem: wrong } = await lookAtStore(store);
  const lying = (await runsIn(join(stateDir, "runs"))).length;
  const problems = [...(wrong === undefined ? [] : [wrong.message]), ...weaknesses];
  const checks: readonly Check[] = [
    wrong === undefined
      ? ok("store", [server, ...(tables ? [sizeWords(tables)] : [])].join(", "))
      : problem("store", wrong.message, wrong.remedy),
    ...weaknesses.map((one) => note("store", one)),
    ...(lying === 0
      ? []
      : [note("store", `${lying} runs are in ${stateDir} and stay there`, "Unset TARGETING_MCP_STORE to see them.")]),
  ];
  return { store: { kind: "postgres", ok: wrong === undefined, server, tables, problems }, checks };
}

function sizeWords({ runs, bytes }: NonNullable<FoundStore["tables"]>): string {
  const sum = Object.values(bytes).reduce((total, one) => total + one, 0);
  return `${runs} runs, ${Math.ceil(sum / 1_048_576)} MB`;
}
