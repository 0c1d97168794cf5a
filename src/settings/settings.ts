import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { posix, win32 } from "node:path";
import {
  type Environment,
  type HalfPair,
  type HalfPairs,
  readAddresses,
  resolveEnvironment,
  type UnusableSettings,
} from "./environment.ts";
import { SETTING_LIST, SETTINGS } from "./registry.ts";
import { KEYS_AND_ADDRESSES, OWN_PREFIX, type Read, type Setting, SettingsError } from "./value-types.ts";

export interface SettingsInput extends Platform {
  readonly flags: ReadonlyMap<string, string>;
  /** Set for HTTP servers and workers. With callers' own keys or an access file, an API then needs only an address. */
  readonly overHttp?: true;
  /** Set for stdio and its commands. A bad key or address, or half a pair, is no error: calls needing it report it. */
  readonly overStdio?: true;
}

/** All settings. Times are in milliseconds. */
export type Settings = ReturnType<typeof readSettings>;

/** Reads each setting: flag, else environment, else default. Throws a SettingsError if invalid (see `overStdio`). */
export function readSettings(input: SettingsInput) {
  const sources = new Map<string, Source>();
  const unusable = new Map<string, string>();
  const read: Read = (setting) => {
    const found = settingText(setting, input);
    sources.set(setting.variable, found?.source ?? "default");
    if (found === undefined) return setting.fallback;
    try {
      return parse(setting, found.text);
    } catch (thrown) {
      const isTold = input.overStdio === true && KEYS_AND_ADDRESSES.has(setting.form);
      if (!isTold || !(thrown instanceof SettingsError)) throw thrown;
      unusable.set(setting.variable, thrown.message);
      return setting.fallback;
    }
  };
  const addresses = readAddresses(read);
  const http = readHttpSettings(read);
  const proxies = { https: read(SETTINGS.httpsProxy), http: read(SETTINGS.httpProxy), none: read(SETTINGS.noProxy) };
  const environment = resolveEnvironment(addresses, halfPairsOf(input, http), { unusable, proxies });
  const name = read(SETTINGS.project);
  const routes = read(SETTINGS.routes);
  const sealKey = read(SETTINGS.sealKey);
  const store = readStoreSettings(read, http.ownKeys);
  const { targetingApiKey, eventAppKey, sandboxUrl } = addresses;
  return Object.freeze({
    environment,
    /** Invalid keys and addresses, by variable. The server starts with them, and calls report them. */
    unusable,
    blocked: blockedBy(unusable),
    /** The address of a running sandbox. Even in live mode, its events can be inspected. */
    sandboxUrl,
    project: { name, id: projectId(environment, name) } as const,
    ...readRules(read, input),
    allowedDirs: read(SETTINGS.allowedDirs),
    maxLineBytes: read(SETTINGS.maxLineMb) * 1_048_576,
    stateDir: read(SETTINGS.stateDir) ?? stateFolder(input),
    /** By operation: the route that replaces its usual one, as `"METHOD /path"`. Checked later. */
    routes: routes === undefined ? {} : readRoutes(routes),
    requestTimeoutMs: read(SETTINGS.requestTimeoutMs),
    retryBudgetMs: read(SETTINGS.retryBudgetMs),
    waitMs: read(SETTINGS.waitMs),
    readConcurrency: read(SETTINGS.readConcurrency),
    keep: { days: read(SETTINGS.keepDays), runs: read(SETTINGS.keepRuns) } as const,
    share: { bytes: read(SETTINGS.callerMb) * 1_048_576, dryRuns: read(SETTINGS.callerPlans) },
    /** The shared database. Undefined: everything is stored in the state folder. */
    store,
    /** The key that signs confirmations, in base64. Undefined: the key in the state folder or the database is used. */
    sealKey,
    http,
    logLevel: read(SETTINGS.logLevel),
    proxies,
    secrets: [
      ...[targetingApiKey, eventAppKey, sealKey, proxies.https, proxies.http, store?.url, store?.listenUrl].flatMap(
        secretsIn,
      ),
      ...[http.approvalWebhook, http.oauth?.clientSecret].filter((one) => one !== undefined),
    ],
    sources,
    unknownVariables: unknownVariables(input.environment),
  });
}

function readRules(read: Read, { overHttp }: SettingsInput) {
  return {
    toolsets: read(SETTINGS.toolsets),
    readOnly: read(SETTINGS.readOnly),
    confirm: read(SETTINGS.confirm) ?? (overHttp ? "strict" : "ask"),
    page: read(SETTINGS.page),
    /** Whether an approval in a client's view counts even if `confirm` is `strict`. */
    trustViews: read(SETTINGS.trustViews),
    /** The only targetings that may be changed. Undefined: all may be changed. The IDs are checked later. */
    allowedTargetings: read(SETTINGS.allowedTargetings),
    maxDeletes: read(SETTINGS.maxDeletes),
    /** The maximum share of a targeting's options that a plan may change, and that it may delete, in percent. */
    maxChangePercent: read(SETTINGS.maxChangePercent),
  } as const;
}

/** Returns the invalid setting that makes all calls fail: they would use the wrong store, key or sandbox. */
function blockedBy(unusable: UnusableSettings): HalfPair | undefined {
  for (const { variable } of [SETTINGS.store, SETTINGS.storeListen, SETTINGS.sealKey, SETTINGS.sandboxUrl]) {
    const problem = unusable.get(variable);
    if (problem !== undefined) return { missing: variable, problem };
  }
  return undefined;
}

function halfPairsOf({ overHttp, overStdio }: SettingsInput, { ownKeys, accessFile }: HttpSettings): HalfPairs {
  if (overStdio === true) return "reported";
  return overHttp === true && (ownKeys || accessFile !== undefined) ? "callersBringKeys" : "refused";
}

function parse<Value>(setting: Setting<Value, unknown>, text: string): Value {
  const value = setting.form.read(text);
  if (value !== undefined) return value;
  // An address may contain a password or a key.
  const shown = setting.secret || /[@?#]/.test(text) ? "" : `; it is ${JSON.stringify(text.slice(0, 80))}`;
  throw new SettingsError(`${nameOf(setting)} must be ${setting.form.words}${shown}`, setting.variable);
}

function nameOf(setting: Setting<unknown, unknown>): string {
  return setting.flag === undefined ? setting.variable : `${setting.variable} (--${setting.flag})`;
}

function projectId(environment: Environment, name: string | undefined): string {
  return hash("sha256", name ?? identityOf(environment)).slice(0, 16);
}

/** Returns what identifies a project without a name: address and key, as each key is of one project; or the sandbox. */
function identityOf(environment: Environment): string {
  if (environment.kind === "sandbox") return `sandbox\n${environment.url ?? ""}`;
  const endpoint = environment.management ?? environment.events;
  return `${endpoint?.url}\n${endpoint?.key}`;
}

function readRoutes(file: string): Readonly<Record<string, string>> {
  const what = `the file ${file} of ${nameOf(SETTINGS.routes)}`;
  const refuse = (why: string) => new SettingsError(`${what} ${why}`, SETTINGS.routes.variable);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw refuse(`cannot be read as JSON: ${cause instanceof Error ? cause.message : "unknown reason"}`);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw refuse("must contain one JSON object");
  }
  const routes: Record<string, string> = {};
  for (const [operation, route] of Object.entries(content)) {
    if (typeof route !== "string") throw refuse(`is invalid: the route of "${operation}" is not a text`);
    routes[operation] = route;
  }
  return routes;
}

function secretsIn(given: string | undefined): readonly string[] {
  if (given === undefined) return [];
  if (!/^(https?|postgres(ql)?):\/\//i.test(given)) return [given];
  const { password } = new URL(given);
  // Errors of the database may contain the decoded password, so that is a secret as well.
  const plain = /^postgres/i.test(given) && !/%(?![0-9a-f]{2})/i.test(password) ? [decodeURIComponent(password)] : [];
  return password === "" ? [] : [...new Set([password, ...plain])];
}

/** Returns variables that have our prefix but are not settings. They are probably misspelt. */
function unknownVariables(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(environment).filter(
    (variable) => variable.startsWith(OWN_PREFIX) && !SETTING_LIST.some((one) => one.variable === variable),
  );
}

export type HttpSettings = ReturnType<typeof readHttpSettings>;

function readHttpSettings(read: Read) {
  const oauth = readOAuth(read);
  return {
    sessions: read(SETTINGS.sessions),
    accessFile: read(SETTINGS.accessFile),
    oauth,
    approvalWebhook: read(SETTINGS.approvalWebhook),
    /** Whether callers may send their own keys in headers. */
    ownKeys: read(SETTINGS.ownKeys),
    publicUrl: read(SETTINGS.publicUrl),
    allowedHosts: read(SETTINGS.allowedHosts),
    maxConcurrency: read(SETTINGS.maxConcurrency),
    metrics: read(SETTINGS.metrics),
  } as const;
}

function readOAuth(read: Read) {
  const issuer = read(SETTINGS.oauthIssuer);
  const given = {
    /** The audience that tokens must have. Undefined: the public address of this server. */
    audience: read(SETTINGS.oauthAudience),
    /** The address of the issuer's keys. Undefined: the issuer's metadata names it. */
    jwksUrl: read(SETTINGS.oauthJwksUrl),
    projectClaim: read(SETTINGS.oauthProjectClaim),
    /** The OAuth client. Undefined: people cannot log in to the web page through the authorization server. */
    clientId: read(SETTINGS.oauthClientId),
    clientSecret: read(SETTINGS.oauthClientSecret),
  } as const;
  return issuer === undefined ? undefined : ({ issuer, ...given } as const);
}

const NAME = "targeting-mcp";

export interface Platform {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Returns the folder for data that must survive a restart. It may not exist yet. */
export function stateFolder({ platform, home, environment }: Platform): string {
  if (platform === "win32") return win32.join(environment.LOCALAPPDATA ?? win32.join(home, "AppData", "Local"), NAME);
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", NAME);
  const given = environment.XDG_STATE_HOME;
  // The XDG base directory specification says that a relative path must be ignored.
  const base = given !== undefined && posix.isAbsolute(given) ? given : posix.join(home, ".local", "state");
  return posix.join(base, NAME);
}

/** Reads the settings of the run store. Throws a SettingsError if neither this process nor a worker executes runs. */
function readStoreSettings(read: Read, ownKeys: HttpSettings["ownKeys"]) {
  const url = read(SETTINGS.store);
  const store = {
    listenUrl: read(SETTINGS.storeListen),
    connections: read(SETTINGS.storeConnections),
    /** Whether this process executes runs. Otherwise it only stores them, and workers execute them. */
    drives: read(SETTINGS.drive),
    parallelProjects: read(SETTINGS.parallelProjects),
  } as const;
  const { variable } = SETTINGS.drive;
  if (!store.drives && url === undefined) {
    throw new SettingsError(
      `${variable} (--drive) is off, but without TARGETING_MCP_STORE no other process can execute runs`,
      variable,
    );
  }
  if (!store.drives && ownKeys) {
    throw new SettingsError(
      `${variable} (--drive) must be on with TARGETING_MCP_OWN_KEYS, because workers do not have callers' own keys`,
      variable,
    );
  }
  return url === undefined ? undefined : ({ ...store, url } as const);
}

export type Source = "flag" | "environment" | "default";

/** Returns the text of a setting and its source. Undefined if not set, empty, or an unfilled placeholder. */
export function settingText(
  { variable, flag, anyCase }: Setting<unknown, unknown>,
  { flags, environment }: Pick<SettingsInput, "flags" | "environment">,
) {
  const fromFlag = flag === undefined ? undefined : meaningful(flags.get(flag));
  if (fromFlag !== undefined) return { text: fromFlag, source: "flag" as const };
  const lower = anyCase === true ? environment[variable.toLowerCase()] : undefined;
  const fromEnvironment = meaningful(environment[variable]) ?? meaningful(lower);
  return fromEnvironment === undefined ? undefined : { text: fromEnvironment, source: "environment" as const };
}

/** Returns the trimmed text. Undefined if empty or a placeholder (`${user_config.name}`), which hosts pass if unset. */
function meaningful(given: string | undefined): string | undefined {
  const trimmed = given?.trim();
  return trimmed === undefined || trimmed === "" || /^\$\{[^}]*\}$/.test(trimmed) ? undefined : trimmed;
}
