import { setTimeout as delay } from "node:timers/promises";

/** A source of updates for streams. */
export interface StreamSource<Message> {
  /**
   * Returns the messages that a page at `position` does not have yet, and the new position. Returns all messages if
   * there is no position, or if this server does not know it.
   */
  since(position: string | undefined): Update<Message> | Promise<Update<Message>>;
  /** Calls `changed` each time `since` may have new messages. Returns a function that stops this. */
  watch(changed: () => void): () => void;
}

/** Messages to send now. If there are none, nothing is sent. */
interface Update<Message> {
  readonly messages: readonly Message[];
  readonly position: string;
}

/** At most four updates per second. Changes within the interval are sent together, so that browsers draw only once. */
const EVERY_MS = 250;
/** The interval of keep-alive comments, in milliseconds. They let both sides notice a broken connection. */
const KEEP_ALIVE_EVERY_MS = 10_000;

/** The options of a stream. */
interface StreamOptions<Message> {
  /** The messages that every connection starts with, whatever its position. */
  readonly first: readonly Message[];
  /** Ends the stream, e.g. if its session ends. */
  readonly signal?: AbortSignal | undefined;
  /** Called if the stream ends because of the page, the signal or an error. */
  readonly ended?: () => void;
}

/**
 * Returns a response with a stream of updates (`text/event-stream`): first the messages after the `Last-Event-ID`,
 * then each change. The data of an update is a JSON list of messages. Updates are computed only as the page reads.
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

/** Waits for the changes of a source, at most four per second. */
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
    /** Waits for a change or the next keep-alive comment. Returns false if the stream has ended. */
    async next(): Promise<boolean> {
      if (!isChanged && !isOver) await woken(KEEP_ALIVE_EVERY_MS);
      const early = last + EVERY_MS - Date.now();
      if (early > 0 && !isOver) await delay(early, undefined, { ref: false });
      last = Date.now();
      isChanged = false;
      return !isOver;
    },
    /** Stops the watch. Returns false if it was stopped before. */
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
