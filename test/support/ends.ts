import { AsyncLocalStorage } from "node:async_hooks";
import { afterAll, onTestFinished } from "vitest";

type End = () => unknown;

const endsOfFile = new AsyncLocalStorage<End[]>();

/**
 * Registers a function that ends what a test has started. It is called at the end of the test, or at the end of the
 * file if `perFile` has started it.
 */
export function atEnd(end: End): void {
  const ends = endsOfFile.getStore();
  if (ends !== undefined) ends.push(end);
  else {
    onTestFinished(async () => {
      await end();
    });
  }
}

/**
 * Returns a function that starts something only once per file for equal arguments (compared as JSON), because starting
 * a server takes most of the time of a short test. Must be called outside of tests. Everything is ended at the end of
 * the file.
 */
export function perFile<Args extends readonly unknown[], Started>(
  start: (...args: Args) => Promise<Started>,
): (...args: Args) => Promise<Started> {
  const started = new Map<string, Promise<Started>>();
  const ends: End[] = [];
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });
  return (...args) => {
    const key = JSON.stringify(args);
    const found = started.get(key) ?? endsOfFile.run(ends, () => start(...args));
    started.set(key, found);
    return found;
  };
}
