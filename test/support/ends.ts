import { AsyncLocalStorage } from "node:async_hooks";
import { afterAll, onTestFinished } from "vitest";

type End = () => unknown;

const endsOfFile = new AsyncLocalStorage<End[]>();

/** Ends something that a test has started: when the test has finished, or with the file where `perFile` starts it. */
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
 * Starts something once a file for each list of arguments, for all tests that ask for it: starting a server is most of a
 * short test. It ends with the file, in which this is called outside of tests. Arguments are compared as JSON.
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
