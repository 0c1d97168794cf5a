import {
  type JSONRPCNotification,
  type ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  SUBSCRIPTION_ID_META_KEY,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Clock } from "../platform/clock.ts";
import { followsTasks } from "./elicitation.ts";
import { failureOf } from "./failures.ts";
import type { ServerParts } from "./server-parts.ts";
import { isOver, needsTasks, type TaskRequest, taskNow } from "./tasks.ts";

const MAX_WATCHED = 20;
/** The shortest pause between two checks of the watched runs, which other processes may change, in ms. */
const LOOK_MS = 1000;
const LOOK_SHARE = 10;

const RUN_URI = /^targeting:\/\/runs\/([0-9A-Z]{26})\//;
/** A resource that never changes, for the SDK to watch. If it had none, the SDK would end the client's stream. */
const NOTHING = "targeting://nothing";

const listenRequest = z.looseObject({
  id: z.union([z.string(), z.number()]),
  params: z.looseObject({
    _meta: z.looseObject({}),
    notifications: z.looseObject({
      resourceSubscriptions: z.array(z.string()).optional(),
      taskIds: z.unknown().optional(),
    }),
  }),
});
const acknowledgement = z.object({
  method: z.literal("notifications/subscriptions/acknowledged"),
  params: z.object({ _meta: z.object({ [SUBSCRIPTION_ID_META_KEY]: z.unknown() }) }),
});
const texts = z.array(z.string());

type Asked = z.infer<typeof listenRequest>;

/** A client that listens to notifications. `signal` is aborted when it stops listening. */
interface Listener {
  readonly parts: ServerParts;
  readonly signal: AbortSignal;
  readonly http?: ServerContext["http"];
}

export type RunWatcher = ReturnType<typeof runWatcher>;

type Send = (notification: JSONRPCNotification) => Promise<boolean>;

interface Listened {
  /** The request to pass to the SDK, which checks and acknowledges it, and keeps its stream open. */
  readonly message: unknown;
  /** Returns the SDK's acknowledgement with the runs and tasks to watch. Undefined for another message. */
  readonly acknowledging: (message: object) => object | undefined;
  /** Sends notifications until the client stops listening. Call it after the acknowledgement. */
  readonly begin: (watcher: RunWatcher, send: Send) => void;
}

export type Listening = { readonly refused: object } | Listened;

/** Checks a `subscriptions/listen` request. A client may watch its caller's runs, and tasks if it supports tasks. */
export async function listened(message: unknown, listener: Listener): Promise<Listening> {
  const { data } = listenRequest.safeParse(message);
  // The SDK itself answers an invalid request with the reason.
  if (data === undefined) return { message, acknowledging: () => undefined, begin: () => undefined };
  try {
    return await heardBy(data, listener);
  } catch (thrown) {
    const { redactor, log } = listener.parts;
    const { message: why } = failureOf(thrown, "subscriptions/listen", log);
    return refusal(data, { code: ProtocolErrorCode.InternalError, message: redactor.text(why) });
  }
}

function refusal({ id }: Asked, { code, message, data }: Pick<ProtocolError, "code" | "message" | "data">) {
  return { refused: { jsonrpc: "2.0", id, error: { code, message, data } } };
}

async function heardBy(data: Asked, { parts, signal, http }: Listener): Promise<Listening> {
  const { taskIds, resourceSubscriptions = [], ...others } = data.params.notifications;
  const call = { mcpReq: { signal, envelope: data.params._meta }, http };
  const asked = texts.optional().safeParse(taskIds);
  if (taskIds !== undefined && !followsTasks(call)) return refusal(data, needsTasks());
  if (!asked.success) {
    return refusal(data, { code: ProtocolErrorCode.InvalidParams, message: "taskIds must be a list of texts" });
  }
  const watched = [
    ...(await findWatched(resourceSubscriptions, (uri) => watchedResource(uri, parts))),
    ...(await findWatched(asked.data ?? [], (taskId) => watchedTask(taskId, { call, parts }))),
  ];
  const uris = watched.flatMap(({ uri }) => uri ?? []);
  const tasks = watched.flatMap(({ taskId }) => taskId ?? []);
  const heard = {
    ...(uris.length > 0 && { resourceSubscriptions: uris }),
    ...(tasks.length > 0 && { taskIds: tasks }),
  };
  const toSdk = { ...others, ...(watched.length > 0 && { resourceSubscriptions: [NOTHING] }) };
  const _meta = { [SUBSCRIPTION_ID_META_KEY]: data.id };
  return {
    message: { ...data, params: { ...data.params, notifications: toSdk } },
    acknowledging(its) {
      const { params } = acknowledgement.safeParse(its).data ?? {};
      const isOfThis = params?._meta[SUBSCRIPTION_ID_META_KEY] === data.id;
      return isOfThis ? { ...its, params: { notifications: heard, _meta } } : undefined;
    },
    begin(watcher, send) {
      const stamped: Send = ({ method, params }) => send({ jsonrpc: "2.0", method, params: { ...params, _meta } });
      const looks = watched.map((one) => () => one.look(stamped));
      watcher.add(parts.caller, looks, signal);
    },
  };
}

interface Watched {
  readonly uri?: string;
  readonly taskId?: string;
  /** Checks for changes and sends them. Resolves to false if no further check is needed. */
  readonly look: (send: Send) => Promise<boolean>;
}

/** Finds at most MAX_WATCHED runs or tasks, one after another, because reading many at once would need much memory. */
async function findWatched(
  names: readonly string[],
  find: (name: string) => Promise<Watched | undefined>,
): Promise<readonly Watched[]> {
  const all: Watched[] = [];
  for (const name of [...new Set(names)].slice(0, MAX_WATCHED)) all.push(...[(await find(name)) ?? []].flat());
  return all;
}

async function watchedResource(uri: string, { services, caller }: ServerParts): Promise<Watched | undefined> {
  const [, runId] = RUN_URI.exec(uri) ?? [];
  const { runs } = await services();
  if (runId === undefined || (await runs.findOwn(runId, caller)) === undefined) return undefined;
  let last = await runs.storedStatus(runId);
  return {
    uri,
    async look(send) {
      const now = await runs.storedStatus(runId);
      if (now !== last && (await send(notification("notifications/resources/updated", { uri })))) last = now;
      return true;
    },
  };
}

/** Returns the task to watch. The first check always notifies: the client may have read the task before a change. */
async function watchedTask(taskId: string, request: TaskRequest): Promise<Watched | undefined> {
  if ((await taskNow(taskId, request)) === undefined) return undefined;
  let last: string | undefined;
  return {
    taskId,
    async look(send) {
      const task = await taskNow(taskId, request);
      if (task === undefined) return false;
      const { status, statusMessage, inputRequests = {} } = task;
      const seen = JSON.stringify([status, statusMessage, Object.keys(inputRequests)]);
      if (seen === last) return true;
      if (!(await send(notification("notifications/tasks", task)))) return true;
      last = seen;
      return !isOver(task);
    },
  };
}

function notification(method: string, params: Readonly<Record<string, unknown>>): JSONRPCNotification {
  return { jsonrpc: "2.0", method, params };
}

type Look = () => Promise<boolean>;

/** Checks the watched runs. Each caller has its own loop, so no caller waits for the runs of another one. */
export function runWatcher(clock: Pick<Clock, "sleep" | "monotonic">) {
  const loops = new Map<string, ReturnType<typeof watchLoop>>();
  return {
    /** Calls each of `looks` until it resolves to false or the signal is aborted. A failed call is repeated. */
    add(caller: string, looks: readonly Look[], signal: AbortSignal): void {
      if (signal.aborted || looks.length === 0) return;
      const loop = loops.get(caller) ?? watchLoop(clock, () => loops.delete(caller));
      loops.set(caller, loop);
      const ends = looks.map(loop.add);
      const endAll = (): void => {
        for (const end of ends) end();
      };
      signal.addEventListener("abort", endAll, { once: true });
    },
  };
}

/** Checks runs in turn, and waits at most LOOK_MS for each. Pauses much longer, so that this takes little time. */
function watchLoop(clock: Pick<Clock, "sleep" | "monotonic">, ended: () => void) {
  const looks = new Set<() => Promise<void>>();
  const pausing = new AbortController();
  let isGoing = false;
  const goOn = async (): Promise<void> => {
    if (isGoing) return;
    isGoing = true;
    while (looks.size > 0) {
      const begun = clock.monotonic();
      for (const look of looks) await look();
      const ms = Math.max(LOOK_MS, (LOOK_SHARE - 1) * (clock.monotonic() - begun));
      await clock.sleep(ms, pausing.signal).catch(() => undefined);
    }
  };
  return {
    /** Adds a check. Returns a function that ends it. After the last check has ended, the loop is not used again. */
    add(look: Look): () => void {
      let isBusy = false;
      const lookNow = async (): Promise<void> => {
        isBusy = true;
        const goesOn = await look().catch(() => true);
        isBusy = false;
        if (!goesOn) end();
      };
      const lookAgain = async (): Promise<void> => {
        if (isBusy) return;
        const isDone = new AbortController();
        const slow = clock.sleep(LOOK_MS, isDone.signal).catch(() => undefined);
        await Promise.race([lookNow(), slow]);
        isDone.abort();
      };
      const end = (): void => {
        if (!looks.delete(lookAgain) || looks.size > 0) return;
        ended();
        pausing.abort();
      };
      looks.add(lookAgain);
      void goOn();
      return end;
    },
  };
}
