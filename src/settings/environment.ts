import { SETTINGS } from "./registry.ts";
import { isLoopback, type Read, type SandboxSeed, SettingsError } from "./value-types.ts";

/** The address of an API, and its key. */
export interface Endpoint {
  readonly url: string;
  readonly key: string;
}

/**
 * Why an API cannot be used as configured: an address without its key, a key without its address, or a setting with a
 * `problem`.
 */
export interface HalfPair {
  /** The variable to set, or to correct. */
  readonly missing: string;
  readonly present?: string;
  readonly problem?: string;
}

/** The settings that cannot be used, by variable: what is wrong with each. */
export type UnusableSettings = ReadonlyMap<string, string>;

/** The real APIs. An API that is absent is not configured: its tools are not listed, unless it is half set. */
export interface LiveEnvironment {
  readonly kind: "live";
  readonly management?: Endpoint;
  readonly events?: Endpoint;
  /** The pairs that are half set, if that does not prevent the start. */
  readonly half?: { readonly management?: HalfPair; readonly events?: HalfPair };
}

/**
 * How the server handles an API of which only the address or only the key is set. `refused`: throws. `reported`: the
 * server starts, and each call of that API reports the missing setting, because hosts do not show the errors of a server that
 * does not start. `callersBringKeys`: an address without a key is accepted, and the API is not configured for callers
 * without their own keys.
 */
export type HalfPairs = "refused" | "reported" | "callersBringKeys";

/**
 * The emulated APIs. With `url`, it is the sandbox that runs there. Otherwise it is one in this process, on `port`, or on
 * a free port if that is 0.
 */
export interface SandboxEnvironment {
  readonly kind: "sandbox";
  readonly url?: string;
  readonly port: number;
  /** The content of the embedded sandbox at its start: nothing, the sample data, or a file. */
  readonly seed: SandboxSeed;
  readonly managementKey: string;
  readonly eventKey: string;
}

/** The APIs that the server uses. */
export type Environment = LiveEnvironment | SandboxEnvironment;

/** The settings that determine the environment. */
type EnvironmentSettings = ReturnType<typeof readAddresses>;

/** Reads the settings that determine the environment. */
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

/** Keys that every sandbox accepts. */
const SANDBOX_KEYS = { management: "sandbox-key", events: "sandbox-app-key" } as const;

/**
 * Decides between the real APIs and the sandbox. Throws a SettingsError that names the missing variable if half a pair
 * of address and key is set and that is refused, or if live mode has no pair.
 */
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

/** Returns why an API cannot be used as configured, as text. */
export function halfWords({ missing, present, problem }: HalfPair): string {
  return problem ?? `${missing} is missing: ${present} is set, and each is of use only with the other`;
}

function nothingToUse(): SettingsError {
  return new SettingsError(
    "live mode (TARGETING_MCP_MODE, --mode) needs TARGETING_API_URL with TARGETING_API_KEY, " +
      "or EVENT_API_URL with EVENT_APP_KEY; neither pair is set",
    "TARGETING_MCP_MODE",
  );
}

/** Configured keys are sent to a sandbox only if it is on this machine, because they may be real. */
function sandboxOf(settings: EnvironmentSettings, isForWantOfSettings: boolean): SandboxEnvironment {
  const { sandboxUrl } = settings;
  const near = sandboxUrl === undefined || isLoopback(sandboxUrl);
  return {
    kind: "sandbox",
    ...(sandboxUrl !== undefined && { url: sandboxUrl }),
    port: settings.sandboxPort,
    // A person who has set nothing is trying the server out: an empty sandbox would show nothing.
    seed: settings.sandboxSeed ?? (isForWantOfSettings ? "sample" : "none"),
    managementKey: (near ? settings.targetingApiKey : undefined) ?? SANDBOX_KEYS.management,
    eventKey: (near ? settings.eventAppKey : undefined) ?? SANDBOX_KEYS.events,
  };
}

type Named = readonly [variable: string, value: string | undefined];

/** Returns an address with its key, or why they cannot be used; undefined if neither is set. */
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

/** Returns the variable of an unusable proxy for an address. A request must not be sent in another way instead. */
function brokenProxy(url: string, { none }: Proxies, unusable: UnusableSettings): string | undefined {
  const { variable } = url.startsWith("https:") ? SETTINGS.httpsProxy : SETTINGS.httpProxy;
  return unusable.has(variable) && proxyFor(url, { https: variable, http: variable, none }) !== undefined
    ? variable
    : undefined;
}

/** Proxies by the scheme of the address, and the hosts that need none, as in NO_PROXY. */
export interface Proxies {
  readonly https?: string | undefined;
  readonly http?: string | undefined;
  readonly none?: string | undefined;
}

/**
 * Returns the address of the proxy for `url`; undefined for a direct connection. Loopback addresses never use a proxy,
 * because there they would mean the proxy's own machine.
 */
export function proxyFor(url: string, proxies: Proxies): string | undefined {
  const proxy = url.startsWith("https:") ? proxies.https : proxies.http;
  return proxy === undefined || isLoopback(url) || needsNoProxy(url, proxies.none ?? "") ? undefined : proxy;
}

/**
 * Returns whether NO_PROXY contains the host of an address. It is a comma-separated list of hosts, each including its
 * subdomains and optionally with a port, or `*` for all hosts.
 */
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

/** Returns a host in lower case; an IPv6 address without its brackets. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}
