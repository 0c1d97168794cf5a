import { createHash } from "node:crypto";
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

/** The sources of settings. */
export interface SettingsInput extends Platform {
  readonly flags: ReadonlyMap<string, string>;
  /** Set if callers may bring their own keys: an address may then have no key. */
  readonly overHttp?: true;
  /** Set if half a pair, or an unusable key or address, is reported by each call instead of preventing the start. */
  readonly overStdio?: true;
}

/** All settings of an operator, read once at the start. Times are in milliseconds. */
export type Settings = ReturnType<typeof readSettings>;

/**
 * Reads every setting: flag before environment before default. Returns a frozen object. Throws a SettingsError that
 * names the variable and the flag of the first unusable setting. Reads one file, the one of TARGETING_MCP_ROUTES.
 */
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
    /** Unusable keys and addresses that do not prevent the start. */
    unusable,
    /** The first of them without which no tool can work. */
    blocked: blockedBy(unusable),
    /** A running sandbox to inspect, also in live mode. */
    sandboxUrl,
    project: { name, id: projectId(environment, name) } as const,
    ...readRules(read, input),
    allowedDirs: read(SETTINGS.allowedDirs),
    maxLineBytes: read(SETTINGS.maxLineMb) * 1_048_576,
    stateDir: read(SETTINGS.stateDir) ?? stateFolder(input),
    /** Operation → `"METHOD /path"`, as in the file. The names of operations are not checked here. */
    routes: routes === undefined ? {} : readRoutes(routes),
    requestTimeoutMs: read(SETTINGS.requestTimeoutMs),
    retryBudgetMs: read(SETTINGS.retryBudgetMs),
    waitMs: read(SETTINGS.waitMs),
    /** The maximum number of concurrent reads of one call. */
    readConcurrency: read(SETTINGS.readConcurrency),
    /** How long finished runs are kept, and how many per caller. */
    keep: { days: read(SETTINGS.keepDays), runs: read(SETTINGS.keepRuns) } as const,
    /** The maximum storage of one caller's plans, suites and unfinished runs. */
    share: { bytes: read(SETTINGS.callerMb) * 1_048_576, dryRuns: read(SETTINGS.callerPlans) },
    /** The database that processes on several machines share; undefined: everything is stored in the state folder. */
    store,
    /** In base64; undefined: created in the state folder. */
    sealKey,
    /** Settings that only `targeting-mcp http` uses. */
    http,
    logLevel: read(SETTINGS.logLevel),
    proxies,
    /** Every configured key and secret, for the redactor. */
    secrets: [
      ...[targetingApiKey, eventAppKey, sealKey, proxies.https, proxies.http, store?.url, store?.listenUrl].flatMap(
        secretsIn,
      ),
      ...[http.approvalWebhook, http.oauth?.clientSecret].filter((one) => one !== undefined),
    ],
    /** The source of each setting, by variable. */
    sources,
    unknownVariables: unknownVariables(input.environment),
  });
}

/** Which tools are offered, what they may change, and how approval is requested. */
function readRules(read: Read, { overHttp }: SettingsInput) {
  return {
    toolsets: read(SETTINGS.toolsets),
    readOnly: read(SETTINGS.readOnly),
    confirm: read(SETTINGS.confirm) ?? (overHttp ? "strict" : "ask"),
    page: read(SETTINGS.page),
    /** Whether an approval in a view of the client counts if `confirm` is `strict`. */
    trustViews: read(SETTINGS.trustViews),
    /** Undefined: all. Not checked here to be ULIDs. */
    allowedTargetings: read(SETTINGS.allowedTargetings),
    maxDeletes: read(SETTINGS.maxDeletes),
    /** The percentage of a targeting's options that one plan may change, and may delete. */
    maxChangePercent: read(SETTINGS.maxChangePercent),
  } as const;
}

/**
 * Returns a setting without which no tool can work, because the server would otherwise store its runs, or read, in a
 * different location.
 */
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
  const holdsPassword = /\/\/[^/]*@/.test(text);
  const shown = setting.secret || holdsPassword ? "" : `; it is ${JSON.stringify(text.slice(0, 80))}`;
  throw new SettingsError(`${nameOf(setting)} must be ${setting.form.words}${shown}`, setting.variable);
}

function nameOf(setting: Setting<unknown, unknown>): string {
  return setting.flag === undefined ? setting.variable : `${setting.variable} (--${setting.flag})`;
}

function projectId(environment: Environment, name: string | undefined): string {
  return createHash("sha256")
    .update(name ?? identityOf(environment))
    .digest("hex")
    .slice(0, 16);
}

/** Identifies a project without a name: a key belongs to one project (management-api 5). */
function identityOf(environment: Environment): string {
  if (environment.kind === "sandbox") return `sandbox\n${environment.url ?? ""}`;
  const endpoint = environment.management ?? environment.events;
  return `${endpoint?.url}\n${endpoint?.key}`;
}

function readRoutes(file: string): Readonly<Record<string, string>> {
  const where = `${nameOf(SETTINGS.routes)} names the file ${file}`;
  const refuse = (why: string) => new SettingsError(`${where}, ${why}`, SETTINGS.routes.variable);
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw refuse(`which cannot be read as JSON: ${cause instanceof Error ? cause.message : "unknown reason"}`);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw refuse("which must contain one JSON object");
  }
  const routes: Record<string, string> = {};
  for (const [operation, route] of Object.entries(content)) {
    if (typeof route !== "string") throw refuse(`in which the route of "${operation}" is not a text`);
    routes[operation] = route;
  }
  return routes;
}

/** Returns the secrets in a setting: the key itself, and the password of an address. */
function secretsIn(given: string | undefined): readonly string[] {
  if (given === undefined) return [];
  if (!/^(https?|postgres(ql)?):\/\//i.test(given)) return [given];
  const { password } = new URL(given);
  // A database receives the decoded password, which its errors could show.
  const plain = /^postgres/i.test(given) && !/%(?![0-9a-f]{2})/i.test(password) ? [decodeURIComponent(password)] : [];
  return password === "" ? [] : [...new Set([password, ...plain])];
}

/** Returns the variables with our prefix that are not settings; most likely they are misspelt. */
function unknownVariables(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(environment).filter(
    (variable) => variable.startsWith(OWN_PREFIX) && !SETTING_LIST.some((one) => one.variable === variable),
  );
}

/** Who may call over HTTP, from where, and how many requests at once. */
export type HttpSettings = ReturnType<typeof readHttpSettings>;

/** Reads the settings of the HTTP server. */
function readHttpSettings(read: Read) {
  const oauth = readOAuth(read);
  return {
    /** Whether clients of the 2025 protocol versions get sessions. */
    sessions: read(SETTINGS.sessions),
    /** The path of the JSON file of tokens and projects, which is not read here. */
    accessFile: read(SETTINGS.accessFile),
    oauth,
    /** Receives a POST for each run that waits for approval. */
    approvalWebhook: read(SETTINGS.approvalWebhook),
    /** Whether callers may bring their own keys in headers. */
    ownKeys: read(SETTINGS.ownKeys),
    /** The address of `/mcp` that clients use. */
    publicUrl: read(SETTINGS.publicUrl),
    allowedHosts: read(SETTINGS.allowedHosts),
    maxConcurrency: read(SETTINGS.maxConcurrency),
    /** Whether metrics are served at `/metrics`. */
    metrics: read(SETTINGS.metrics),
  } as const;
}

/** Reads the authorization server whose access tokens are accepted; undefined if none is configured. */
function readOAuth(read: Read) {
  const issuer = read(SETTINGS.oauthIssuer);
  const given = {
    /** Undefined: the public address of this server. */
    audience: read(SETTINGS.oauthAudience),
    /** Undefined: taken from the issuer's metadata. */
    jwksUrl: read(SETTINGS.oauthJwksUrl),
    /** The claim that names a project of the access file. */
    projectClaim: read(SETTINGS.oauthProjectClaim),
    /** The OAuth client with which people log in to the web page; undefined if they cannot. */
    clientId: read(SETTINGS.oauthClientId),
    clientSecret: read(SETTINGS.oauthClientSecret),
  } as const;
  return issuer === undefined ? undefined : ({ issuer, ...given } as const);
}

const NAME = "targeting-mcp";

/** What the location of the state folder depends on. */
export interface Platform {
  readonly platform: NodeJS.Platform;
  /** The person's home folder. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Returns the folder in which programs of this platform store what must survive a restart. It may not exist yet. */
export function stateFolder({ platform, home, environment }: Platform): string {
  if (platform === "win32") {
    return win32.join(environment.LOCALAPPDATA ?? win32.join(home, "AppData", "Local"), NAME);
  }
  if (platform === "darwin") return posix.join(home, "Library", "Application Support", NAME);
  const given = environment.XDG_STATE_HOME;
  // The XDG base directory specification requires ignoring a relative path.
  const base = given !== undefined && posix.isAbsolute(given) ? given : posix.join(home, ".local", "state");
  return posix.join(base, NAME);
}

/**
 * Reads the address of the database that processes on several machines share, and what this process does with it;
 * undefined without one. Throws a SettingsError if no process could execute its runs.
 */
function readStoreSettings(read: Read, ownKeys: HttpSettings["ownKeys"]) {
  const url = read(SETTINGS.store);
  const store = {
    listenUrl: read(SETTINGS.storeListen),
    connections: read(SETTINGS.storeConnections),
    /** Whether this process executes runs. */
    drives: read(SETTINGS.drive),
    parallelProjects: read(SETTINGS.parallelProjects),
  } as const;
  const { variable } = SETTINGS.drive;
  if (!store.drives && url === undefined) {
    throw new SettingsError(`${variable} (--drive) is off, and TARGETING_MCP_STORE is missing`, variable);
  }
  if (!store.drives && ownKeys) {
    throw new SettingsError(`${variable} (--drive) is off: no worker has the keys that callers bring`, variable);
  }
  return url === undefined ? undefined : ({ ...store, url } as const);
}

/** The source of a setting's value. */
export type Source = "flag" | "environment" | "default";

/** The sources of settings. */
export interface Given {
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns the text of a setting and its source. Empty texts and unfilled placeholders are ignored. Undefined if it is
 * not set.
 */
export function settingText({ variable, flag, anyCase }: Setting<unknown, unknown>, { flags, environment }: Given) {
  const fromFlag = flag === undefined ? undefined : meaningful(flags.get(flag));
  if (fromFlag !== undefined) return { text: fromFlag, source: "flag" as const };
  const lower = anyCase === true ? environment[variable.toLowerCase()] : undefined;
  const fromEnvironment = meaningful(environment[variable]) ?? meaningful(lower);
  return fromEnvironment === undefined ? undefined : { text: fromEnvironment, source: "environment" as const };
}

/** Hosts pass an optional setting that the person left out as an empty text, or as `${user_config.name}`. */
function meaningful(given: string | undefined): string | undefined {
  const trimmed = given?.trim();
  return trimmed === undefined || trimmed === "" || /^\$\{[^}]*\}$/.test(trimmed) ? undefined : trimmed;
}
