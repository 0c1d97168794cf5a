import { statSync } from "node:fs";
import { access, constants, mkdtemp, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { Log } from "../observe/log.ts";
import { syncFolder } from "../platform/files.ts";
import { amount } from "../platform/text.ts";
import { SEAL_KEY_FILE } from "../runs/files/backend.ts";
import { runsIn } from "../runs/files/run-folder.ts";
import type { FoundStore } from "../runs/postgres/start.ts";
import { NO_TRACES } from "../runtime/observers.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type Settings, type SettingsInput, settingText } from "../settings/settings.ts";
import { isPlain, type Setting } from "../settings/value-types.ts";

/** The result of a check. `note`: may be intended, or cannot be decided. `problem`: must be fixed. */
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

/** Checks whether the state folder can be written to. If it does not exist yet, checks the nearest folder above it. */
async function checkStateFolder(folder: string): Promise<Check> {
  const about = "state folder";
  try {
    const existing = await nearestExisting(folder);
    if (existing !== folder) {
      await access(existing, constants.W_OK);
      return ok(about, `${folder} will be created by the first run`);
    }
    // Only writing proves that the folder is writable. On some file systems, its permissions do not show it.
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
  if (folders.length === 0)
    return [ok("allowed folders", "none: saveTo is refused, and file reads only folders that the client offers")];
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
  /** The version of the database server. Absent if the database did not answer. */
  readonly server?: string | undefined;
  /** The migrations (last and needed), the number of runs, and the size of each table in bytes. */
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
      : [
          note(
            "store",
            `not in the database: ${amount(lying, "run")} in ${stateDir}`,
            "Unset TARGETING_MCP_STORE to see them.",
          ),
        ]),
  ];
  return { store: { kind: "postgres", ok: wrong === undefined, server, tables, problems }, checks };
}

function sizeWords({ runs, bytes }: NonNullable<FoundStore["tables"]>): string {
  const sum = Object.values(bytes).reduce((total, one) => total + one, 0);
  return `${runs} runs, ${Math.ceil(sum / 1_048_576)} MB`;
}

type Exposure = Check & { readonly state: "note" | "problem"; readonly remedy: string };

/** Checks whether files with secrets are open to others, and whether keys are sent without encryption. */
export function exposures(settings: Settings, input: SettingsInput): readonly Exposure[] {
  return [...openFiles(settings), ...plainAddresses(settings, input)];
}

/** Logs warnings about the settings at the start. `problem`: why traces cannot be sent; undefined if they can. */
export function logStartWarnings(log: Log, settings: Settings, input: SettingsInput, problem: unknown): void {
  for (const variable of settings.unknownVariables)
    log.warn("this variable is not a setting; check its spelling", { variable });
  if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
  for (const { found, remedy } of exposures(settings, input)) log.warn(found, { remedy });
}

/** Checks the permissions of files and folders with secrets. Not on Windows, which has access lists instead. */
function openFiles({ stateDir, sealKey, http }: Settings): readonly Exposure[] {
  if (process.platform === "win32") return [];
  const sealFile = sealKey === undefined ? join(stateDir, SEAL_KEY_FILE) : undefined;
  return [
    // The files in this folder have their own permissions. If the folder itself is open, others can see their names.
    ...openOne("state folder", stateDir, { right: "700", why: "it contains runs", ifForAll: "note" }),
    ...openOne("seal key", sealFile, { right: "600", why: "a program that reads it can confirm deletions" }),
    ...openOne("access file", http.accessFile, { right: "600", why: "it contains keys and tokens" }),
  ];
}

interface OwnPath {
  readonly right: string;
  readonly why: string;
  readonly ifForAll?: Exposure["state"];
}

function openOne(
  about: string,
  path: string | undefined,
  { right, why, ifForAll = "problem" }: OwnPath,
): readonly Exposure[] {
  const mode = path === undefined ? 0 : modeOf(path);
  const isForAll = (mode & 0o007) !== 0;
  if (!isForAll && (mode & 0o070) === 0) return [];
  const who = isForAll ? "every user of this machine" : "its group";
  const found = `${path} is open to ${who} (mode ${mode.toString(8)}), and ${why}`;
  // Access for the group may be intended, as on a mounted volume, so it is only a note.
  return [{ about, state: isForAll ? ifForAll : "note", found, remedy: `chmod ${right} ${path}` }];
}

/** Returns the permission bits of a file; 0 (no finding) if it does not exist or cannot be accessed. */
function modeOf(path: string): number {
  try {
    return (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown) return 0;
    throw thrown;
  }
}

const SENDERS: readonly (readonly [Setting<string>, string])[] = [
  [SETTINGS.targetingApiUrl, "the key of the management API is sent"],
  [SETTINGS.eventApiUrl, "the key of the event API is sent"],
  [SETTINGS.publicUrl, "callers send their tokens and keys"],
];

/** Checks whether keys are sent without encryption. Skips a sandbox, because its keys are public. */
function plainAddresses({ environment }: Settings, input: SettingsInput): readonly Exposure[] {
  if (environment.kind === "sandbox") return [];
  return SENDERS.flatMap(([setting, what]): readonly Exposure[] => {
    const address = settingText(setting, input)?.text;
    if (address === undefined || !isPlain(address)) return [];
    return [
      {
        about: "addresses",
        state: "note",
        found: `${setting.variable} is ${address}: ${what} unencrypted over http`,
        remedy: `Set ${setting.variable} to an https:// address.`,
      },
    ];
  });
}
