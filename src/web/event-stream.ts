import { setTimeout as delay } from "node:timers/promises";

/** A source of updates for open pages. Each page gets only the messages that it does not have yet. */
export interface StreamSource<Message> {
  /**
   * Returns the messages after `position`, and the new position. Returns all messages if `position` is undefined or
   * comes from another server process.
   */
  since(position: string | undefined): Update<Message> | Promise<Update<Message>>;
  /** Calls `changed` each time `since` may have new messages, until the returned function is called. */
  watch(changed: () => void): () => void;
}

/** The new messages, and the position after them. The position is sent to the page only with messages. */
interface Update<Message> {
  readonly messages: readonly Message[];
  readonly position: string;
}

/** The minimum milliseconds between two updates. Changes in between are sent together, so that pages redraw rarely. */
const EVERY_MS = 250;
/** The interval of keep-alive comments, in milliseconds. With them, both sides notice a broken connection. */
const KEEP_ALIVE_EVERY_MS = 10_000;

interface StreamOptions<Message> {
  /** Sent at the start of every connection, before the messages after its position. */
  readonly first: readonly Message[];
  /** Ends the stream when it is aborted, for example because the person's session ended. */
  readonly signal?: AbortSignal | undefined;
  /** Called when the stream ends, whether the page, the signal or an error ended it. */
  readonly ended?: () => void;
}

/**
 * Returns a response that streams updates (`text/event-stream`). The first update has the messages after the
 * `Last-Event-ID` of the request, later ones those of each change. An update is a JSON list of messages. It is made
 * only when the client reads, so a slow client gets fewer and larger updates.
 */
export function eventStream<Message>(
  request: Request,
  source: StreamSource<Message>,
  { first, signal, ended }: StreamOptions<Message>,
): Response {
  const encoder = new TextEncoder();
  const changes = changesOf(source, signal);
  let position = request.headers.get("last-event-id") ?? undefined;
  let greeting = first;
  const stop = (): void => {
    if (changes.stop()) ended?.();
  };
  const nextText = async (): Promise<string> => {
    const update = await source.since(position);
    const messages = [...greeting, ...update.messages];
    position = update.position;
    greeting = [];
    return messages.length === 0 ? ":\n\n" : `id: ${position}\ndata: ${JSON.stringify(messages)}\n\n`;
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!(await changes.next())) {
          stop();
          controller.close();
          return;
        }
        try {
          controller.enqueue(encoder.encode(await nextText()));
        } catch (thrown) {
          stop();
          throw thrown;
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
}

const MAX_STREAMS = 256;

/**
 * Limits how many streams are open at a time, with at most half of them for one person. The returned function is called
 * when a person opens a stream. It returns the function to call when the stream closes, or undefined if too many are
 * open.
 */
export function streamLimit(): (who: string) => (() => void) | undefined {
  const openBy = new Map<string, number>();
  let all = 0;
  const count = (who: string, more: number): void => {
    all += more;
    const streams = (openBy.get(who) ?? 0) + more;
    if (streams === 0) openBy.delete(who);
    else openBy.set(who, streams);
  };
  return (who) => {
    if (all >= MAX_STREAMS || (openBy.get(who) ?? 0) >= MAX_STREAMS / 2) return undefined;
    count(who, 1);
    return () => count(who, -1);
  };
}

function changesOf<Message>(source: StreamSource<Message>, signal: AbortSignal | undefined) {
  let isChanged = true;
  let isOver = signal?.aborted ?? false;
  let last = 0;
  let wake = (): void => undefined;
  const unwatch = source.watch(() => {
    isChanged = true;
    wake();
  });
  const onAbort = (): void => {
    isOver = true;
    wake();
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  const woken = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  let isStopped = false;
  return {
    /** Waits until something changes or a keep-alive comment is due. Returns false if the stream has ended. */
    async next(): Promise<boolean> {
      if (!isChanged && !isOver) await woken(KEEP_ALIVE_EVERY_MS);
      const early = last + EVERY_MS - Date.now();
      if (early > 0 && !isOver) await delay(early, undefined, { ref: false });
      last = Date.now();
      isChanged = false;
      return !isOver;
    },
    stop(): boolean {
      if (isStopped) return false;
      isStopped = true;
      isOver = true;
      unwatch();
      signal?.removeEventListener("abort", onAbort);
      wake();
      return true;
    },
  };
}
