import { setTimeout as delay } from "node:timers/promises";
import { pageAnswer } from "./answers.ts";

/** What a stream of updates tells. */
export interface StreamSource<Message> {
  /**
   * What a page at `position` does not have yet, and the position after it. Without a position, or with one that this
   * server cannot go on from, that is everything.
   */
  since(position: string | undefined): Update<Message> | Promise<Update<Message>>;
  /** Calls `changed` whenever `since` may have more to tell, until the function that it gives is called. */
  watch(changed: () => void): () => void;
}

/** Messages to send now; none: nothing is sent. */
interface Update<Message> {
  readonly messages: readonly Message[];
  readonly position: string;
}

/** At most four updates a second: changes in between travel together, and a browser draws each once. */
const EVERY_MS = 250;
/** A line that says nothing, so that a broken connection is noticed on both sides. */
const SIGN_OF_LIFE_MS = 10_000;

/** What distinguishes a stream, and when it ends. */
interface StreamOptions<Message> {
  /** What every connection begins with, whatever its position. */
  readonly first: readonly Message[];
  /** Ends the stream, e.g. as its session ends. */
  readonly signal?: AbortSignal | undefined;
  /** The stream has ended, by its page, its signal or an error. */
  readonly ended?: () => void;
}

/**
 * Answers with a stream of updates (`text/event-stream`): what the page does not have by its `Last-Event-ID`, then each
 * change. The data of an update is a JSON list of messages. Nothing is prepared for a page that does not read.
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
  return pageAnswer(stream, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } });
}

/** The changes of a source one after another, at most four a second. */
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
    /** Waits for a change, or for the time of a sign of life; false once the stream is over. */
    async next(): Promise<boolean> {
      if (!isChanged && !isOver) await woken(SIGN_OF_LIFE_MS);
      const early = last + EVERY_MS - Date.now();
      if (early > 0 && !isOver) await delay(early, undefined, { ref: false });
      last = Date.now();
      isChanged = false;
      return !isOver;
    },
    /** Whether it was not stopped before. */
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
