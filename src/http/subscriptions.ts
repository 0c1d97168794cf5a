import { listened, runWatcher } from "../mcp/run-updates.ts";
import type { ServerParts } from "../mcp/server-parts.ts";
import type { Clock } from "../platform/clock.ts";
import { isJsonObject } from "../platform/json.ts";

interface Subscriber {
  readonly parts: ServerParts;
  /** Aborted to end the stream, or once the stream has ended. */
  readonly over: AbortController;
  readonly open: (message: unknown) => Promise<Response>;
  readonly isLetIn: () => Promise<boolean>;
}

/** How many notifications may wait for a slow reader. Above that, a later check sends the newest state. */
const MAX_WAITING = 16;

/**
 * Returns a function that opens a stream of notifications. It is the stream of the SDK with two additions: the
 * acknowledgement names the accepted runs and tasks, and notifications about these are sent. Before each of these, the
 * caller's access is checked: without it, the stream ends.
 */
export function runSubscriptions(clock: Clock) {
  const watcher = runWatcher(clock);
  return async (body: unknown, { parts, over, open, isLetIn }: Subscriber): Promise<Response> => {
    const found = await listened(body, { parts, signal: over.signal, http: {} });
    if ("refused" in found) return Response.json(found.refused);
    const answer = await open(found.message);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream") || answer.body === null) return answer;
    let isFirst = true;
    const begin = (stream: TransformStreamDefaultController<Uint8Array>): void => {
      over.signal.addEventListener("abort", () => stream.terminate(), { once: true });
      found.begin(watcher, async (notification) => {
        if ((stream.desiredSize ?? 0) <= 0) return false;
        if (!(await isLetIn())) over.abort();
        if (over.signal.aborted) return false;
        stream.enqueue(frameOf(notification));
        return true;
      });
    };
    const stream = new TransformStream<Uint8Array, Uint8Array>(
      {
        transform(frame, its) {
          const acknowledgement = isFirst ? found.acknowledging(messageIn(frame)) : undefined;
          its.enqueue(acknowledgement === undefined ? frame : frameOf(acknowledgement));
          if (isFirst) begin(its);
          isFirst = false;
        },
      },
      undefined,
      { highWaterMark: MAX_WAITING },
    );
    return new Response(answer.body.pipeThrough(stream), answer);
  };
}

function frameOf(message: object): Uint8Array {
  return new TextEncoder().encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

function messageIn(frame: Uint8Array): object {
  const [, data = "{}"] = /^data: (.*)$/m.exec(new TextDecoder().decode(frame)) ?? [];
  const message: unknown = JSON.parse(data);
  return isJsonObject(message) ? message : {};
}
