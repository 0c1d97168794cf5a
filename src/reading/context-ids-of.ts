import type { ManagementApi } from "../api/management.ts";
import type { ContentsStore, SeenOption } from "../runs/backend/backend.ts";
import type { OptionRecord } from "../spec/records.ts";
import { readOptionContents } from "./option-contents.ts";

/** Where contents come from: `store` absent, everything is read; `fresh`, everything is read and kept. */
export interface ContentsSource {
  readonly targetingId: string;
  readonly store?: ContentsStore | undefined;
  readonly fresh?: boolean | undefined;
}

/**
 * A record as old as this when its Context IDs were read cannot have changed within the same tick of `updatedAt` and be
 * taken for unchanged: in milliseconds, against the service's clock.
 */
const SETTLED_MS = 60_000;

/**
 * Every Context ID of an option whose record was read just now: those that were kept, where its record is the same, or
 * read now; `withoutRead` is called where that was not needed. That `updatedAt` changes with Context IDs is an assumption. Throws what `readOptionContents` throws.
 */
export async function contextIdsOf(
  api: ManagementApi,
  option: OptionRecord,
  { targetingId, store, fresh = false }: ContentsSource,
  signal: AbortSignal,
  withoutRead: () => void = () => {},
): Promise<readonly string[]> {
  const seen = seenOption(targetingId, option);
  const kept = fresh || seen === undefined ? undefined : await store?.get(seen);
  if (kept !== undefined) {
    withoutRead();
    return kept;
  }
  const { option: read, contexts, serverTime = 0 } = await readOptionContents(api, option._id, signal);
  const now = seenOption(targetingId, read);
  const isSettled = now !== undefined && Date.parse(now.updatedAt) < serverTime - SETTLED_MS;
  if (isSettled && now.contextCount === contexts.length) await store?.put(now, contexts);
  return contexts;
}

function seenOption(targetingId: string, { _id, updatedAt, contextCount }: OptionRecord): SeenOption | undefined {
  if (updatedAt === undefined || contextCount === undefined) return undefined;
  return { targetingId, optionId: _id, updatedAt, contextCount };
}
