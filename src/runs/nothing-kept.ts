import { RunStoreError } from "./backend/store.ts";

/** Of a run only its call was kept: its process died before more was written, and nothing was sent. */
export class NothingKeptError extends RunStoreError {}

/** The run that `taking` gives; undefined where nothing of it was kept. */
export async function unlessNothingKept<T>(taking: Promise<T>): Promise<T | undefined> {
  try {
    return await taking;
  } catch (thrown) {
    if (thrown instanceof NothingKeptError) return undefined;
    throw thrown;
  }
}
