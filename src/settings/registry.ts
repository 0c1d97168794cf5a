import {
  address,
  commaList,
  databaseAddress,
  type Form,
  folders,
  headerKey,
  issuer,
  oneOf,
  path,
  proxyAddress,
  sealKey,
  secureAddress,
  seed,
  someOf,
  text,
  toggle,
  wholeNumber,
} from "./forms.ts";

/** One setting: where it is read from, how, and what it means. Flags, docs and manifest are made from this. */
export interface Setting<Value, Fallback = Value | undefined> {
  readonly variable: string;
  /** Without the leading dashes; absent for keys and for variables that are not ours. */
  readonly flag?: string;
  /** The lower-case name of the variable is read too, as other programs do. */
  readonly anyCase?: true;
  /** Never shown, and replaced wherever it would appear. */
  readonly secret: boolean;
  readonly form: Form<Value>;
  /** The value where it is set nowhere. */
  readonly fallback: Fallback;
  /** The fallback in words. */
  readonly otherwise: string;
  readonly meaning: string;
}

export const OWN_PREFIX = "TARGETING_MCP_";

function setting<Value, Fallback extends Value | undefined>(
  variable: string,
  form: Form<Value>,
  fallback: Fallback,
  meaning: string,
  otherwise = fallback === undefined ? "none" : String(fallback),
): Setting<Value, Fallback> {
  const flag = variable.replace(OWN_PREFIX, "").toLowerCase().replaceAll("_", "-");
  return { variable, flag, secret: false, form, fallback, otherwise, meaning };
}

function key(variable: string, meaning: string, form = headerKey, otherwise = "none"): Setting<string, undefined> {
  return { variable, secret: true, form, fallback: undefined, otherwise, meaning };
}

/** A variable that other programs read too: without a flag. */
function shared(variable: string, form: Form<string>, meaning: string, secret: boolean): Setting<string, undefined> {
  return { variable, anyCase: true, secret, form, fallback: undefined, otherwise: "none", meaning };
}

/** Every setting of every command. */
export const SETTINGS = {
  targetingApiUrl: setting("TARGETING_API_URL", address, undefined, "base address of the management API"),
  targetingApiKey: key("TARGETING_API_KEY", "`x-api-key` of the management API"),
  eventApiUrl: setting("EVENT_API_URL", address, undefined, "base address of the event API"),
  eventAppKey: key("EVENT_APP_KEY", "`Authorization` of the event API"),
  mode: setting(
    "TARGETING_MCP_MODE",
    oneOf("auto", "live", "sandbox"),
    "auto",
    "live: the real APIs, or no start; sandbox: the embedded sandbox, real addresses are never contacted; " +
      "auto: sandbox only when neither API is set",
  ),
  sandboxPort: setting(
    "TARGETING_MCP_SANDBOX_PORT",
    wholeNumber(0, 65_535),
    0,
    "port of the embedded sandbox",
    "a free port",
  ),
  sandboxUrl: setting("TARGETING_MCP_SANDBOX_URL", address, undefined, "address of a running sandbox to use"),
  sandboxSeed: setting(
    "TARGETING_MCP_SANDBOX_SEED",
    seed,
    undefined,
    "what the embedded sandbox holds at its start: nothing, a small shop, or a file of the control plane's seeds",
    "`sample` where the sandbox was chosen because nothing is set, else `none`",
  ),
  project: setting(
    "TARGETING_MCP_PROJECT",
    text,
    undefined,
    "name of the project behind the key, for the lock and the memory of names",
    "made from address and key",
  ),
  toolsets: setting(
    "TARGETING_MCP_TOOLSETS",
    someOf("targeting", "events"),
    ["targeting", "events"] as const,
    "which tools are listed",
  ),
  readOnly: setting("TARGETING_MCP_READ_ONLY", toggle, false, "no tool that changes an API is listed", "off"),
  confirm: setting(
    "TARGETING_MCP_CONFIRM",
    oneOf("ask", "strict", "off"),
    "ask",
    "before a deletion: ask; strict refuses clients that cannot be asked; off asks nobody",
  ),
  page: setting(
    "TARGETING_MCP_PAGE",
    oneOf("auto", "on", "off"),
    "auto",
    "a page where a person sees runs and decides on those that wait: auto opens it where a browser can be reached; " +
      "on tries anyway; off never",
  ),
  trustViews: setting("TARGETING_MCP_TRUST_VIEWS", toggle, false, "strict: a yes in a view of the host counts", "off"),
  allowedTargetings: setting(
    "TARGETING_MCP_ALLOWED_TARGETINGS",
    commaList,
    undefined,
    "IDs of the only targetings that may change",
    "all",
  ),
  maxDeletes: setting(
    "TARGETING_MCP_MAX_DELETES",
    wholeNumber(0, 1_000_000),
    500,
    "most deletions of one call, and of one plan",
  ),
  maxChangePercent: setting(
    "TARGETING_MCP_MAX_CHANGE_PERCENT",
    wholeNumber(0, 100),
    30,
    "percent of a targeting's options that one plan may change, and that it may delete, from 10 options up",
  ),
  allowedDirs: setting("TARGETING_MCP_ALLOWED_DIRS", folders, [], "folders that file and saveTo may use", "none"),
  stateDir: setting(
    "TARGETING_MCP_STATE_DIR",
    path,
    undefined,
    "folder where runs are kept",
    "the platform's state folder",
  ),
  routes: setting("TARGETING_MCP_ROUTES", path, undefined, 'JSON file of routes: {"operation": "METHOD /path"}'),
  requestTimeoutMs: setting(
    "TARGETING_MCP_REQUEST_TIMEOUT_MS",
    wholeNumber(1, 3_600_000),
    60_000,
    "milliseconds for one HTTP request to an API",
  ),
  retryBudgetMs: setting(
    "TARGETING_MCP_RETRY_BUDGET_MS",
    wholeNumber(0, 86_400_000),
    120_000,
    "milliseconds for which one request is retried",
  ),
  waitMs: setting(
    "TARGETING_MCP_WAIT_MS",
    wholeNumber(0, 3_600_000),
    45_000,
    "milliseconds until a call answers with what it has, while its run goes on",
  ),
  readConcurrency: setting(
    "TARGETING_MCP_READ_CONCURRENCY",
    wholeNumber(1, 256),
    16,
    "reads of one call at the same time; fewer for a while after a 429 or 5xx",
  ),
  keepDays: setting(
    "TARGETING_MCP_KEEP_DAYS",
    wholeNumber(1, 36_500),
    30,
    "days for which finished runs are kept; those that hold what was taken away go by this alone",
  ),
  keepRuns: setting(
    "TARGETING_MCP_KEEP_RUNS",
    wholeNumber(1, 1_000_000),
    500,
    "most finished runs kept of each caller",
  ),
  store: key(
    "TARGETING_MCP_STORE",
    "`postgres://` address of the database that keeps runs, locks, suites, names, audit and the seal key, for processes " +
      "on several machines",
    databaseAddress,
    "none: files in the state folder",
  ),
  storeListen: key(
    "TARGETING_MCP_STORE_LISTEN",
    "a direct address of the same database, where the first one leads through a pooler",
    databaseAddress,
    "that of the store",
  ),
  storeConnections: setting(
    "TARGETING_MCP_STORE_CONNECTIONS",
    wholeNumber(2, 1000),
    10,
    "most connections of a process to the store",
  ),
  drive: setting(
    "TARGETING_MCP_DRIVE",
    toggle,
    true,
    "over HTTP with a store: whether this process drives runs; off: a worker does",
    "on",
  ),
  parallelProjects: setting(
    "TARGETING_MCP_PARALLEL_PROJECTS",
    wholeNumber(1, 10_000),
    50,
    "with a store: most projects that one process writes to at a time",
  ),
  sessions: setting("TARGETING_MCP_SESSIONS", toggle, false, "over HTTP, sessions for 2025-era clients", "off"),
  sealKey: key(
    "TARGETING_MCP_SEAL_KEY",
    "seals confirmations and questions; replicas that share no state folder need the same one",
    sealKey,
    "made once, in the state folder",
  ),
  accessFile: setting(
    "TARGETING_MCP_ACCESS_FILE",
    path,
    undefined,
    "over HTTP: JSON file of bearer tokens, and of the projects they open",
  ),
  oauthIssuer: setting(
    "TARGETING_MCP_OAUTH_ISSUER",
    issuer,
    undefined,
    "over HTTP: the authorization server whose access tokens (JWTs) are accepted",
  ),
  oauthAudience: setting(
    "TARGETING_MCP_OAUTH_AUDIENCE",
    text,
    undefined,
    "what the `aud` of an access token must hold",
    "TARGETING_MCP_PUBLIC_URL",
  ),
  oauthJwksUrl: setting(
    "TARGETING_MCP_OAUTH_JWKS_URL",
    secureAddress,
    undefined,
    "where the issuer's public keys are",
    "as the issuer's metadata says",
  ),
  oauthProjectClaim: setting(
    "TARGETING_MCP_OAUTH_PROJECT_CLAIM",
    text,
    undefined,
    "claim of an access token that names a project of the access file",
    "none: the configured keys are used",
  ),
  ownKeys: setting(
    "TARGETING_MCP_OWN_KEYS",
    toggle,
    false,
    "over HTTP: callers bring their own keys in `x-targeting-api-key` and `x-event-app-key`",
    "off",
  ),
  publicUrl: setting(
    "TARGETING_MCP_PUBLIC_URL",
    address,
    undefined,
    "over HTTP: the address of `/mcp` as clients see it",
    "the address it listens on",
  ),
  allowedHosts: setting(
    "TARGETING_MCP_ALLOWED_HOSTS",
    commaList,
    [],
    "over HTTP, and of the sandbox: host names that `Host` and `Origin` may carry, besides loopback, the bound address " +
      "and the public one",
    "none",
  ),
  maxConcurrency: setting(
    "TARGETING_MCP_MAX_CONCURRENCY",
    wholeNumber(1, 10_000),
    64,
    "over HTTP: most requests under way at once, one caller has at most half; more are answered 503",
  ),
  metrics: setting(
    "TARGETING_MCP_METRICS",
    toggle,
    false,
    "over HTTP: serves figures for Prometheus at `/metrics`, on this machine or with a token of the access file",
    "off",
  ),
  logLevel: setting(
    "TARGETING_MCP_LOG_LEVEL",
    oneOf("debug", "info", "warn", "error", "silent"),
    "info",
    "what is logged to stderr",
  ),
  httpsProxy: shared("HTTPS_PROXY", proxyAddress, "proxy for https addresses", true),
  httpProxy: shared("HTTP_PROXY", proxyAddress, "proxy for http addresses", true),
  noProxy: shared("NO_PROXY", text, "hosts that are reached without a proxy", false),
} as const satisfies Record<string, Setting<unknown>>;

/** Every setting, in the order of the docs. */
export const SETTING_LIST: readonly Setting<unknown>[] = Object.values(SETTINGS);
