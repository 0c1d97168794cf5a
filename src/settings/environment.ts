import type { Read } from "./http.ts";
import { SETTINGS } from "./registry.ts";
import { isLoopback, type SandboxSeed, SettingsError } from "./value-types.ts";

/** Where an API is, and the key that opens it. */
export interface Endpoint {
  readonly url: string;
  readonly key: string;
}

/**
 * Why an API cannot be used as it is set: an address without its key, or a key without its address; or a setting of which
 * `problem` says what is wrong.
 */
export interface HalfPair {
  /** The variable that is to be set, or set right. */
  readonly missing: string;
  readonly present?: string;
  readonly problem?: string;
}

/** Settings that cannot be used, by their variable: what is wrong with each. */
export type UnusableSettings = ReadonlyMap<string, string>;

/** The real APIs. An absent one is not configured: its tools are not listed, unless it is half set. */
export interface LiveEnvironment {
  readonly kind: "live";
  readonly management?: Endpoint;
  readonly events?: Endpoint;
  /** The pairs that are half set, where that does not keep the server from starting. */
  readonly half?: { readonly management?: HalfPair; readonly events?: HalfPair };
}

/**
 * How half a pair is handled: `refused` throws; `told` starts the server, so that each call of such an API can say what
 * is missing, since hosts show people no errors of a server that does not start; `callersBringKeys` accepts an address
 * without a key, and the API is then not configured for callers without own keys.
 */
export type HalfPairs = "refused" | "told" | "callersBringKeys";

/** The emulated APIs: a sandbox that runs at `url`; where there is no `url`, one inside this process on `port` (0 takes a free one). */
export interface SandboxEnvironment {
  readonly kind: "sandbox";
  readonly url?: string;
  readonly port: number;
  /** What the embedded sandbox holds at its start: nothing, the sample data, or what a file holds. */
  readonly seed: SandboxSeed;
  readonly managementKey: string;
  readonly eventKey: string;
}

/** The APIs that the server talks to. */
export type Environment = LiveEnvironment | SandboxEnvironment;

/** The settings that decide about the environment. */
type EnvironmentSettings = ReturnType<typeof readAddresses>;

/** Reads the settings that decide about the environment. */
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
 * Decides between the real APIs and the sandbox. Throws a SettingsError that names the missing variable where a pair
 * of address and key is half set and that is refused, and where live mode has no pair at all.
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
    ...(halfPairs === "told" && Object.keys(halves).length > 0 && { half: halves }),
  };
}

/** Why an API cannot be used as it is set. */
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

/** Given keys go to the sandbox only where it is on this machine: they may be real. */
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

/** An address with its key, or why they cannot be used; neither where neither is set. */
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

/** The variable of a proxy that leads to an address, and cannot be used: a request must not go another way instead. */
function brokenProxy(url: string, { none }: Proxies, unusable: UnusableSettings): string | undefined {
  const { variable } = url.startsWith("https:") ? SETTINGS.httpsProxy : SETTINGS.httpProxy;
  return unusable.has(variable) && proxyFor(url, { https: variable, http: variable, none }) !== undefined
    ? variable
    : undefined;
}

/** Proxies by the scheme of an address, and the hosts that need none, as in NO_PROXY. */
export interface Proxies {
  readonly https?: string | undefined;
  readonly http?: string | undefined;
  readonly none?: string | undefined;
}

/**
 * The address of the proxy on the way to `url`; undefined for a direct way. Addresses of this machine never go through
 * a proxy, for which they would mean its own machine.
 */
export function proxyFor(url: string, proxies: Proxies): string | undefined {
  const proxy = url.startsWith("https:") ? proxies.https : proxies.http;
  return proxy === undefined || isLoopback(url) || needsNoProxy(url, proxies.none ?? "") ? undefined : proxy;
}

/**
 * Whether NO_PROXY names the host of an address: a comma list of hosts, each with all of its subdomains and perhaps a
 * port, or `*` for all hosts.
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

/** A host in lower case, an IPv6 address without its brackets. */
function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}
