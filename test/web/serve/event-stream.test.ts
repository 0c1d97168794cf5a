import { expect, test, vi } from "vitest";
import { eventStream } from "../../../src/web/event-stream.ts";

const waits = vi.hoisted((): number[] => []);
vi.mock("node:timers/promises", async (original) => ({
  ...(await original<typeof import("node:timers/promises")>()),
  setTimeout: async (ms: number) => void waits.push(ms),
}));

/** A source of the numbers from 1 to `top`. A page has received those up to its position. */
function numbers() {
  let top = 3;
  const watchers = new Set<() => void>();
  return {
    raise(to: number) {
      top = to;
      for (const changed of watchers) changed();
    },
    watchers: () => watchers.size,
    source: {
      since(position: string | undefined) {
        const from = Number(position ?? 0);
        return { messages: Array.from({ length: top - from }, (_, at) => from + at + 1), position: String(top) };
      },
      watch(changed: () => void) {
        watchers.add(changed);
        return () => void watchers.delete(changed);
      },
    },
  };
}

function asked(lastEventId?: string): Request {
  return new Request("http://127.0.0.1/page/stream", {
    headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
  });
}

/** Returns a function that reads updates one by one. */
function updatesOf(response: Response) {
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  return {
    async next(): Promise<string | undefined> {
      const { value } = await reader.read();
      return value === undefined ? undefined : new TextDecoder().decode(value);
    },
    end: () => reader.cancel(),
  };
}

test("a page gets what there is, then what changes, and changes in between travel together", async () => {
  const { source, raise, watchers } = numbers();
  const response = eventStream<number | string>(asked(), source, { first: ["hello"] });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const updates = updatesOf(response);
  expect(await updates.next()).toBe('id: 3\ndata: ["hello",1,2,3]\n\n');
  vi.useFakeTimers({ toFake: ["Date"] });
  for (let top = 4; top <= 9; top += 1) raise(top);
  expect(await updates.next()).toBe("id: 9\ndata: [4,5,6,7,8,9]\n\n");
  vi.useRealTimers();
  expect(waits).toEqual([expect.any(Number)]);
  expect(waits[0]).toBeGreaterThanOrEqual(90);
  await updates.end();
  expect(watchers()).toBe(0);
});

test("a page that comes back goes on from its last event", async () => {
  const { source } = numbers();
  const updates = updatesOf(eventStream<number | string>(asked("2"), source, { first: ["hello"] }));
  expect(await updates.next()).toBe('id: 3\ndata: ["hello",3]\n\n');
  await updates.end();
});

test("a stream ends with its session, once", async () => {
  const { source, watchers } = numbers();
  const over = new AbortController();
  let ended = 0;
  const options = {
    first: [],
    signal: over.signal,
    ended: () => {
      ended += 1;
    },
  };
  const updates = updatesOf(eventStream<number>(asked(), source, options));
  await updates.next();
  const next = updates.next();
  over.abort();
  expect(await next).toBeUndefined();
  await updates.end();
  expect([ended, watchers()]).toEqual([1, 0]);
});
