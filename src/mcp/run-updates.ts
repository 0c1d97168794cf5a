import { CLIENT_CAPABILITIES_META_KEY } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Status } from "../runs/lifecycle.ts";
import { TASKS } from "./elicitation.ts";
import type { ResourceContext } from "./resource-definition.ts";

const MISSING_CAPABILITY = -32_021;
/** The maximum number of watched resources in one subscription. */
const MOST_WATCHED = 20;
/** The interval at which a watched run is checked, whichever process executes it, in milliseconds. */
const LOOK_MS = 1000;

const RUN_URI = /^targeting:\/\/runs\/([0-9A-Z]{26})\//;

const request = z.looseObject({
  id: z.union([z.string(), z.number()]),
  params: z.looseObject({
    _meta: z.looseObject({
      [CLIENT_CAPABILITIES_META_KEY]: z.looseObject({ extensions: z.looseObject({}).optional() }).optional(),
    }),
    notifications: z.looseObject({
      resourceSubscriptions: z.array(z.string()).optional(),
      taskIds: z.unknown().optional(),
    }),
  }),
});

/** The result of a request to listen: a refusal, or the request with the resources that it may watch. */
export type Listening =
  | { readonly refused: unknown }
  | {
      readonly message: unknown;
      /**
       * Calls `updated` with the address of each watched resource whose run has changed its status, until the signal.
       */
      readonly watch: (updated: (uri: string) => void, signal: AbortSignal) => void;
    };

/**
 * Checks a `subscriptions/listen` request. It may watch the resources of the caller's own runs. The status of tasks is
 * not sent, and the extension defines it as an error to request it without following tasks.
 */
export async function listened(message: unknown, context: ResourceContext): Promise<Listening> {
  const { data } = request.safeParse(message);
  // The SDK reports what is wrong with it.
  if (data === undefined) return { message, watch: () => undefined };
  const { notifications, _meta } = data.params;
  const { extensions = {} } = _meta[CLIENT_CAPABILITIES_META_KEY] ?? {};
  if (notifications.taskIds !== undefined && extensions[TASKS] === undefined) {
    const requiredCapabilities = { extensions: { [TASKS]: {} } };
    const error = {
      code: MISSING_CAPABILITY,
      message: "Missing required client capability",
      data: { requiredCapabilities },
    };
    return { refused: { jsonrpc: "2.0", id: data.id, error } };
  }
  const asked = (notifications.resourceSubscriptions ?? []).slice(0, MOST_WATCHED);
  const runs = await Promise.all(asked.map((uri) => watchedRun(uri, context)));
  const own = runs.flatMap((run) => (run === undefined ? [] : [run]));
  const { resourceSubscriptions, ...others } = notifications;
  const heard = own.length === 0 ? others : { ...others, resourceSubscriptions: own.map(({ uri }) => uri) };
  return {
    message: { ...data, params: { ...data.params, notifications: heard } },
    watch(updated, signal) {
      for (const run of own) void follow(run, context, updated, signal);
    },
  };
}

/** A watched run, and its status when its client began to listen. */
interface Watched {
  readonly uri: string;
  readonly runId: string;
  readonly status: Status | undefined;
}

async function watchedRun(uri: string, { runs, caller }: ResourceContext): Promise<Watched | undefined> {
  const [, runId = ""] = RUN_URI.exec(uri) ?? [];
  const isOwn = runId !== "" && (await runs.findOwn(runId, caller)) !== undefined;
  return isOwn ? { uri, runId, status: await runs.storedStatus(runId) } : undefined;
}

/** Never rejects. */
async function follow(
  { uri, runId, status }: Watched,
  { runs, clock }: ResourceContext,
  updated: (uri: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = status;
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
    // While the store cannot be read, the status counts as unchanged.
    const now = signal.aborted ? last : await runs.storedStatus(runId).catch(() => last);
    if (now !== last) updated(uri);
    last = now;
  }
}
