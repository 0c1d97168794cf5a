import { dirname, isAbsolute } from "node:path";
import * as z from "zod";
import {
  type ApiError,
  ListError,
  type ListProblem,
  type NetworkCause,
  problemOf,
  RATE_LIMITED,
} from "../api/errors.ts";
import { thousands } from "../platform/text.ts";
import { fenced, plain, quoteUntrusted } from "./fence.ts";
import type { Message } from "./message-words.ts";

export interface Failure {
  readonly message: string;
  readonly remedy?: string | undefined;
}

const requestProblem = z.object({
  effect: z.enum(["notSent", "rejected", "busy", "ambiguous"]),
  operation: z.string().optional(),
  reason: z.string().optional(),
  network: z.string().optional(),
  statusCode: z.number().optional(),
  kind: z.string().optional(),
  route: z.string().optional(),
  errorCode: z.string().optional(),
  messages: z.array(z.string()).optional(),
  setBy: z.string().optional(),
  retryAfterMs: z.number().optional(),
});
type Problem = z.infer<typeof requestProblem>;
type Known = { readonly [Field in keyof Problem]?: Problem[Field] | undefined };

const unexpected = z.object({ error: z.string() });
const fileProblem = z.object({ effect: z.literal("file"), message: z.string(), remedy: z.string() });

/** Returns why a run could not be planned. `detail`: the stored fields of an ApiError or a FileError, or `error`. */
export function planningFailure(detail: Readonly<Record<string, unknown>>): Failure {
  const file = fileProblem.safeParse(detail).data;
  if (file !== undefined) return { message: plain(file.message), remedy: plain(file.remedy) };
  const stored = requestProblem.safeParse(detail).data;
  if (stored !== undefined) return problemWords(stored);
  const { error } = unexpected.safeParse(detail).data ?? {};
  const message = error === undefined ? "the reason is not known" : `an unexpected error, ${quoteUntrusted(error)}`;
  return { message, remedy: "Look for the reason in the log of the server (stderr)." };
}

export function requestFailure(error: ApiError): Failure {
  if (error instanceof ListError) return LIST_FAILURES[error.problem];
  return planningFailure(problemOf(error));
}

/** Parses the details of a request as a run has stored them. If they are invalid, returns none. */
export function storedRequestDetails(detail: Readonly<Record<string, unknown>>, statusCode?: number): Known {
  const known = requestProblem.partial().safeParse(detail).data ?? {};
  return { ...known, ...(statusCode !== undefined && { statusCode }) };
}

function problemWords(problem: Problem): Failure {
  switch (problem.effect) {
    case "rejected":
      return rejectionWords(problem);
    case "busy":
      return problem.statusCode === RATE_LIMITED
        ? { message: rateLimitWords(problem), remedy: "Wait as long as the service asks, then try again." }
        : { message: "the service stayed busy until the last retry", remedy: "Try again in a minute." };
    case "notSent":
      return { message: `the service could not be reached: ${problem.reason}`, remedy: remedyOf(problem) };
    case "ambiguous": {
      const { messages: [title] = [], reason } = problem;
      const page = title === undefined ? "" : `; it says ${quoteUntrusted(title)}`;
      return { message: `the service gave no usable answer: ${reason}${page}`, remedy: remedyOf(problem) };
    }
  }
}

export function remedyOf(problem: Known): string {
  const { network = "lost" } = problem;
  return (isCause(network) ? REMEDIES[network] : REMEDIES.lost)(endpointOf(problem));
}

export function rateLimitWords({ retryAfterMs = 0 }: Known): string {
  const seconds = Math.ceil(retryAfterMs / 1000);
  const time = seconds < 120 ? `${seconds} s` : `${thousands(Math.ceil(seconds / 60))} min`;
  const wait = seconds > 0 ? `, and asks to wait ${time}` : "";
  return `the service limits the rate of requests (429)${wait}`;
}

function endpointOf({ operation, setBy }: Known): Endpoint {
  const isEvent = operation === "trackEvent" || setBy === "EVENT_API_URL";
  return { address: setBy ?? "the address in the settings", key: isEvent ? "EVENT_APP_KEY" : "TARGETING_API_KEY" };
}

const LIST_FAILURES: Readonly<Record<ListProblem, Failure>> = {
  repeats: {
    message:
      "the service gives the same page of a list again, as if it ignored offset: the list cannot be read to its end",
    remedy:
      "Check the routes of listOptions and getOption (TARGETING_MCP_ROUTES) and any proxy between this server and " +
      "the service. Until then give _id instead of names, and read lists of more than one page in the web console.",
  },
  shifts: {
    message: "the list could not be read completely, because other writers changed it during every attempt",
    remedy: "Try again when the other writes are over, or give _id instead of names.",
  },
};

const REJECTIONS: Readonly<Record<string, Failure>> = {
  TARGETING_NOT_FOUND: {
    message: "the project of the API key has no context targeting with this ID",
    remedy: "Check the ID. This key cannot reach audience targetings or the targetings of other projects.",
  },
  TARGETING_CATEGORY_NOT_FOUND: {
    message: "no option with this ID exists, or the option is in another targeting",
    remedy: "Check the ID; list_options shows the options that exist.",
  },
  TARGETING_CATEGORY_NOT_SUPPORTED: {
    message: "the request does not fit the type of the option",
    remedy: "Give an option group as parent: only an option group (type collection) has sub-options.",
  },
  PROJECT_NOT_FOUND: {
    message: "the project of the key no longer exists",
    remedy: "Set TARGETING_API_KEY to a key of an existing project.",
  },
};

/** The messages for rejections that every request would get (wrong key, address or network), by kind. */
const REFUSALS: Readonly<Record<string, (problem: Known, endpoint: Endpoint) => Message>> = {
  unauthorized: (_problem, { key }) => ({
    message: "the service does not accept the key",
    remedy: `The key is missing, invalid or revoked: set ${key} to a valid one.`,
  }),
  forbidden: ({ operation }, { key }) => ({
    message:
      operation === "trackEvent"
        ? "the key is not allowed to send events"
        : `the key lacks the scope context-targeting:${/^(get|list)/.test(operation ?? "") ? "read" : "write"}`,
    remedy:
      operation === "trackEvent"
        ? `Set ${key} to the key in the application's service configuration file.`
        : "Scopes cannot be added to a key: create a new one in the console under Settings > Integrations, and set it as " +
          `${key}.`,
  }),
  wrongRoute: ({ route, statusCode }, { address }) => ({
    message: `the service does not know the route ${quoted(route)} (status ${statusCode ?? "unknown"})`,
    remedy: `Check ${address}, or set the right route in the file that TARGETING_MCP_ROUTES names.`,
  }),
  redirect: ({ route, statusCode, messages: [location] = [] }, { address }) => ({
    message:
      `the address answers ${quoted(route)} with a redirect${statusCode === undefined ? "" : ` (status ${statusCode})`}` +
      `${location === undefined ? "" : ` to ${quoteUntrusted(location)}`}, and redirects are not followed`,
    remedy: `Set ${address} to the final address.`,
  }),
  foreign: ({ statusCode, messages: [title] = [] }, { address }) => ({
    message:
      `status ${statusCode ?? "unknown"} came from something between this server and the service (a firewall, a gateway, ` +
      `a proxy): the API's own answers look different${title === undefined ? "" : `; it says ${quoteUntrusted(title)}`}`,
    remedy: `Check ${address}, and have the firewall, gateway or proxy let these requests through. The key itself may be valid.`,
  }),
};

function quoted(route: string | undefined): string {
  return route === undefined ? "a request" : quoteUntrusted(route);
}

/** Returns the message for a rejection that every request would get. Undefined for rejections of a single request. */
export function refusalWords(kind: string, problem: Known): Message | undefined {
  return Object.hasOwn(REFUSALS, kind) ? REFUSALS[kind]?.(problem, endpointOf(problem)) : undefined;
}

function rejectionWords(problem: Problem): Failure {
  const { kind = "other", errorCode, statusCode, messages = [] } = problem;
  const code = errorCode ?? kind;
  const known = Object.hasOwn(REJECTIONS, code) ? REJECTIONS[code] : refusalWords(kind, problem);
  if (known !== undefined) return known;
  const said =
    messages.length === 0 ? undefined : `The service said:\n${fenced(messages.slice(0, 5).map(quoteUntrusted))}`;
  const named = errorCode === undefined ? "" : ` ${quoteUntrusted(errorCode)}`;
  return { message: `the service refused the request (status ${statusCode}${named})`, remedy: said };
}

interface Endpoint {
  /** The setting that contains the address, or other words for the address. */
  readonly address: string;
  readonly key: string;
}

/** What to do if the service did not answer a request, by cause. */
const REMEDIES: Readonly<Record<NetworkCause, (endpoint: Endpoint) => string>> = {
  name: ({ address }) =>
    `Check the host in ${address} for typing errors, and that this machine can look it up (DNS, VPN). ` +
    "If only a proxy can look it up, set HTTPS_PROXY.",
  refused: ({ address }) => `No program listens at this address. Check the host and the port in ${address}.`,
  unreachable: ({ address }) =>
    `Check ${address}, and the network, VPN and firewall of this machine. If this machine needs a proxy to reach the service, set HTTPS_PROXY.`,
  untrusted: () =>
    "Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of that authority, in the environment of this server.",
  wrongHost: ({ address }) => `Set ${address} to a host name that the certificate contains.`,
  expired: () => "Check the clock of this machine. If it is right, the service needs another certificate.",
  noTls: ({ address }) => `Check the scheme and the port in ${address}: https:// needs a port that speaks TLS.`,
  tls: ({ address }) => `Check ${address}, and any proxy that opens secure connections for this machine.`,
  lost: ({ address }) => `Try again later. If it keeps failing, check the network and ${address}.`,
  notHttp: ({ address }) => `Check the port in ${address}: something else answers there.`,
  tooLarge: ({ address }) => `Check ${address}: no answer of the API is that large.`,
  encoding: () =>
    "Check the gateway or proxy between this server and the service: only gzip, deflate and br can be read.",
  request: ({ key }) => `Check ${key}, and the routes in the file that TARGETING_MCP_ROUTES names.`,
  notTheService: ({ address }) =>
    `Check ${address}. A log-in page of the network, a firewall or a proxy may have answered instead of the service.`,
  sandboxPort: () => "Set TARGETING_MCP_SANDBOX_PORT to a free port, or leave it out.",
  proxyUnreachable: () =>
    "Check the address in HTTPS_PROXY (HTTP_PROXY for http:// addresses); hosts in NO_PROXY are reached without it.",
  proxyCredentials: () =>
    "Put the user and the password into HTTPS_PROXY (HTTP_PROXY for http:// addresses): http://user:password@proxy:3128.",
  proxyRefused: ({ address }) =>
    `Have the proxy let the host in ${address} through, or add the host to NO_PROXY if no proxy is needed.`,
};

function isCause(cause: string): cause is NetworkCause {
  return Object.hasOwn(REMEDIES, cause);
}

/** Known hosts, by the name that each reports: its name in `targeting-mcp setup`, and its title for people. */
const HOSTS: Readonly<Record<string, readonly [word: string, title: string]>> = {
  "claude-ai": ["claude-desktop", "Claude Desktop"],
  "claude-code": ["claude-code", "Claude Code"],
  "Visual Studio Code": ["vscode", "VS Code"],
  "cursor-vscode": ["cursor", "Cursor"],
  "codex-mcp-client": ["codex", "Codex"],
  "gemini-cli-mcp-client": ["gemini", "Gemini CLI"],
};

interface FolderRequest {
  /** The name that the client reports. Undefined over HTTP, where the allowed folders depend on the caller's token. */
  readonly client: string | undefined;
  readonly path: string;
  readonly allowedDirs: readonly string[];
  readonly isForSaving: boolean;
}

export function allowFolderRemedy(
  { client, path, allowedDirs, isForSaving }: FolderRequest,
  delimiter: string,
): string {
  const otherwise = isForSaving ? "Or leave saveTo out." : "Or give the data in the call.";
  if (client === undefined) {
    return `Over HTTP, \`folders\` in the token's entry of TARGETING_MCP_ACCESS_FILE lists the allowed folders. ${otherwise}`;
  }
  const folder = isAbsolute(path) ? dirname(path) : "FOLDER";
  const folders = [...allowedDirs, folder].join(delimiter);
  const host = Object.hasOwn(HOSTS, client) ? HOSTS[client] : undefined;
  if (host === undefined) {
    return `To allow the folder, a person sets TARGETING_MCP_ALLOWED_DIRS=${folders} in this server's entry in the host's configuration. ${otherwise}`;
  }
  const [word, title] = host;
  const field = word === "claude-desktop" ? " (of the extension: Settings, Extensions, Allowed folders)" : "";
  return `To allow the folder, a person runs: targeting-mcp setup ${word} --allowed-dirs="${folders}"${field}, and restarts ${title}. ${otherwise}`;
}
