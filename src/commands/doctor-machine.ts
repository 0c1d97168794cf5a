import { statSync } from "node:fs";
import { access, constants, mkdtemp, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import type { Log } from "../observe/log.ts";
import { syncFolder } from "../platform/durable-files.ts";
import { runsIn } from "../runs/files/run-folder.ts";
import { SEAL_KEY_FILE } from "../runs/files/side-stores.ts";
import type { FoundStore } from "../runs/postgres/start.ts";
import { NO_TRACES } from "../runtime/observers.ts";
import { SETTINGS } from "../settings/registry.ts";
import { type Settings, type SettingsInput, settingText } from "../settings/settings.ts";
import { isPlain, type Setting } from "../settings/value-types.ts";

/** The result of one check. A note is harmless but may surprise; a problem must be fixed. */
export interface Check {
  readonly about: string;
  readonly state: "ok" | "note" | "problem";
  readonly found: string;
  /** What to do, if anything. */
  readonly remedy?: string;
}

/** A check without findings. */
export function ok(about: string, found: string): Check {
  return { about, state: "ok", found };
}

/** A check with a surprising finding. */
export function note(about: string, found: string, remedy?: string): Check {
  return { about, state: "note", found, ...(remedy !== undefined && { remedy }) };
}

/** A check with a finding that must be fixed. */
export function problem(about: string, found: string, remedy?: string): Check {
  return { about, state: "problem", found, ...(remedy !== undefined && { remedy }) };
}

/** Whether this version of Node ("20.18.1") is one that the package supports. */
export function checkNode(running: string): Check {
  const least = packageJson.engines.node.replace(">=", "");
  const isRecent = running.localeCompare(least, "en", { numeric: true }) >= 0;
  return isRecent ? ok("Node", running) : problem("Node", `${running} is too old`, `Install Node ${least} or newer.`);
}

/** Whether runs can be stored in the folder. A folder that does not exist yet is not created: its parent is checked. */
async function checkStateFolder(folder: string): Promise<Check> {
  const about = "state folder";
  try {
    const existing = await nearestExisting(folder);
    if (existing !== folder) {
      await access(existing, constants.W_OK);
      return ok(about, `${folder} will be made by the first run`);
    }
    // Only a write proves that the folder is writable: on some platforms and file systems, permissions do not.
    await rm(await mkdtemp(join(folder, "doctor-")), { recursive: true });
    if (await syncFolder(folder)) return ok(about, `${folder} can be written`);
    return note(
      about,
      `${folder} can be written, but its file system cannot put the names of files on the disk: a power failure may take away the newest runs, and what they had sent`,
      "Let TARGETING_MCP_STATE_DIR name a folder on a local file system.",
    );
  } catch (thrown) {
    const remedy = "Let TARGETING_MCP_STATE_DIR name a folder that can be written.";
    return problem(about, `${folder} cannot be written: ${reasonOf(thrown)}`, remedy);
  }
}

/** Whether the folders for `file` and `saveTo` exist, and what they allow. */
export async function checkFolders(folders: readonly string[]): Promise<readonly Check[]> {
  if (folders.length === 0) return [ok("allowed folders", "none: file and saveTo are refused")];
  return Promise.all(folders.map(checkFolder));
}

async function checkFolder(folder: string): Promise<Check> {
  const about = "allowed folders";
  const remedy = "Make the folder readable, or take it out of TARGETING_MCP_ALLOWED_DIRS.";
  try {
    if (!(await stat(folder)).isDirectory()) return problem(about, `${folder} is no folder`, remedy);
    await access(folder, constants.R_OK);
  } catch (thrown) {
    return problem(about, `${folder} cannot be read: ${reasonOf(thrown)}`, remedy);
  }
  try {
    await access(folder, constants.W_OK);
    return ok(about, `${folder} can be read and written`);
  } catch (thrown) {
    return note(about, `${folder} can be read; saveTo cannot write there: ${reasonOf(thrown)}`);
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

/** Where runs are stored, in the diagnosis. */
export interface StoreShown {
  readonly kind: "files" | "postgres";
  /** Whether it can be used. */
  readonly ok: boolean;
  /** A description of the database; absent if it was not reached. */
  readonly server?: string | undefined;
  /** The number of the last migration, the required one, and the size of the tables in bytes, by table. */
  readonly tables?: FoundStore["tables"];
  /** What must be fixed, and what is weak. */
  readonly problems: readonly string[];
}

/** Checks where runs are stored. Returns a description, and the checks. */
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
            `${lying} runs lie in ${stateDir}, and are left there`,
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

/** Something that others on this machine, or on the way to a service, could read, with its remedy. */
type Exposure = Check & { readonly state: "note" | "problem"; readonly remedy: string };

/**
 * Checks the files that contain secrets, and the addresses that keys are sent to. Reads no content and sends nothing.
 */
export function exposures(settings: Settings, input: SettingsInput): readonly Exposure[] {
  return [...openFiles(settings), ...plainAddresses(settings, input)];
}

/** Logs what was noticed at the start of a server. `problem` is why there are no traces. */
export function logStartWarnings(log: Log, settings: Settings, input: SettingsInput, problem: unknown): void {
  for (const variable of settings.unknownVariables)
    log.warn("this variable is no setting; is it misspelt?", { variable });
  if (problem !== undefined) log.warn(NO_TRACES, { error: problem });
  for (const { found, remedy } of exposures(settings, input)) log.warn(found, { remedy });
}

/** Secrets in files, with the permissions that they should have. Windows uses access lists instead. */
function openFiles({ stateDir, sealKey, http }: Settings): readonly Exposure[] {
  if (process.platform === "win32") return [];
  const sealFile = sealKey === undefined ? join(stateDir, SEAL_KEY_FILE) : undefined;
  return [
    // Files created in it have their own permissions. But an open folder shows names, and files that older versions
    // left in it.
    ...openOne("state folder", stateDir, { right: "700", why: "it holds runs", mostly: "note" }),
    ...openOne("seal key", sealFile, { right: "600", why: "a program that reads it can confirm deletions" }),
    ...openOne("access file", http.accessFile, { right: "600", why: "it holds keys and tokens" }),
  ];
}

/** A path that should be accessible to its owner only. */
interface OwnPath {
  /** The permissions that it should have, in the notation of `chmod`. */
  readonly right: string;
  readonly why: string;
  /** The severity if every user of the machine can use the path; a problem if absent. */
  readonly mostly?: Exposure["state"];
}

function openOne(
  about: string,
  path: string | undefined,
  { right, why, mostly = "problem" }: OwnPath,
): readonly Exposure[] {
  const mode = path === undefined ? 0 : modeOf(path);
  const isForAll = (mode & 0o007) !== 0;
  if (!isForAll && (mode & 0o070) === 0) return [];
  const who = isForAll ? "every user of this machine" : "its group";
  const found = `${path} is open to ${who} (mode ${mode.toString(8)}), and ${why}`;
  // Access for a group may be intended, as on a mounted volume; access for all users never is.
  return [{ about, state: isForAll ? mostly : "note", found, remedy: `chmod ${right} ${path}` }];
}

/** The permissions of a file; 0 if it does not exist or is not accessible, because it then reveals nothing. */
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

/** Addresses of live services that keys are sent to without encryption. A sandbox receives only its own public keys. */
function plainAddresses({ environment }: Settings, input: SettingsInput): readonly Exposure[] {
  if (environment.kind === "sandbox") return [];
  return SENDERS.flatMap(([setting, what]): readonly Exposure[] => {
    const address = settingText(setting, input)?.text;
    if (address === undefined || !isPlain(address)) return [];
    return [
      {
        about: "addresses",
        state: "note",
        found: `${setting.variable} is ${address}: ${what} over plain http, readable on the way`,
        remedy: `Let ${setting.variable} begin with https://.`,
      },
    ];
  });
}
