import type { Clock } from "../api/clock.ts";
import { orUnreadable, type RunStore } from "./store.ts";

/** How often a run that another process drives is looked at, in milliseconds. */
const LOOK_AGAIN_MS = 500;

/** A run that another process drives. */
export interface Followed<State> {
  readonly store: Pick<RunStore<never, never>, "isDriven" | "revision">;
  readonly clock: Clock;
  readonly runId: string;
  /** How it stands, as the disk has it; undefined where that cannot be read now. */
  readonly read: () => Promise<State | undefined>;
  /** Aborted when this process follows it no more. */
  readonly signal: AbortSignal;
}

/** Follows a run until no process drives it any more; tells where it stands whenever that has changed. */
export async function follow<State>(
  { store, clock, runId, read, signal }: Followed<State>,
  onChange: (state: State) => void,
): Promise<void> {
  let seen: string | undefined;
  for (;;) {
    const isDriven = await store.isDriven(runId);
    const revision = await store.revision(runId);
    const state = revision !== undefined && revision.text === seen ? undefined : await orUnreadable(read());
    seen = revision?.text;
    if (state !== undefined) onChange(state);
    if (!isDriven || signal.aborted) return;
    try {
      await clock.sleep(LOOK_AGAIN_MS, signal);
    } catch (thrown) {
      if (!signal.aborted) throw thrown;
      return;
    }
  }
}
