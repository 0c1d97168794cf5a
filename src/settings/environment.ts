import { SETTINGS } from "./registry.ts";
import { isLoopback, type Read, type SandboxSeed, SettingsError } from "./value-types.ts";

export interface Endpoint {
  readonly url: string;
  readonly key: string;
}

/**
 * Why an API cannot be used. Either only one of its address and its key is set: `present` is the variable that is set,
 * `missing` the other one. Or the value of the variable `missing` is invalid, as `problem` says.
 */
export interface HalfPair {
  readonly missing: string;
  readonly present?: string;
  readonly problem?: string;
}

export type UnusableSettings = ReadonlyMap<string, string>;

/**
 * The live APIs. `half`: APIs with incomplete or invalid settings, if `HalfPairs` is `reported`. Their tools are listed,
 * and calls of them report this. The tools of other absent APIs are not listed.
 */
export interface LiveEnvironment {
  readonly kind: "live";
  readonly management?: Endpoint;
  readonly events?: Endpoint;
  readonly half?: { readonly management?: HalfPair; readonly events?: HalfPair };
}

/**
 * What happens if only the address or only the key of an API is set. `refused`: the server does not start. `reported`:
 * the server starts, and each call of that API reports it, because hosts do not show why a server did not start.
 * `callersBringKeys`: an address is enough, because callers send keys or the access file has them. A key is not enough.
 */
export type HalfPairs = "refused" | "reported" | "callersBringKeys";

/** A running sandbox at `url`; without `url`, one in this process on `port` (0: a free port). */
export interface SandboxEnvironment {
  readonly kind: "sandbox";
  readonly url?: string;
  readonly port: number;
  readonly seed: SandboxSeed;
  readonly managementKey: string;
  readonly eventKey: string;
}

export type Environment = LiveEnvironment | SandboxEnvironment;

type EnvironmentSettings = ReturnType<typeof readAddresses>;

export function readAddresses(read: Read) {
  return {
    targetingApiUrl: read(SETTINGS.targetingApiUrl),
    targetingApiKey: read(SETTINGS.targetingApiKey),
    eventApiUrl: read(SETTINGS.eventApiUrl),
    eventAppKey: read(SETTINGS.eventAppKey),
    mode: read(SETTINGS.mode),
    sandboxUrl: read(SETTINGS.sandboxUrl),
    sandboxPort: read(SETTINGS.sandboxPort),
    sandboxSeed: read(SETTINGS.sandboxSeed),
  } as const;
}

const SANDBOX_KEYS = { management: "sandbox-key", events: "sandbox-app-key" } as const;

/** Returns the environment of the settings. Throws a SettingsError as `HalfPairs` says, or if live mode has no API. */
export function resolveEnvironment(
  settings: EnvironmentSettings,
  halfPairs: HalfPairs = "refused",
  { unusable = new Map(), proxies = {} }: { readonly unusable?: UnusableSettings; readonly proxies?: Proxies } = {},
): Environment {
  const { targetingApiUrl, targetingApiKey, eventApiUrl, eventAppKey } = settings;
  const pairs = {
    management: [SETTINGS.targetingApiUrl.variable, SETTINGS.targetingApiKey.variable],
    events: [SETTINGS.eventApiUrl.variable, SETTINGS.eventAppKey.variable],
  } as const;
  const nothingSet =
    [targetingApiUrl, targetingApiKey, eventApiUrl, eventAppKey].every((one) => one === undefined) &&
    ![...pairs.management, ...pairs.events].some((variable) => unusable.has(variable));
  if (settings.mode === "sandbox" || (settings.mode === "auto" && nothingSet))
    return sandboxOf(settings, nothingSet && settings.mode === "auto");
  const [management, events] = [
    pairOf([pairs.management[0], targetingApiUrl], [pairs.management[1], targetingApiKey], { unusable, proxies }),
    pairOf([pairs.events[0], eventApiUrl], [pairs.events[1], eventAppKey], { unusable, proxies }),
  ];
  if (nothingSet) throw nothingToUse();
  const halves = {
    ...(management.half && { management: management.half }),
    ...(events.half && { events: events.half }),
  };
  const refused = Object.values(halves).find(({ missing }) =>
    halfPairs === "callersBringKeys" ? missing.endsWith("_URL") : halfPairs === "refused",
  );
  if (refused !== undefined) {
    const { missing, present } = refused;
    throw new SettingsError(`${halfWords(refused)}. Set ${missing}, or unset ${present}`, missing);
  }
  return {
    kind: "live",
    ...(management.whole && { management: management.whole }),
    ...(events.whole && { events: events.whole }),
    ...(halfPairs === "reported" && Object.keys(halves).length > 0 && { half: halves }),
  };
}

export function halfWords({ missing, present, problem }: HalfPair): string {
  return problem ?? `${missing} is missing: ${present} is set, but needs it`;
}

function nothingToUse(): SettingsError {
  return new SettingsError(
    "live mode (TARGETING_MCP_MODE, --mode) needs TARGETING_API_URL with TARGETING_API_KEY, " +
      "or EVENT_API_URL with EVENT_APP_KEY; neither pair is set",
    "TARGETING_MCP_MODE",
  );
}

/** Returns the sandbox of the settings. Configured keys may be real, so only a sandbox on this machine gets them. */
function sandboxOf(settings: EnvironmentSettings, isForWantOfSettings: boolean): SandboxEnvironment {
  const { sandboxUrl } = settings;
  const near = sandboxUrl === undefined || isLoopback(sandboxUrl);
  return {
    kind: "sandbox",
    ...(sandboxUrl !== undefined && { url: sandboxUrl }),
    port: settings.sandboxPort,
    // Without settings of an API, a person is probably trying out the server, so the sandbox starts with sample data.
    seed: settings.sandboxSeed ?? (isForWantOfSettings ? "sample" : "none"),
    managementKey: (near ? settings.targetingApiKey : undefined) ?? SANDBOX_KEYS.management,
    eventKey: (near ? settings.eventAppKey : undefined) ?? SANDBOX_KEYS.events,
  };
}

type Named = readonly [variable: string, value: string | undefined];

function pairOf(
  [urlVariable, url]: Named,
  [keyVariable, key]: Named,
  { unusable, proxies }: { readonly unusable: UnusableSettings; readonly proxies: Proxies },
): { readonly whole?: Endpoint; readonly half?: HalfPair } {
  const proxy = url === undefined ? undefined : brokenProxy(url, proxies, unusable);
  for (const missing of [urlVariable, keyVariable, proxy]) {
    const problem = missing === undefined ? undefined : unusable.get(missing);
    if (missing !== undefined && problem !== undefined) return { half: { missing, problem } };
  }
  if (url !== undefined && key !== undefined) return { whole: { url, key } };
  if (url !== undefined) return { half: { missing: keyVariable, present: urlVariable } };
  return key === undefined ? {} : { half: { missing: urlVariable, present: keyVariable } };
}

/** Returns the variable of an address's proxy if its value is invalid. Nothing may then be sent to the address. */
function brokenProxy(url: string, { none }: Proxies, unusable: UnusableSettings): string | undefined {
  const { variable } = url.startsWith("https:") ? SETTINGS.httpsProxy : SETTINGS.httpProxy;
  return unusable.has(variable) && proxyFor(url, { https: variable, http: variable, none }) !== undefined
    ? variable
    : undefined;
}

/** The proxies for https and http addresses, and the hosts that are reached without one (`none`, from NO_PROXY). */
export interface Proxies {
  readonly https?: string | undefined;
  readonly http?: string | undefined;
  readonly none?: string | undefined;
}

/** Returns the proxy for an address. Loopback has none, because the proxy would connect to its own machine. */
export function proxyFor(url: string, proxies: Proxies): string | undefined {
  const proxy = url.startsWith("https:") ? proxies.https : proxies.http;
  return proxy === undefined || isLoopback(url) || needsNoProxy(url, proxies.none ?? "") ? undefined : proxy;
}

/** Returns whether NO_PROXY covers an address: `*`, or hosts with an optional port, and their subdomains. */
function needsNoProxy(url: string, none: string): boolean {
  const { protocol, hostname, port } = new URL(url);
  const host = bare(hostname);
  const portUsed = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  return none.split(/[,\s]+/).some((entry) => {
    if (entry === "*") return true;
    const [, name = "", onPort = portUsed] = /^(\[.*\]|[^:]*|.*:.*:.*?)(?::(\d+))?$/.exec(entry) ?? [];
    const wanted = bare(name.replace(/^\*?\./, ""));
    return wanted !== "" && onPort === portUsed && (host === wanted || host.endsWith(`.${wanted}`));
  });
}

function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}
