import { SettingsError } from "./error.ts";
import { isLoopback } from "./proxy.ts";

/** Where an API is, and the key that opens it. */
export interface Endpoint {
  readonly url: string;
  readonly key: string;
}

/** The real APIs. An absent one is not configured: its tools are not listed. */
export interface LiveEnvironment {
  readonly kind: "live";
  readonly management?: Endpoint;
  readonly events?: Endpoint;
}

/** The emulated APIs: a running sandbox at `url`, or one of our own on `port` (0: any free one). */
export interface SandboxEnvironment {
  readonly kind: "sandbox";
  readonly url?: string;
  readonly port: number;
  readonly managementKey: string;
  readonly eventKey: string;
}

/** What the server talks to. */
export type Environment = LiveEnvironment | SandboxEnvironment;

/** What decides about the environment. */
export interface EnvironmentSettings {
  readonly targetingApiUrl: string | undefined;
  readonly targetingApiKey: string | undefined;
  readonly eventApiUrl: string | undefined;
  readonly eventAppKey: string | undefined;
  readonly mode: "auto" | "live" | "sandbox";
  readonly sandboxUrl: string | undefined;
  readonly sandboxPort: number;
}

/** Keys that every sandbox accepts. */
const SANDBOX_KEYS = { management: "sandbox-key", events: "sandbox-app-key" } as const;

/**
 * Decides between the real APIs and the sandbox. Throws a SettingsError that names the missing variable where a pair
 * of address and key is half set, and where live mode has no pair at all. Where callers bring keys, an address without
 * a key is no error: that API is just not configured for whoever brings none.
 */
export function resolveEnvironment(settings: EnvironmentSettings, callersBringKeys = false): Environment {
  const { targetingApiUrl, targetingApiKey, eventApiUrl, eventAppKey } = settings;
  const nothingSet = [targetingApiUrl, targetingApiKey, eventApiUrl, eventAppKey].every((one) => one === undefined);
  if (settings.mode === "sandbox" || (settings.mode === "auto" && nothingSet)) return sandboxOf(settings);
  const pair = (url: Named, key: Named) => (callersBringKeys && key[1] === undefined ? undefined : pairOf(url, key));
  const management = pair(["TARGETING_API_URL", targetingApiUrl], ["TARGETING_API_KEY", targetingApiKey]);
  const events = pair(["EVENT_API_URL", eventApiUrl], ["EVENT_APP_KEY", eventAppKey]);
  const hasAddress = targetingApiUrl !== undefined || eventApiUrl !== undefined;
  if (management === undefined && events === undefined && !(callersBringKeys && hasAddress)) {
    throw new SettingsError(
      "live mode (TARGETING_MCP_MODE, --mode) needs TARGETING_API_URL with TARGETING_API_KEY, " +
        "or EVENT_API_URL with EVENT_APP_KEY; neither pair is set",
      "TARGETING_MCP_MODE",
    );
  }
  return { kind: "live", ...(management && { management }), ...(events && { events }) };
}

/** Given keys go to the sandbox only where it is on this machine: they may be real. */
function sandboxOf(settings: EnvironmentSettings): SandboxEnvironment {
  const { sandboxUrl } = settings;
  const near = sandboxUrl === undefined || isLoopback(sandboxUrl);
  return {
    kind: "sandbox",
    ...(sandboxUrl !== undefined && { url: sandboxUrl }),
    port: settings.sandboxPort,
    managementKey: (near ? settings.targetingApiKey : undefined) ?? SANDBOX_KEYS.management,
    eventKey: (near ? settings.eventAppKey : undefined) ?? SANDBOX_KEYS.events,
  };
}

type Named = readonly [variable: string, value: string | undefined];

function pairOf([urlVariable, url]: Named, [keyVariable, key]: Named): Endpoint | undefined {
  if (url === undefined && key === undefined) return undefined;
  if (url !== undefined && key !== undefined) return { url, key };
  const [missing, present] = url === undefined ? [urlVariable, keyVariable] : [keyVariable, urlVariable];
  throw new SettingsError(
    `${missing} is missing: ${present} is set, and each is of use only with the other. Set ${missing}, or unset ${present}`,
    missing,
  );
}
