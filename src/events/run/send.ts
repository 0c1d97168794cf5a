import { setMaxListeners } from "node:events";
import { type ApiError, isApiError } from "../../api/errors.ts";
import type { EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { isJsonObject } from "../../platform/json.ts";
import type { Validation } from "../catalogue.ts";
import { type NearestName, nearestName, remembering } from "../spelling.ts";
import { validateEvent } from "../validate.ts";
import {
  type Attempts,
  type EventSettlement,
  noAnswerEnd,
  type RunEnd,
  runEndOf,
  settleByAnswer,
  settleByEnd,
  settleByError,
} from "./verdicts.ts";

export interface IndexedEvent {
  readonly index: number;
  readonly event: unknown;
  readonly text?: string | undefined;
  readonly isDoubted?: boolean;
}

export interface SendReport {
  /** For how long at least one event waited for a retry, in milliseconds. */
  readonly waitedMs: number;
  readonly ended?: RunEnd;
}

export interface SendOptions {
  readonly api: EventApi;
  readonly clock: Clock;
  readonly concurrency?: number;
  /** What to do if an answer is lost. `resend`: the event is sent again, and may then be recorded twice. */
  readonly onUnknown?: "report" | "resend";
  /** For how long after its first attempt an event is retried, in milliseconds. Default: 120,000. */
  readonly retryBudgetMs?: number;
  readonly signal?: AbortSignal;
  /** Called with the indexes of up to 100 events before they are sent. Sending continues when it resolves. */
  readonly beforeSend?: (indexes: readonly number[]) => Promise<void>;
  /** Called with the outcome of an event. When it resolves, the next event with the same `uid` is sent. */
  readonly onSettled?: (index: number, settlement: EventSettlement, event: unknown) => Promise<void> | void;
}

const READ_AT_ONCE = 100;
/** How many events are read ahead. Events of different users can be sent at the same time, so many must be known. */
const WINDOW = 1000;
/**
 * How many events `beforeSend` announces at a time. After a crash, the results of announced events are unknown, so few
 * are announced as long as the service is slower than the journal.
 */
const ANNOUNCED = { first: 32, most: 100 };
const DEFAULT_CONCURRENCY = 16;
const DEFAULT_RETRY_BUDGET_MS = 120_000;
const PAUSE_MS = { first: 100, longest: 5000, busyAtLeast: 50 };

interface SenderState {
  readonly options: SendOptions;
  readonly nearest: NearestName;
  answeredAt: number;
  ended: RunEnd | undefined;
  /** How many events are announced at a time. Doubled, up to 100, if requests ended during an announcement. */
  announced: number;
  /**
   * The events that wait for a retry: their number, since when at least one of them waits (monotonic time), and for how
   * long at least one has waited in all.
   */
  readonly waiting: { events: number; since: number; totalMs: number };
}

interface PreparedEvent extends IndexedEvent {
  readonly predicted: Validation;
}

/**
 * Sends each event in its own request (event-tracking-api 4). Events with the same `uid` are sent one after another.
 * Events that the service would drop or refuse are not sent. An error that concerns all events, such as an invalid key,
 * ends the run. An error that is not an ApiError is thrown after the open requests have ended.
 */
export async function sendEvents(
  events: Iterable<IndexedEvent> | AsyncIterable<IndexedEvent>,
  options: SendOptions,
): Promise<SendReport> {
  // Each event that waits for a retry listens to the signal. Node would warn about more than ten listeners.
  if (options.signal !== undefined) setMaxListeners(0, options.signal);
  const nearest = remembering(nearestName);
  const waits = { events: 0, since: 0, totalMs: 0 };
  const answeredAt = Number.NEGATIVE_INFINITY;
  const run: SenderState = {
    options,
    nearest,
    answeredAt,
    ended: undefined,
    announced: ANNOUNCED.first,
    waiting: waits,
  };
  const concurrency = options.concurrency ?? DEFAULT_CONCURRENCY;
  const queue = keyedQueue<PreparedEvent>(concurrency, (event) => sendQueued(run, event));
  const waiting = fairBuffer<PreparedEvent>();
  try {
    for await (const group of groupsOf(events, READ_AT_ONCE)) {
      for (const event of await admit(run, group)) waiting.add(uidOf(event), event);
      while (waiting.size >= WINDOW) await announce(run, waiting, queue);
    }
    while (waiting.size > 0) await announce(run, waiting, queue);
  } finally {
    await queue.ended();
  }
  return { waitedMs: waits.totalMs, ...(run.ended !== undefined && { ended: run.ended }) };
}

async function announce(
  run: SenderState,
  waiting: ReturnType<typeof fairBuffer<PreparedEvent>>,
  queue: ReturnType<typeof keyedQueue<PreparedEvent>>,
): Promise<void> {
  // No more are announced while half of the last ones wait to be sent. The journal then needs fewer lines.
  const left = await queue.nearlyEmpty(run.announced / 2);
  const group = waiting.take(run.announced - left);
  const { running } = queue;
  if (!isOver(run)) await run.options.beforeSend?.(group.map(({ index }) => index));
  if (queue.running < running) run.announced = Math.min(2 * run.announced, ANNOUNCED.most);
  for (const event of group) queue.add(uidOf(event), event);
}

async function* groupsOf<Entry>(
  entries: Iterable<Entry> | AsyncIterable<Entry>,
  size: number,
): AsyncGenerator<readonly Entry[]> {
  let group: Entry[] = [];
  for await (const entry of entries) {
    group.push(entry);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** Settles as failed the events that the service would drop or refuse. Returns the other events. */
async function admit(run: SenderState, group: readonly IndexedEvent[]): Promise<readonly PreparedEvent[]> {
  const admitted: PreparedEvent[] = [];
  for (const event of group) {
    const predicted = validateEvent(event.event, run.nearest);
    if (predicted.verdict === "ignored" || predicted.verdict === "rejected") {
      await settle(run, event, { outcome: "failed", reason: "refused", predicted, attempts: 0 });
    } else {
      admitted.push({ ...event, predicted });
    }
  }
  return admitted;
}

function uidOf({ event }: PreparedEvent): string {
  return isJsonObject(event) && typeof event.uid === "string" ? event.uid : "";
}

async function sendQueued(run: SenderState, prepared: PreparedEvent): Promise<void> {
  const settlement = isOver(run) ? notApplied(run, prepared.predicted) : await sendUntilSettled(run, prepared);
  return settle(run, prepared, settlement);
}

async function sendUntilSettled(
  run: SenderState,
  { event, text, predicted, isDoubted }: PreparedEvent,
): Promise<EventSettlement> {
  const body = text ?? JSON.stringify(event);
  const firstAt = run.options.clock.now();
  const giveUpAt = firstAt + (run.options.retryBudgetMs ?? DEFAULT_RETRY_BUDGET_MS);
  const attempts: Attempts = { predicted, count: 0, lost: isDoubted === true };
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await run.options.api.track(body);
      attempts.count += 1;
      run.answeredAt = run.options.clock.now();
      return settleByAnswer(attempts, answer);
    } catch (error) {
      if (!isApiError(error)) throw error;
      const isUnsent = error.effect === "notSent" || (error.effect === "busy" && error.isHeldBack);
      if (!isUnsent) attempts.count += 1;
      const end = runEndOf(error);
      run.ended ??= end;
      if (end !== undefined && !attempts.lost) return settleByEnd(attempts, end);
      if (!isRepeatable(error, run.options)) return settleByError(attempts, error);
      attempts.lost ||= error.effect === "ambiguous";
      if (await pauseBeforeRetry(run, pauseAfter(error, tries), giveUpAt)) continue;
      // This server held the event back after a 429, so it was not sent. If the run is over, that is the reason.
      const wasHeldBack = error.effect === "busy" && attempts.count === 0 && !attempts.lost;
      if (wasHeldBack && isOver(run)) return notApplied(run, predicted);
      if (!isOver(run) && run.answeredAt < firstAt) run.ended = noAnswerEnd(error);
      return settleByError(attempts, error);
    }
  }
}

function isRepeatable(error: ApiError, { onUnknown }: SendOptions): boolean {
  return error.effect === "ambiguous" ? onUnknown === "resend" : error.effect !== "rejected";
}

/**
 * Returns the pause before the next attempt, in milliseconds. After a busy answer, it is as long as the error says, but
 * at least 50 ms. After other errors, it doubles with each attempt, up to 5 seconds.
 */
function pauseAfter(error: ApiError, attempt: number): number {
  const grown = Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** Math.min(attempt - 1, 16));
  return error.effect === "busy" ? Math.max(PAUSE_MS.busyAtLeast, error.retryAfterMs) : grown;
}

/**
 * Waits before a retry. Returns false if there must be no retry: at once if there is no time left or the run is over,
 * or later if the run ends during the wait.
 */
async function pauseBeforeRetry(run: SenderState, ms: number, giveUpAt: number): Promise<boolean> {
  if (isOver(run) || run.options.clock.now() + ms > giveUpAt) return false;
  const { waiting } = run;
  const { clock, signal } = run.options;
  if (waiting.events === 0) waiting.since = clock.monotonic();
  waiting.events += 1;
  try {
    await clock.sleep(ms, signal);
  } catch (reason) {
    if (signal?.aborted !== true) throw reason;
    return false;
  } finally {
    waiting.events -= 1;
    if (waiting.events === 0) waiting.totalMs += Math.round(clock.monotonic() - waiting.since);
  }
  return !isOver(run);
}

function isOver(run: SenderState): boolean {
  return run.ended !== undefined || run.options.signal?.aborted === true;
}

function notApplied(run: SenderState, predicted: Validation): EventSettlement {
  const reason = run.ended === undefined ? "stopped" : "runEnded";
  return { outcome: "notApplied", reason, predicted, attempts: 0 };
}

async function settle(run: SenderState, { index, event }: IndexedEvent, settlement: EventSettlement): Promise<void> {
  const recorded = run.options.onSettled?.(index, settlement, event);
  if (recorded !== undefined) await recorded;
}

function fairBuffer<Item>() {
  const lines = new Map<string, Item[]>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(key: string, item: Item): void {
      size += 1;
      const line = lines.get(key);
      if (line === undefined) lines.set(key, [item]);
      else line.push(item);
    },
    /** Removes and returns at most `most` items: one of each key in turn. Items with the same key stay in order. */
    take(most: number): readonly Item[] {
      const taken: Item[] = [];
      while (taken.length < most && lines.size > 0) {
        for (const [key, line] of lines) {
          if (taken.length === most) break;
          taken.push(...line.splice(0, 1));
          if (line.length === 0) lines.delete(key);
        }
      }
      size -= taken.length;
      return taken;
    },
  };
}

/** Runs up to `concurrency` tasks at a time, those with the same key in order, and none after an error. */
function keyedQueue<Task>(concurrency: number, perform: (task: Task) => Promise<void>) {
  interface Entry {
    readonly key: string;
    readonly task: Task;
  }
  const ready: Entry[] = [];
  const behind = new Map<string, Entry[]>();
  let running = 0;
  let held = 0;
  let failure: { readonly thrown: unknown } | undefined;
  let awaited: { readonly isReached: () => boolean; readonly wake: () => void } | undefined;

  function begin(): void {
    while (running < concurrency) {
      const entry = ready.shift();
      if (entry === undefined) return;
      running += 1;
      void run(entry);
    }
  }

  async function run({ key, task }: Entry): Promise<void> {
    try {
      if (failure === undefined) await perform(task);
    } catch (thrown) {
      failure ??= { thrown };
    }
    running -= 1;
    held -= 1;
    const follower = behind.get(key)?.shift();
    if (follower === undefined) behind.delete(key);
    else ready.push(follower);
    begin();
    if (awaited?.isReached()) awaited.wake();
  }

  async function until(isReached: () => boolean): Promise<void> {
    if (!isReached()) {
      await new Promise<void>((wake) => {
        awaited = { isReached, wake };
      });
      awaited = undefined;
    }
    if (failure !== undefined) throw failure.thrown;
  }

  return {
    add(key: string, task: Task): void {
      held += 1;
      const line = behind.get(key);
      if (line !== undefined) {
        line.push({ key, task });
        return;
      }
      behind.set(key, []);
      ready.push({ key, task });
      begin();
    },
    /**
     * Waits until at most `few` tasks have not started. At most twice `concurrency` of these may be ready; the others
     * wait for a task with the same key. Resolves to the number of tasks that have not started. Rejects with the error
     * of a task.
     */
    async nearlyEmpty(few: number): Promise<number> {
      await until(() => ready.length <= 2 * concurrency && held - running <= few);
      return held - running;
    },
    get running(): number {
      return running;
    },
    ended: () => until(() => held === 0),
  };
}
