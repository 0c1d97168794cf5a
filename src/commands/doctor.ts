import { redactorFor } from "../answers/fence.ts";
import { checkAccess, projectsWithoutApprover } from "../http/check-access.ts";
import { allTools, listedTools, type ToolAvailability } from "../mcp/server-parts.ts";
import { RunStoreError } from "../runs/store.ts";
import { type ServerProcess, withServices } from "../runtime/connect.ts";
import { inputOf, isOn, routesOf, settingsFrom, VERSION } from "../runtime/settings-input.ts";
import { type Access, callsTools, type ProjectKeys, readAccess, secretsIn } from "../settings/access-file.ts";
import type { CommandLine } from "../settings/command-line.ts";
import { SETTING_LIST, SETTINGS } from "../settings/registry.ts";
import { type Settings, type SettingsInput, type Source, settingText } from "../settings/settings.ts";
import { type Setting, SettingsError } from "../settings/value-types.ts";
import { localCaller } from "../web/browser.ts";
import { checkEvents, checkIssuer, checkManagement } from "./doctor-apis.ts";
import {
  type Check,
  checkFolders,
  checkNode,
  checkStore,
  exposures,
  note,
  ok,
  problem,
  type StoreShown,
} from "./doctor-machine.ts";
import { shownText, withoutCredentials } from "./shown-address.ts";

/** The time limit of a probe in milliseconds. Probes are not retried, because a person waits for the result. */
const PROBE_TIMEOUT_MS = 10_000;
const MAX_RUNS = 20;

/** Prints a diagnosis of the settings and the APIs. Exit code 1: something must be fixed. */
export async function runDoctor(line: CommandLine): Promise<number> {
  const asJson = isOn(line, "json");
  const diagnosis = withoutAddressSecrets(await diagnose(inputOf(line)));
  process.stdout.write(asJson ? `${JSON.stringify(diagnosis, null, 2)}\n` : diagnosisText(diagnosis));
  return diagnosis.ok ? 0 : 1;
}

async function diagnose(input: SettingsInput): Promise<Diagnosis> {
  const shown = SETTING_LIST.map((setting): Diagnosis["settings"][number] => {
    const { variable, secret, otherwise } = setting;
    const given = settingText(setting, input);
    const text = given === undefined ? otherwise : shownText(setting, given.text);
    const value = secret ? (given === undefined ? "not set" : "set") : text;
    return { variable, source: given?.source ?? "default", value };
  });
  const node = checkNode(process.versions.node);
  const usable = usableSettings(input);
  if ("problem" in usable) {
    const checks = [node, usable.problem];
    return { ...NOTHING_FOUND, version: VERSION, checks, settings: shown };
  }
  const { settings, access } = usable;
  const { oauth } = settings.http;
  const byCallers = keysOfCallers(input, usable);
  return withServices(forProbing(settings), async (connected) => {
    const { store, checks: ofStore } = await checkStore(settings);
    const checks = [
      node,
      ...settings.unknownVariables.map((variable) => note("settings", `${variable} is not a setting`, SPELLING)),
      ...ofStore,
      ...exposures(settings, input),
      ...(await checkHostFiles(input)),
      ...checkApprovers(usable, input),
      ...(oauth === undefined ? [] : await checkIssuer(oauth, settings.proxies)),
      ...(await checkFolders(settings.allowedDirs)),
      ...(await checkApis(connected, settings, byCallers)),
    ];
    const { unfinishedRuns, problem: ofRuns } = store.ok
      ? await findUnfinished(connected, localCaller(settings))
      : { unfinishedRuns: [] };
    const doubt = store.ok ? await connected.services.runs.retentionDoubt() : undefined;
    const ofClock =
      doubt === undefined
        ? []
        : [note("clock", doubt, "Check the clock of this machine. Until it is right, old runs are not removed.")];
    const all = [...checks, ...ofClock, ...(ofRuns === undefined ? [] : [ofRuns])];
    const clean = redacted(all, redactorFor([...settings.secrets, ...secretsIn(access)]).text);
    return {
      ok: !clean.some(({ state }) => state === "problem"),
      version: VERSION,
      environment: settings.environment.kind,
      checks: clean,
      store,
      settings: shown,
      tools: listedTools(await allTools(), withKeysOf(byCallers, connected.offer)).map(({ tool }) => tool.name),
      unfinishedRuns,
    };
  });
}

const SPELLING = "Check the spelling: `targeting-mcp --help` lists all settings.";
const NOTHING_FOUND = { ok: false, environment: undefined, tools: [], unfinishedRuns: [] } as const;

interface Usable {
  readonly settings: Settings;
  readonly access: Access;
}

const THIS_HOST = "127.0.0.1";
const EVERY_HOST = "0.0.0.0";

function usableSettings(input: SettingsInput): Usable | { readonly problem: Check } {
  try {
    const settings = settingsFrom({ ...input, overHttp: true });
    routesOf(settings);
    const access = readAccess(settings.http.accessFile);
    const { oauth, ownKeys, accessFile } = settings.http;
    const isAsked = ownKeys || accessFile !== undefined || oauth !== undefined;
    // Only `http --host` names the address. Here: every address if callers are authenticated, else loopback.
    checkAccess(settings, access, isAsked ? EVERY_HOST : THIS_HOST);
    return { settings, access };
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    return { problem: problem("settings", thrown.message) };
  }
}

/** Returns the settings for probes. An embedded sandbox gets a free port: a running server may use the set port. */
function forProbing(settings: Settings): Settings {
  const { environment } = settings;
  return {
    ...settings,
    environment: environment.kind === "sandbox" ? { ...environment, port: 0 } : environment,
    requestTimeoutMs: Math.min(settings.requestTimeoutMs, PROBE_TIMEOUT_MS),
    // The first attempt of a request may take a third of `waitMs`. So this gives a probe exactly its time limit.
    waitMs: 3 * PROBE_TIMEOUT_MS,
    retryBudgetMs: 0,
    logLevel: "silent",
  };
}

/** Checks the configuration files of hosts. Their parsers are large, so they are imported only when needed. */
async function checkHostFiles(input: SettingsInput): Promise<readonly Check[]> {
  const { openHostFiles } = await import("../setup/settings.ts");
  return (await openHostFiles(input)).map(({ title, found, remedy }) => problem(title, found, remedy));
}

/** Checks whether people can approve changes over HTTP. Over stdio, the browser or the client asks. */
function checkApprovers({ settings, access }: Usable, { environment }: SettingsInput): readonly Check[] {
  const { ownKeys, oauth } = settings.http;
  if (!(ownKeys || oauth !== undefined || access.tokens.some(callsTools))) return [];
  const lacking = projectsWithoutApprover(settings, access, { asksWho: true, environment });
  return lacking === undefined ? [] : [{ about: "approvals", state: "note", ...lacking }];
}

async function checkApis(
  { services }: ServerProcess,
  settings: Settings,
  byCallers: KeysOfCallers,
): Promise<readonly Check[]> {
  const { management, events } = services;
  const { readOnly, environment } = settings;
  const options = { routes: routesOf(settings), readOnly, isSandbox: environment.kind === "sandbox" };
  const without = (about: string, keys: string | undefined, variables: string): Check =>
    keys === undefined
      ? note(about, "not configured: its tools are not listed", `Set ${variables} to use it.`)
      : ok(about, `set up for http: ${keys}, so no key was checked`);
  return [
    ...(management === undefined
      ? [without("management API", byCallers.targeting, "TARGETING_API_URL and TARGETING_API_KEY")]
      : await checkManagement(management, options)),
    ...(events === undefined
      ? [without("event API", byCallers.events, "EVENT_API_URL and EVENT_APP_KEY")]
      : await checkEvents(events, options)),
  ];
}

/** For each API: where the key of callers over HTTP comes from. Undefined if no caller has one. */
type KeysOfCallers = Readonly<Record<ToolAvailability["toolsets"][number], string | undefined>>;

function keysOfCallers(input: SettingsInput, { settings, access }: Usable): KeysOfCallers {
  const keySource = (address: Setting<string>, key: keyof ProjectKeys): string | undefined => {
    if (settingText(address, input) === undefined) return undefined;
    if (settings.http.ownKeys) return "callers over HTTP bring their own keys (TARGETING_MCP_OWN_KEYS)";
    const isInProjects = [...access.projects.values()].some((keys) => keys[key] !== undefined);
    return isInProjects ? "the keys are in the projects of TARGETING_MCP_ACCESS_FILE" : undefined;
  };
  return {
    targeting: keySource(SETTINGS.targetingApiUrl, "targetingApiKey"),
    events: keySource(SETTINGS.eventApiUrl, "eventAppKey"),
  };
}

function withKeysOf(byCallers: KeysOfCallers, offer: ToolAvailability): ToolAvailability {
  const added = (["targeting", "events"] as const).filter((one) => byCallers[one] !== undefined);
  return { ...offer, configured: [...new Set([...offer.configured, ...added])] };
}

async function findUnfinished({ services }: ServerProcess, caller: string) {
  const unfinishedRuns: Diagnosis["unfinishedRuns"][number][] = [];
  try {
    for await (const { runId, tool, status, open } of services.runs.list(caller)) {
      if (open || status === "interrupted") unfinishedRuns.push({ runId, tool, status });
      if (unfinishedRuns.length === MAX_RUNS) break;
    }
    return { unfinishedRuns };
  } catch (thrown) {
    if (!(thrown instanceof RunStoreError)) throw thrown;
    return { unfinishedRuns, problem: problem("runs", thrown.message) };
  }
}

function redacted(checks: readonly Check[], clean: (text: string) => string): readonly Check[] {
  return checks.map((check) => ({
    ...check,
    found: clean(check.found),
    ...(check.remedy !== undefined && { remedy: clean(check.remedy) }),
  }));
}

/** Removes user names, passwords and queries from all addresses in a diagnosis. */
function withoutAddressSecrets({ checks, store, ...rest }: Diagnosis): Diagnosis {
  return {
    ...rest,
    checks: redacted(checks, withoutCredentials),
    ...(store && { store: { ...store, problems: store.problems.map(withoutCredentials) } }),
  };
}

interface Diagnosis {
  readonly ok: boolean;
  readonly version: string;
  readonly environment: "live" | "sandbox" | undefined;
  readonly checks: readonly Check[];
  readonly store?: StoreShown;
  /** The settings. Of a secret, `value` only says whether it is set. */
  readonly settings: readonly { readonly variable: string; readonly source: Source; readonly value: string }[];
  readonly tools: readonly string[];
  readonly unfinishedRuns: readonly Readonly<Record<"runId" | "tool" | "status", string>>[];
}

const MARKS = { ok: "ok", note: "note", problem: "FIX" } as const satisfies Record<Check["state"], string>;

function diagnosisText(diagnosis: Diagnosis): string {
  const { ok, version, environment, checks, settings, tools, unfinishedRuns } = diagnosis;
  const found = checks.flatMap(({ about, state, found, remedy }): readonly (readonly string[])[] => [
    [MARKS[state], about, found],
    ...(remedy === undefined ? [] : [["", "", `→ ${remedy}`]]),
  ]);
  const given = settings.filter(({ source }) => source !== "default");
  const paragraphs = [
    `targeting-mcp ${version}${environment === undefined ? "" : `, environment: ${environment}`}`,
    table(found),
    given.length === 0
      ? "Settings: all have their defaults."
      : `Settings (all others have their defaults):\n${table(given.map((one) => [one.variable, one.source, one.value]))}`,
    tools.length === 0 ? "Tools: none would be listed." : `Tools (${tools.length}): ${tools.join(", ")}`,
    ...(unfinishedRuns.length === 0
      ? []
      : [`Unfinished runs:\n${table(unfinishedRuns.map((run) => [run.runId, run.tool, run.status]))}`]),
    ok ? "Nothing must be fixed." : "Some problems must be fixed: see the lines marked FIX.",
  ];
  return `${paragraphs.join("\n\n")}\n`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return rows.map((row) => `  ${line(row).trimEnd()}`).join("\n");
}
