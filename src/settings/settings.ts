import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Environment, type EnvironmentSettings, type HalfPairs, resolveEnvironment } from "./environment.ts";
import { SettingsError } from "./error.ts";
import { OWN_PREFIX, type Setting } from "./forms.ts";
import { givenText, type Source } from "./given.ts";
import { type HttpSettings, readHttpSettings } from "./http.ts";
import type { Proxies } from "./proxy.ts";
import { SETTING_LIST, SETTINGS } from "./registry.ts";
import { type Platform, readStoreSettings, type StoreSettings, stateFolder } from "./state-folder.ts";

/** All settings of an operator, read once at the start. Times are milliseconds. */
export interface Settings {
  readonly environment: Environment;
  /** A running sandbox to inspect, in live mode too. */
  readonly sandboxUrl: string | undefined;
  readonly project: { readonly name: string | undefined; readonly id: string };
  readonly toolsets: readonly ("targeting" | "events")[];
  readonly readOnly: boolean;
  readonly confirm: "ask" | "strict" | "off";
  readonly page: "auto" | "on" | "off";
  /** Undefined: all. Not yet checked to be ULIDs. */
  readonly allowedTargetings: readonly string[] | undefined;
  readonly maxDeletes: number;
  /** Of a targeting's options that one plan may change, and that it may delete. */
  readonly maxChangePercent: number;
  readonly allowedDirs: readonly string[];
  readonly stateDir: string;
  /** Operation → `"METHOD /path"`, as the file says; not yet checked against the operations. */
  readonly routes: Readonly<Record<string, string>>;
  readonly requestTimeoutMs: number;
  readonly retryBudgetMs: number;
  readonly waitMs: number;
  /** How many reads of one call run at the same time. */
  readonly readConcurrency: number;
  /** How long finished runs are kept, and how many of each caller. */
  readonly keep: { readonly days: number; readonly runs: number };
  /** The database that processes on several machines share; undefined: everything is kept in the state folder. */
  readonly store: StoreSettings | undefined;
  /** Base64; undefined: one is made in the state folder. */
  readonly sealKey: string | undefined;
  /** Settings that only `targeting-mcp http` reads. */
  readonly http: HttpSettings;
  readonly logLevel: "debug" | "info" | "warn" | "error" | "silent";
  readonly proxies: Proxies;
  /** Every configured key and secret, for the redactor. */
  readonly secrets: readonly string[];
  /** By variable. */
  readonly sources: ReadonlyMap<string, Source>;
  /** Variables with our prefix that are no setting. */
  readonly unknownVariables: readonly string[];
}

/** The input that settings are read from. */
export interface SettingsInput extends Platform {
  readonly flags: ReadonlyMap<string, string>;
  /** Set where callers may bring keys of their own: an address may then stand without its key. */
  readonly overHttp?: true;
  /** Set where half a pair of address and key is an error of each call, instead of one at the start. */
  readonly overStdio?: true;
}

/**
 * Reads every setting: flag over environment over default. Gives a frozen object; throws a SettingsError that names
 * the variable and the flag of the first setting that cannot be used. Reads one file, that of TARGETING_MCP_ROUTES.
 */
export function readSettings(input: SettingsInput): Settings {
  const sources = new Map<string, Source>();
  const read = <Value, Fallback>(setting: Setting<Value, Fallback>): Value | Fallback => {
    const found = givenText(setting, input);
    sources.set(setting.variable, found?.source ?? "default");
    return found === undefined ? setting.fallback : parse(setting, found.text);
  };
  const addresses: EnvironmentSettings = {
    targetingApiUrl: read(SETTINGS.targetingApiUrl),
    targetingApiKey: read(SETTINGS.targetingApiKey),
    eventApiUrl: read(SETTINGS.eventApiUrl),
    eventAppKey: read(SETTINGS.eventAppKey),
    mode: read(SETTINGS.mode),
    sandboxUrl: read(SETTINGS.sandboxUrl),
    sandboxPort: read(SETTINGS.sandboxPort),
    sandboxSeed: read(SETTINGS.sandboxSeed),
  };
  const forHttp = readHttpSettings(read);
  const environment = resolveEnvironment(addresses, halfPairsOf(input, forHttp));
  const projectName = read(SETTINGS.project);
  const https = read(SETTINGS.httpsProxy);
  const http = read(SETTINGS.httpProxy);
  const none = read(SETTINGS.noProxy);
  const routes = read(SETTINGS.routes);
  const sealKey = read(SETTINGS.sealKey);
  const store = readStoreSettings(read, forHttp.ownKeys);
  return Object.freeze({
    environment,
    sandboxUrl: addresses.sandboxUrl,
    project: { name: projectName, id: projectId(environment, projectName) },
    toolsets: read(SETTINGS.toolsets),
    readOnly: read(SETTINGS.readOnly),
    confirm: read(SETTINGS.confirm) ?? (input.overHttp ? "strict" : "ask"),
    page: read(SETTINGS.page),
    allowedTargetings: read(SETTINGS.allowedTargetings),
    maxDeletes: read(SETTINGS.maxDeletes),
    maxChangePercent: read(SETTINGS.maxChangePercent),
    allowedDirs: read(SETTINGS.allowedDirs),
    stateDir: read(SETTINGS.stateDir) ?? stateFolder(input),
    routes: routes === undefined ? {} : readRoutes(routes),
    requestTimeoutMs: read(SETTINGS.requestTimeoutMs),
    retryBudgetMs: read(SETTINGS.retryBudgetMs),
    waitMs: read(SETTINGS.waitMs),
    readConcurrency: read(SETTINGS.readConcurrency),
    keep: { days: read(SETTINGS.keepDays), runs: read(SETTINGS.keepRuns) },
    store,
    sealKey,
    http: forHttp,
    logLevel: read(SETTINGS.logLevel),
    proxies: { ...(https && { https }), ...(http && { http }), ...(none && { none }) },
    secrets: secretsOf([
      addresses.targetingApiKey,
      addresses.eventAppKey,
      sealKey,
      https,
      http,
      store?.url,
      store?.listenUrl,
    ]).concat(forHttp.approvalWebhook ?? [], forHttp.oauth?.clientSecret ?? []),
    sources,
    unknownVariables: unknownVariables(input.environment),
  });
}

function halfPairsOf({ overHttp, overStdio }: SettingsInput, { ownKeys, accessFile }: HttpSettings): HalfPairs {
  if (overStdio === true) return "told";
  return overHttp === true && (ownKeys || accessFile !== undefined) ? "callersBringKeys" : "refused";
}

function parse<Value>(setting: Setting<Value, unknown>, text: string): Value {
  const value = setting.form.read(text);
  if (value !== undefined) return value;
  const shown = setting.secret ? "" : `; it is ${JSON.stringify(text.slice(0, 80))}`;
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

/** Identifies a project without a name: its key belongs to one project (management-api 5). */
function identityOf(environment: Environment): string {
  if (environment.kind === "sandbox") return `sandbox\n${environment.url ?? ""}`;
  const endpoint = environment.management ?? environment.events;
  return `${endpoint?.url}\n${endpoint?.key}`;
}

function readRoutes(file: string): Readonly<Record<string, string>> {
  const where = `${nameOf(SETTINGS.routes)} names the file ${file}`;
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "unknown reason";
    throw new SettingsError(`${where}, which cannot be read as JSON: ${reason}`, SETTINGS.routes.variable);
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    throw new SettingsError(`${where}, which must hold one JSON object`, SETTINGS.routes.variable);
  }
  const routes: Record<string, string> = {};
  for (const [operation, route] of Object.entries(content)) {
    if (typeof route !== "string") {
      throw new SettingsError(`${where}, where the route of "${operation}" is not a text`, SETTINGS.routes.variable);
    }
    routes[operation] = route;
  }
  return routes;
}

/** Keys, and the passwords of addresses. */
function secretsOf(given: readonly (string | undefined)[]): readonly string[] {
  return given.flatMap((one) => {
    if (one === undefined) return [];
    if (!/^(https?|postgres(ql)?):\/\//i.test(one)) return [one];
    const { password } = new URL(one);
    // A database is given the password itself, which its errors could show.
    const plain = /^postgres/i.test(one) ? [decodeURIComponent(password)] : [];
    return password === "" ? [] : [...new Set([password, ...plain])];
  });
}

/** Variables that carry our prefix and are no setting: most likely misspelt. */
function unknownVariables(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(environment).filter(
    (variable) => variable.startsWith(OWN_PREFIX) && !SETTING_LIST.some((one) => one.variable === variable),
  );
}
