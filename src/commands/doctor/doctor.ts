import { type Redactor, redactorFor } from "../../render/redact.ts";
import { RunStoreError } from "../../runs/backend/store.ts";
import { allTools, listedTools, type Offer } from "../../server/listing.ts";
import { type Access, callsTools, type ProjectKeys, readAccess, secretsIn } from "../../settings/access.ts";
import type { CommandLine } from "../../settings/command-line.ts";
import { SettingsError } from "../../settings/error.ts";
import type { Setting } from "../../settings/forms.ts";
import { givenText } from "../../settings/given.ts";
import { SETTING_LIST, SETTINGS } from "../../settings/registry.ts";
import type { Settings, SettingsInput } from "../../settings/settings.ts";
import { type Connected, whileConnected } from "../connecting/connect.ts";
import { ownCaller } from "../connecting/own-caller.ts";
import { checkAccess } from "../http/http-access.ts";
import { uncovered } from "../http/people/uncovered.ts";
import { inputOf, isOn, routesOf, settingsFrom } from "../settings-input.ts";
import { VERSION } from "../version.ts";
import { checkEvents, checkManagement } from "./apis.ts";
import { exposures } from "./exposures.ts";
import { type Check, checkFolders, checkNode, note, ok, problem } from "./machine.ts";
import { checkStore } from "./store.ts";
import { type Diagnosis, diagnosisText, type SettingShown, type UnfinishedRun } from "./words.ts";

/** A person waits for the answer: no probe takes longer, and none is tried again. */
const PROBE_TIMEOUT_MS = 10_000;
/** The most runs that are listed: more do not help a reader. */
const MOST_RUNS = 20;

/** Checks the set-up, prints what was found, and gives the exit code: 1 when something must be fixed. */
export async function runDoctor(line: CommandLine): Promise<number> {
  const asJson = isOn(line, "json");
  const diagnosis = await diagnose(inputOf(line));
  process.stdout.write(asJson ? `${JSON.stringify(diagnosis, null, 2)}\n` : diagnosisText(diagnosis));
  return diagnosis.ok ? 0 : 1;
}

/** Looks at everything that a server started with these settings would depend on; changes nothing in an API. */
async function diagnose(input: SettingsInput): Promise<Diagnosis> {
  const shown = SETTING_LIST.map((setting): SettingShown => {
    const { variable, secret, otherwise } = setting;
    const given = givenText(setting, input);
    const value = secret ? (given === undefined ? "not set" : "set") : (given?.text ?? otherwise);
    return { variable, source: given?.source ?? "default", value };
  });
  const node = checkNode(process.versions.node);
  const usable = usableSettings(input);
  if ("problem" in usable) {
    const checks = [node, usable.problem];
    return { ...NOTHING_FOUND, version: VERSION, checks, settings: shown };
  }
  const { settings, access } = usable;
  const byCallers = keysOfCallers(input, usable);
  return whileConnected(forProbing(settings), async (connected) => {
    const { store, checks: ofStore } = await checkStore(settings);
    const checks = [
      node,
      ...settings.unknownVariables.map(misspelt),
      ...ofStore,
      ...exposures(settings, input),
      ...(await checkHostFiles(input)),
      ...checkApprovers(usable, input),
      ...(await checksOfIssuer(settings)),
      ...(await checkFolders(settings.allowedDirs)),
      ...(await checkApis(connected, settings, byCallers)),
    ];
    // A store that cannot be used holds no runs either: that is said once.
    const { unfinishedRuns, problem: ofRuns } = store.ok
      ? await findUnfinished(connected, ownCaller(settings))
      : { unfinishedRuns: [] };
    const doubt = store.ok ? await connected.services.runs.retentionDoubt() : undefined;
    const ofClock =
      doubt === undefined
        ? []
        : [note("clock", doubt, "If the clock is wrong, set it right: nothing is removed until then.")];
    const all = [...checks, ...ofClock, ...(ofRuns === undefined ? [] : [ofRuns])];
    const clean = redacted(all, redactorFor([...settings.secrets, ...secretsIn(access)]));
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

const NOTHING_FOUND = { ok: false, environment: undefined, tools: [], unfinishedRuns: [] } as const;

/** Settings and access file, as they are read where callers come over HTTP. */
interface Usable {
  readonly settings: Settings;
  readonly access: Access;
}

const THIS_HOST = "127.0.0.1";
const EVERY_HOST = "0.0.0.0";

function usableSettings(input: SettingsInput): Usable | { readonly problem: Check } {
  try {
    // Where callers over HTTP bring keys of their own, an address without a key is well.
    const settings = settingsFrom({ ...input, overHttp: true });
    routesOf(settings);
    const access = readAccess(settings.http.accessFile);
    const { oauth, ownKeys, accessFile } = settings.http;
    const isAsked = ownKeys || accessFile !== undefined || oauth !== undefined;
    // Without authentication only this machine can be meant: the host itself is no setting.
    checkAccess(settings, access, isAsked ? EVERY_HOST : THIS_HOST);
    return { settings, access };
  } catch (thrown) {
    if (!(thrown instanceof SettingsError)) throw thrown;
    return { problem: problem("settings", thrown.message) };
  }
}

/** A fixed port of the embedded sandbox may be held by a server that runs; the one that is looked at takes another. */
function forProbing(settings: Settings): Settings {
  const { environment } = settings;
  return {
    ...settings,
    environment: environment.kind === "sandbox" ? { ...environment, port: 0 } : environment,
    requestTimeoutMs: Math.min(settings.requestTimeoutMs, PROBE_TIMEOUT_MS),
    retryBudgetMs: 0,
    logLevel: "silent",
  };
}

/** Keys of this server in the files of hosts: loaded late, since that needs their parsers. */
async function checkHostFiles(input: SettingsInput): Promise<readonly Check[]> {
  const { openHostFiles } = await import("../setup/open-files.ts");
  return (await openHostFiles(input)).map(({ title, found, remedy }) => problem(title, found, remedy));
}

/** Over stdio a person is reached otherwise: so this is about servers that ask who calls. */
function checkApprovers({ settings, access }: Usable, { environment }: SettingsInput): readonly Check[] {
  const { ownKeys, oauth } = settings.http;
  if (!(ownKeys || oauth !== undefined || access.tokens.some(callsTools))) return [];
  const lacking = uncovered(settings, access, { asksWho: true, environment });
  return lacking === undefined ? [] : [{ about: "approvals", state: "note", ...lacking }];
}

/** What it takes to read an authorization server is loaded where there is one. */
async function checksOfIssuer(settings: Settings): Promise<readonly Check[]> {
  const { oauth } = settings.http;
  if (oauth === undefined) return [];
  const { checkIssuer } = await import("./issuer.ts");
  return checkIssuer(oauth, settings.proxies);
}

function misspelt(variable: string): Check {
  return note("settings", `${variable} is no setting`, "Is it misspelt? `targeting-mcp --help` lists them.");
}

async function checkApis(
  { services }: Connected,
  settings: Settings,
  byCallers: KeysOfCallers,
): Promise<readonly Check[]> {
  const { management, events } = services;
  const { readOnly, environment } = settings;
  const options = { routes: routesOf(settings), readOnly, isSandbox: environment.kind === "sandbox" };
  const without = (about: string, keys: string | undefined, variables: string): Check =>
    keys === undefined
      ? note(about, "not configured: its tools are not listed", `Set ${variables} to use it.`)
      : ok(about, `set up for http: ${keys}, so that none was tried here`);
  return [
    ...(management === undefined
      ? [without("management API", byCallers.targeting, "TARGETING_API_URL and TARGETING_API_KEY")]
      : await checkManagement(management, options)),
    ...(events === undefined
      ? [without("event API", byCallers.events, "EVENT_API_URL and EVENT_APP_KEY")]
      : await checkEvents(events, options)),
  ];
}

/** Where callers over HTTP have the key of an API from, in words; undefined where no caller can have one. */
type KeysOfCallers = Readonly<Record<Offer["toolsets"][number], string | undefined>>;

function keysOfCallers(input: SettingsInput, { settings, access }: Usable): KeysOfCallers {
  const of = (address: Setting<string>, key: keyof ProjectKeys): string | undefined => {
    if (givenText(address, input) === undefined) return undefined;
    if (settings.http.ownKeys) return "callers over HTTP bring keys of their own (TARGETING_MCP_OWN_KEYS)";
    const isInProjects = [...access.projects.values()].some((keys) => keys[key] !== undefined);
    return isInProjects ? "keys stand in the projects of TARGETING_MCP_ACCESS_FILE" : undefined;
  };
  return {
    targeting: of(SETTINGS.targetingApiUrl, "targetingApiKey"),
    events: of(SETTINGS.eventApiUrl, "eventAppKey"),
  };
}

/** What is offered to a caller who has every key that callers can have. */
function withKeysOf(byCallers: KeysOfCallers, offer: Offer): Offer {
  const added = (["targeting", "events"] as const).filter((one) => byCallers[one] !== undefined);
  return { ...offer, configured: [...new Set([...offer.configured, ...added])] };
}

/** The runs of a caller that are not done; why they cannot be told, where that is so. */
async function findUnfinished({ services }: Connected, caller: string) {
  const unfinishedRuns: UnfinishedRun[] = [];
  try {
    for await (const { runId, tool, status, open } of services.runs.list(caller)) {
      if (open || status === "interrupted") unfinishedRuns.push({ runId, tool, status });
      if (unfinishedRuns.length === MOST_RUNS) break;
    }
    return { unfinishedRuns };
  } catch (thrown) {
    if (!(thrown instanceof RunStoreError)) throw thrown;
    return { unfinishedRuns, problem: problem("runs", thrown.message) };
  }
}

function redacted(checks: readonly Check[], redactor: Redactor): readonly Check[] {
  return checks.map((check) => ({
    ...check,
    found: redactor.text(check.found),
    ...(check.remedy !== undefined && { remedy: redactor.text(check.remedy) }),
  }));
}
