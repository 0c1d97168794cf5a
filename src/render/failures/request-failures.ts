import * as z from "zod";
import { type ApiError, ListError, type ListProblem, RejectedError } from "../../api/errors.ts";
import { fenced, plain, shown } from "../fence.ts";

/** What went wrong, in our own words, and what to do about it. */
export interface Failure {
  readonly message: string;
  readonly remedy?: string | undefined;
}

/** What a failed request says about itself: an ApiError, or what a run kept of one. */
const problem = z.object({
  effect: z.enum(["notSent", "rejected", "busy", "ambiguous"]),
  reason: z.string().optional(),
  statusCode: z.number().optional(),
  kind: z.string().optional(),
  route: z.string().optional(),
  errorCode: z.string().optional(),
  messages: z.array(z.string()).optional(),
});
type Problem = z.infer<typeof problem>;

const fileProblem = z.object({ effect: z.literal("file"), message: z.string(), remedy: z.string() });

/** Why a run could not be planned, in words: what its journal kept of an ApiError or a FileError. */
export function planningFailure(detail: Readonly<Record<string, unknown>>): Failure {
  const file = fileProblem.safeParse(detail).data;
  if (file !== undefined) return { message: plain(file.message), remedy: plain(file.remedy) };
  const kept = problem.safeParse(detail).data;
  return kept === undefined ? { message: "the reason is not known" } : problemWords({ ...kept, messages: [] });
}

/** A request that failed outside of any run: a read for an answer, or for a plan. */
export function requestFailure(error: ApiError): Failure {
  if (error instanceof ListError) return LISTS[error.problem];
  return problemWords(error instanceof RejectedError ? { ...error, messages: [...error.messages] } : error);
}

function problemWords(error: Problem): Failure {
  if (error.effect === "rejected") return rejectionWords(error);
  if (error.effect === "busy") {
    return { message: "the service was busy until the retries ended", remedy: "Try again in a minute." };
  }
  const reach = error.effect === "notSent" ? "the service could not be reached" : "the service gave no usable answer";
  return {
    message: `${reach}: ${error.reason}`,
    remedy: "Try again later; if it stays so, check the address in the settings and the network.",
  };
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
  unauthorized: {
    message: "the service does not accept the key",
    remedy: "The key is missing, invalid or revoked: check TARGETING_API_KEY or EVENT_APP_KEY.",
  },
  forbidden: {
    message: "the key lacks the scope that this needs",
    remedy: "Scopes cannot be added to a key: create a new one in the console under Settings > Integrations.",
  },
};

function rejectionWords({ kind = "other", errorCode, statusCode, route, messages = [] }: Problem): Failure {
  const code = errorCode ?? kind;
  const known = Object.hasOwn(REJECTIONS, code) ? REJECTIONS[code] : undefined;
  if (known !== undefined) return known;
  if (kind === "wrongRoute" || kind === "redirect") {
    return {
      message: `the service does not know the route ${route} (status ${statusCode})`,
      remedy: "Check the base address, or set the right route in the file that TARGETING_MCP_ROUTES names.",
    };
  }
  const said = messages.length === 0 ? undefined : `The service said:\n${fenced(messages.slice(0, 5).map(shown))}`;
  const named = errorCode === undefined ? "" : ` ${shown(errorCode)}`;
  return { message: `the service refused the request (status ${statusCode}${named})`, remedy: said };
}
