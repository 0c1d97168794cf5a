import * as z from "zod";
import { type ApiError, ListError, type ListProblem, problemOf, RATE_LIMITED } from "../../api/errors.ts";
import { thousands } from "../../platform/text.ts";
import { fenced, plain, shown } from "../fence.ts";
import type { Message } from "../message.ts";
import { networkRemedy, type Way } from "./network.ts";

/** What went wrong, in our own words, and what to do about it. */
export interface Failure {
  readonly message: string;
  readonly remedy?: string | undefined;
}

/** What a failed request says about itself, as `problemOf` gives it and runs keep it. */
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
/** What a sentence about a request needs; of what a run kept any part may be missing. */
type Known = { readonly [Field in keyof Problem]?: Problem[Field] | undefined };

const fileProblem = z.object({ effect: z.literal("file"), message: z.string(), remedy: z.string() });

/** Why a run could not be planned, in words: what its journal kept of an ApiError or a FileError. */
export function planningFailure(detail: Readonly<Record<string, unknown>>): Failure {
  const file = fileProblem.safeParse(detail).data;
  if (file !== undefined) return { message: plain(file.message), remedy: plain(file.remedy) };
  const kept = requestProblem.safeParse(detail).data;
  return kept === undefined ? { message: "the reason is not known" } : problemWords(kept);
}

/** A request that failed outside of any run: a read for an answer, or for a plan. */
export function requestFailure(error: ApiError): Failure {
  if (error instanceof ListError) return LISTS[error.problem];
  return planningFailure(problemOf(error));
}

/** What a run kept of a request, as far as it can be read. */
export function knownOf(detail: Readonly<Record<string, unknown>>, statusCode?: number): Known {
  const known = requestProblem.partial().safeParse(detail).data ?? {};
  return { ...known, ...(statusCode !== undefined && { statusCode }) };
}

function problemWords(problem: Problem): Failure {
  switch (problem.effect) {
    case "rejected":
      return rejectionWords(problem);
    case "busy":
      return problem.statusCode === RATE_LIMITED
        ? { message: rateLimitWords(problem), remedy: "Try again then." }
        : { message: "the service was busy until the retries ended", remedy: "Try again in a minute." };
    case "notSent":
      return { message: `the service could not be reached: ${problem.reason}`, remedy: remedyOf(problem) };
    case "ambiguous": {
      const { messages: [title] = [], reason } = problem;
      const page = title === undefined ? "" : `; it says ${shown(title)}`;
      return { message: `the service gave no usable answer: ${reason}${page}`, remedy: remedyOf(problem) };
    }
  }
}

/** What to do about a request that was not sent, or not answered. */
export function remedyOf(problem: Known): string {
  return networkRemedy(problem.network, wayOf(problem));
}

/** That the service limits requests, and how long it asks to wait. */
export function rateLimitWords({ retryAfterMs = 0 }: Known): string {
  const wait = retryAfterMs > 0 ? `, and asks to wait ${secondsWords(retryAfterMs)}` : "";
  return `the service limits the rate of requests (429)${wait}`;
}

/** Milliseconds as whole seconds, or minutes where they are many. */
function secondsWords(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return `${thousands(Math.ceil(seconds / 60))} min`;
}

/** Which settings lead to the API that a request was for. */
function wayOf({ operation, setBy }: Known): Way {
  const isEvent = operation === "trackEvent" || setBy === "EVENT_API_URL";
  return { address: setBy ?? "the address in the settings", key: isEvent ? "EVENT_APP_KEY" : "TARGETING_API_KEY" };
}

const LISTS: Readonly<Record<ListProblem, Failure>> = {
  repeats: {
    message:
      "the service gives the same page of a list again, as if it ignored offset: the list cannot be read to its end",
    remedy:
      "Check the routes of listOptions and getOption (TARGETING_MCP_ROUTES) and whatever stands between this server and " +
      "the service. Until then give _id instead of names, and read lists of more than one page in the web console.",
  },
  shifts: {
    message: "the list changed each time that it was read, since others change it: what is in it cannot be told",
    remedy: "Try again when the other writes are over, or give _id instead of names.",
  },
};

const REJECTIONS: Readonly<Record<string, Failure>> = {
  TARGETING_NOT_FOUND: {
    message: "there is no such context targeting in the project of the key",
    remedy: "Check the ID. Audience targetings, and those of other projects, cannot be reached.",
  },
  TARGETING_CATEGORY_NOT_FOUND: {
    message: "there is no such option in a context targeting of the project, or not in this targeting",
    remedy: "Check the ID; list_options shows the options that exist.",
  },
  TARGETING_CATEGORY_NOT_SUPPORTED: {
    message: "the request does not fit the type of the option",
    remedy: "As parent only an option group is allowed: an option of type collection.",
  },
  PROJECT_NOT_FOUND: {
    message: "the project of the key no longer exists",
    remedy: "Set TARGETING_API_KEY to a key of an existing project.",
  },
};

/**
 * Refusals that every further request would get, in reads, writes, events and `doctor` alike: of the key, of the
 * address, and by something on the way.
 */
const REFUSALS: Readonly<Record<string, (problem: Known, way: Way) => Message>> = {
  unauthorized: (_problem, { key }) => ({
    message: "the service does not accept the key",
    remedy: `The key is missing, invalid or revoked: set ${key} to a valid one.`,
  }),
  forbidden: ({ operation }, { key }) => ({
    message: operation === "trackEvent" ? "the key may not do this" : `the key lacks the scope ${scopeOf(operation)}`,
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
      `${location === undefined ? "" : ` to ${shown(location)}`}, and redirects are not followed`,
    remedy: `Set ${address} to the final address.`,
  }),
  foreign: ({ statusCode, messages: [title] = [] }, { address }) => ({
    message:
      `status ${statusCode ?? "unknown"} came from something between this server and the service (a firewall, a gateway, ` +
      `a proxy), since its body is not of the API's form${title === undefined ? "" : `; it says ${shown(title)}`}`,
    remedy: `Check ${address}, and have the firewall, gateway or proxy let these requests through. The key may be right.`,
  }),
};

function scopeOf(operation: string | undefined): string {
  return `context-targeting:${operation !== undefined && /^(get|list)/.test(operation) ? "read" : "write"}`;
}

function quoted(route: string | undefined): string {
  return route === undefined ? "a request" : shown(route);
}

/** What a refusal means that every further request would get, by its kind; undefined for any other. */
export function refusalWords(kind: string, problem: Known): Message | undefined {
  return Object.hasOwn(REFUSALS, kind) ? REFUSALS[kind]?.(problem, wayOf(problem)) : undefined;
}

function rejectionWords(problem: Problem): Failure {
  const { kind = "other", errorCode, statusCode, messages = [] } = problem;
  const code = errorCode ?? kind;
  const known = Object.hasOwn(REJECTIONS, code) ? REJECTIONS[code] : refusalWords(kind, problem);
  if (known !== undefined) return known;
  const said = messages.length === 0 ? undefined : `The service said:\n${fenced(messages.slice(0, 5).map(shown))}`;
  const named = errorCode === undefined ? "" : ` ${shown(errorCode)}`;
  return { message: `the service refused the request (status ${statusCode}${named})`, remedy: said };
}
