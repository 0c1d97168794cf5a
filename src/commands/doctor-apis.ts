import { rateLimitWords, refusalWords, remedyOf, storedRequestDetails } from "../answers/request-messages.ts";
import {
  type AmbiguousError,
  BusyError,
  isApiError,
  NotSentError,
  problemOf,
  RATE_LIMITED,
  RejectedError,
} from "../api/errors.ts";
import type { EventApi } from "../api/events.ts";
import type { ManagementApi } from "../api/management.ts";
import { reasonOf } from "../http/issuer-reads.ts";
import type { Settings } from "../settings/settings.ts";
import type { Operation, RouteTable } from "../spec/routes.ts";
import { type Check, note, ok, problem } from "./doctor-machine.ts";

interface ProbeOptions {
  readonly routes: RouteTable;
  readonly readOnly: boolean;
  readonly isSandbox: boolean;
}

/** A request that shows whether an operation is available, but never changes anything. */
interface Probe {
  readonly operation: Operation;
  readonly scope: "read" | "write";
  readonly send: () => Promise<unknown>;
}

/** The result of a probe. `answered`: the operation exists, and the key may use it. */
interface ProbeOutcome {
  readonly probe: Probe;
  readonly kind: "answered" | "unauthorized" | "forbidden" | "wrongRoute" | "noProject" | "unreached" | "trouble";
  readonly words: string;
  readonly remedy?: string;
}

type Names = Readonly<Record<"about" | "address" | "key" | "whereKeysAre", string>>;

/** The names in messages about an API, and where people find its key (management-api 5, event-tracking-api 5). */
const MANAGEMENT: Names = {
  about: "management API",
  address: "TARGETING_API_URL",
  key: "TARGETING_API_KEY",
  whereKeysAre: "keys are made in the console under Settings > Integrations",
};
const EVENTS: Names = {
  about: "event API",
  address: "EVENT_API_URL",
  key: "EVENT_APP_KEY",
  whereKeysAre: "it is in the application's service configuration file",
};

function namesOf(names: Names, { isSandbox }: ProbeOptions): Names {
  if (!isSandbox) return names;
  return { ...names, address: "TARGETING_MCP_SANDBOX_URL", whereKeysAre: "one that this sandbox accepts, or none" };
}

/** A valid ULID from the year 1970. No service has an object with this ID. */
const NO_SUCH_ID = "00000000000000000000000000";

/** Checks the management API: reads an unknown ID and, unless read-only, sends empty writes (management-api 8.1). */
export async function checkManagement(api: ManagementApi, options: ProbeOptions): Promise<readonly Check[]> {
  const reads: readonly Probe[] = [
    { operation: "getTargeting", scope: "read", send: () => api.getTargeting(NO_SUCH_ID) },
    { operation: "listOptions", scope: "read", send: () => api.listOptions(NO_SUCH_ID, { limit: 1 }) },
    { operation: "getOption", scope: "read", send: () => api.getOption(NO_SUCH_ID, { limit: 1 }) },
  ];
  const nothing = { count: 0, json: Buffer.from("[]") };
  const writes = BULK_WRITES.map((operation): Probe => {
    return { operation, scope: "write", send: () => api.bulk(operation, nothing, { targetingId: NO_SUCH_ID }) };
  });
  const outcomes = await outcomesOf(options.readOnly ? reads : [...reads, ...writes]);
  return checksOf(outcomes, namesOf(MANAGEMENT, options), options, [
    scopeCheck(outcomes, "read"),
    options.readOnly ? notWritten(MANAGEMENT) : scopeCheck(outcomes, "write"),
  ]);
}

const BULK_WRITES = [
  "createTargetings",
  "renameTargetings",
  "deleteTargetings",
  "addOptions",
  "updateOptions",
  "deleteOptions",
] as const satisfies readonly Operation[];

/** Checks the event API, unless read-only, with an event without user and name, which the service never records. */
export async function checkEvents(api: EventApi, options: ProbeOptions): Promise<readonly Check[]> {
  if (options.readOnly) return [notWritten(EVENTS)];
  const probed = await outcomesOf([{ operation: "trackEvent", scope: "write", send: () => api.track("{}") }]);
  const outcomes = probed.map(
    (one): ProbeOutcome => (one.kind === "forbidden" ? { ...one, kind: "unauthorized" } : one),
  );
  return checksOf(outcomes, namesOf(EVENTS, options), options, []);
}

function notWritten({ about }: Names): Check {
  return note(about, "writing was not checked: TARGETING_MCP_READ_ONLY is on");
}

function checksOf(
  outcomes: readonly ProbeOutcome[],
  names: Names,
  { routes }: ProbeOptions,
  scopes: readonly Check[],
): readonly Check[] {
  const broken = unusable(outcomes, names);
  if (broken !== undefined) return [broken];
  const ofRoutes = outcomes.flatMap((outcome) => routeCheck(outcome, routes, names));
  return [ok(names.about, "reachable"), keyCheck(outcomes, names), ...scopes, ...ofRoutes];
}

/** Runs the probes in order, and stops when one shows that the API cannot be used. */
async function outcomesOf(probes: readonly Probe[]): Promise<readonly ProbeOutcome[]> {
  const outcomes: ProbeOutcome[] = [];
  for (const probe of probes) {
    const outcome = await outcomeOf(probe);
    outcomes.push(outcome);
    if (outcome.kind === "unreached" || outcome.kind === "unauthorized") break;
  }
  return outcomes;
}

async function outcomeOf(probe: Probe): Promise<ProbeOutcome> {
  try {
    await probe.send();
    return { probe, kind: "answered", words: "answers" };
  } catch (thrown) {
    if (!isApiError(thrown)) throw thrown;
    if (thrown instanceof BusyError) return { probe, ...busyMeans(thrown) };
    if (thrown instanceof RejectedError) return { probe, ...rejectionMeans(thrown) };
    const silent = thrown instanceof NotSentError || thrown.statusCode === undefined;
    const remedy = remedyOf(storedRequestDetails(problemOf(thrown)));
    return { probe, kind: silent ? "unreached" : "trouble", words: failureReason(thrown), remedy };
  }
}

function failureReason({ reason, statusCode }: NotSentError | AmbiguousError): string {
  const isSuccess = statusCode !== undefined && statusCode < 300;
  return isSuccess ? `answers with status ${statusCode}, and ${reason}` : reason;
}

/** A rate limit does not show whether the key is valid. A refusal because of another write does. */
function busyMeans({ statusCode, retryAfterMs }: BusyError): Omit<ProbeOutcome, "probe"> {
  return statusCode === RATE_LIMITED
    ? {
        kind: "trouble",
        words: rateLimitWords({ retryAfterMs }),
        remedy: "Wait as long as the service asks, then run doctor again.",
      }
    : { kind: "answered", words: "answers: another write is in progress" };
}

function rejectionMeans(error: RejectedError): Omit<ProbeOutcome, "probe"> {
  const { kind, statusCode, errorCode, route } = error;
  if (kind === "redirect" || kind === "foreign") {
    const words = refusalWords(kind, storedRequestDetails(problemOf(error)));
    if (words !== undefined) return { kind: "unreached", words: words.message, remedy: words.remedy };
  }
  const said = errorCode === undefined ? String(statusCode) : `${statusCode} ${errorCode}`;
  if (kind === "unauthorized" || kind === "forbidden") return { kind, words: said };
  if (kind === "wrongRoute")
    return { kind, words: `${route} does not exist at this address: ${said} without a documented error code` };
  if (errorCode === "PROJECT_NOT_FOUND") return { kind: "noProject", words: said };
  if (kind === "business" || kind === "validation")
    return { kind: "answered", words: `answers: ${said}, as it should` };
  return { kind: "trouble", words: `${route} answers with ${said}` };
}

function unusable(outcomes: readonly ProbeOutcome[], { about, address, key, whereKeysAre }: Names): Check | undefined {
  const outcomeOf = (kind: ProbeOutcome["kind"]) => outcomes.find((outcome) => outcome.kind === kind);
  const unreached = outcomeOf("unreached");
  if (unreached !== undefined) return problem(about, `not reached: ${unreached.words}`, unreached.remedy);
  const unauthorized = outcomeOf("unauthorized");
  if (unauthorized !== undefined) {
    const found = `reachable, but the key is not accepted (${unauthorized.words})`;
    return problem(about, found, `Set ${key} to a valid key: ${whereKeysAre}.`);
  }
  if (outcomes.every(({ kind }) => kind === "wrongRoute")) {
    const remedy = `Check ${address}: a part of the path may be missing, or it may be the address of another service.`;
    return problem(about, "reachable, but it has none of the API's paths (404, 405)", remedy);
  }
  if (outcomeOf("noProject") === undefined) return undefined;
  return problem(about, "the project of the key no longer exists", `Set ${key} to a key of another project.`);
}

/** Checks whether the service accepts the key. A 403 proves it, too: the known key only lacks a scope. */
function keyCheck(outcomes: readonly ProbeOutcome[], { about, key }: Names): Check {
  const proven = outcomes.some(({ kind }) => kind === "answered" || kind === "forbidden");
  return proven
    ? ok(about, "the key is accepted")
    : note(about, `not known whether ${key} is accepted: no response showed it`);
}

function scopeCheck(outcomes: readonly ProbeOutcome[], scope: Probe["scope"]): Check {
  const { about, key } = MANAGEMENT;
  const name = `context-targeting:${scope}`;
  const kinds = outcomes.filter(({ probe }) => probe.scope === scope).map(({ kind }) => kind);
  if (kinds.includes("forbidden")) {
    const otherwise = scope === "write" ? ", or set TARGETING_MCP_READ_ONLY=on" : "";
    const remedy = `Make a new key with this scope for ${key} (a scope cannot be added to an existing key)${otherwise}.`;
    return problem(about, `the key lacks the scope ${name} (403)`, remedy);
  }
  if (kinds.includes("answered")) return ok(about, `the key has the scope ${name}`);
  return note(about, `not known whether the key has the scope ${name}: no response showed it`);
}

function routeCheck(
  { probe, kind, words, remedy: known }: ProbeOutcome,
  routes: RouteTable,
  names: Names,
): readonly Check[] {
  const { operation } = probe;
  const { method, path, basis } = routes[operation];
  const about = `${names.about}, ${operation}`;
  if (kind === "forbidden") return [];
  if (kind === "answered") return [ok(about, words)];
  const isAssumed = kind === "wrongRoute" && basis !== "documented";
  const example = JSON.stringify({ [operation]: `${method} /right${path}` });
  const remedy = isAssumed
    ? `This path is assumed, not documented. Write the right one in a JSON file, such as ${example}, and set ` +
      "TARGETING_MCP_ROUTES to its path."
    : (known ?? `Check ${names.address}: it may be the address of another service, or the service may be failing now.`);
  return [problem(about, words, remedy)];
}

const ABOUT = "authorization server";
const REMEDY =
  "Check TARGETING_MCP_OAUTH_ISSUER, TARGETING_MCP_OAUTH_JWKS_URL, the network, and HTTPS_PROXY, HTTP_PROXY and NO_PROXY.";

/** Checks what the HTTP server needs of the authorization server: its keys, and endpoints for logins. */
export async function checkIssuer(
  oauth: NonNullable<Settings["http"]["oauth"]>,
  proxies: Settings["proxies"],
): Promise<readonly Check[]> {
  const { issuer, clientId } = oauth;
  // Loaded only where an issuer is set, which is rare.
  const { noneUsable, publishedKeys } = await import("../http/issuer-keys.ts");
  const { readLoginMetadata } = await import("../http/issuer-metadata.ts");
  const keys = orProblem("its keys cannot be read", async () => {
    const { usable, count } = await publishedKeys({ ...oauth, proxies });
    if (usable.length === 0) throw new Error(noneUsable(count));
    return `${usable.length} of ${count} published keys can be used`;
  });
  const login = orProblem("people cannot log in at the authorization server", async () => {
    await readLoginMetadata(issuer, proxies);
    return "people can log in there";
  });
  return Promise.all(clientId === undefined ? [keys] : [keys, login]);
}

async function orProblem(what: string, look: () => Promise<string>): Promise<Check> {
  try {
    return ok(ABOUT, await look());
  } catch (thrown) {
    return problem(ABOUT, `${what}: ${reasonOf(thrown)}`, REMEDY);
  }
}
