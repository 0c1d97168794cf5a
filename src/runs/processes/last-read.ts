import type { Revision } from "../backend/store.ts";

const MOST_RUNS = 4;
/** Bytes on the disk; in memory a run takes several times as much. */
const MOST_BYTES = 24 * 1024 * 1024;

/** Keeps the last few runs that were read back, so that the next page of one does not read all of it again. */
export class LastRead<T> {
  /** The one that was used last comes last. */
  readonly #kept = new Map<string, Revision & { readonly found: T }>();

  /** The run as it was read last, or read again where it has changed since. The result must not be changed. */
  async get(runId: string, revision: Revision | undefined, read: () => Promise<T | undefined>): Promise<T | undefined> {
    const known = this.#kept.get(runId);
    this.#kept.delete(runId);
    if (known !== undefined && known.text === revision?.text) {
      this.#kept.set(runId, known);
      return known.found;
    }
    const found = await read();
    if (found === undefined || revision === undefined || revision.bytes > MOST_BYTES) return found;
    this.#kept.delete(runId);
    this.#kept.set(runId, { ...revision, found });
    this.#leaveOutOldest();
    return found;
  }

  #leaveOutOldest(): void {
    let bytes = 0;
    for (const one of this.#kept.values()) bytes += one.bytes;
    for (const [runId, one] of this.#kept) {
      if (this.#kept.size <= MOST_RUNS && bytes <= MOST_BYTES) return;
      this.#kept.delete(runId);
      bytes -= one.bytes;
    }
  }
}
