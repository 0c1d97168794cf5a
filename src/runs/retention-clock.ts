import * as z from "zod";
import type { Clock } from "../platform/clock.ts";

const DAY_MS = 86_400_000;
/** A store that was not used for longer than this, in milliseconds, looks like a jump of the clock. */
const PAUSE_MS = 7 * DAY_MS;

/** The stored reading of the clock by which runs are removed. */
export const seenClock = z.object({
  /** When the clock was last read, in milliseconds since 1970. */
  at: z.number(),
  /** Whether another clock agreed with it then. */
  agreed: z.boolean(),
  /** The last jump, and whether another clock agreed before it and after it. */
  jump: z.object({ from: z.number(), to: z.number(), before: z.boolean(), after: z.boolean() }).exactOptional(),
});
export type SeenClock = Readonly<z.infer<typeof seenClock>>;

/** The reading of this machine's clock, and the times that it is compared with. */
export interface Readings {
  readonly now: number;
  /** The same moment by other known clocks: those of the service and of the database. */
  readonly others: readonly number[];
  /** The newest time in the store that this process has not written itself. */
  readonly newest?: number | undefined;
}

/** The reading to store, and the reason why nothing may be removed now. */
export interface Judged {
  readonly seen: SeenClock | undefined;
  readonly doubt?: string;
}

/**
 * Checks whether runs may be removed by the clock of this machine. It must agree with the other clocks and must not
 * have jumped. After a jump nothing is removed for a day if other clocks agreed before and after it, otherwise for as
 * long as runs are retained (`keepMs`, at least a day). So each run stays at least that long, even if the clock was
 * wrong.
 */
export function checkRetentionClock(
  before: SeenClock | undefined,
  { now, others, newest }: Readings,
  keepMs: number,
): Judged {
  const other = others.find((time) => Math.abs(time - now) > DAY_MS);
  // The stored reading stays, so that the wrong time leaves no trace once the clock is right again.
  if (other !== undefined) return { seen: before, doubt: disagreement(now, other) };
  const agreed = others.length > 0;
  const last = before?.at ?? (agreed ? now : (newest ?? now));
  const isJump = now - last > PAUSE_MS || last - now > DAY_MS;
  const found = isJump ? { from: last, to: now, before: before?.agreed ?? false, after: false } : before?.jump;
  const jump = found && { ...found, after: found.after || agreed };
  const until = jump === undefined ? now : jump.to + (jump.before && jump.after ? DAY_MS : Math.max(DAY_MS, keepMs));
  const seen = { at: now, agreed: agreed || (!isJump && (before?.agreed ?? false)) };
  if (jump === undefined || now >= until) return { seen };
  return { seen: { ...seen, jump }, doubt: jumped(jump, until) };
}

/** Returns whether a reading must be stored. The clock is read often, so small differences are not stored. */
function shouldStoreReading(before: SeenClock | undefined, seen: SeenClock): boolean {
  const { at = Number.NEGATIVE_INFINITY, ...rest } = before ?? {};
  const { at: now, ...others } = seen;
  return now - at > DAY_MS / 24 || now < at || JSON.stringify(rest) !== JSON.stringify(others);
}

function disagreement(now: number, other: number): string {
  return `the clock of this machine says ${dayOf(now)}, another one ${dayOf(other)}: until they agree no stored run is removed`;
}

function jumped({ from, to }: { readonly from: number; readonly to: number }, until: number): string {
  return `the clock of this machine went from ${dayOf(from)} to ${dayOf(to)}: no stored run is removed before ${dayOf(until)}`;
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Watches the clock by which a store removes runs. */
export interface RetentionWatch {
  /** Takes the time from an answer of the live service. */
  readonly noteService: (time: number) => void;
  /** Returns why no run is removed now, or undefined if old runs are removed. Stores the reading of the clock. */
  readonly doubt: () => Promise<string | undefined>;
  /** Does the same as `doubt`, but stores nothing. */
  readonly peek: () => Promise<string | undefined>;
  /** Calls the listener once for each new reason why no run is removed. */
  readonly onDoubt: (listener: (doubt: string) => void) => void;
}

/** Creates the watch of a store's retention clock. `read` and `store` access the stored reading. */
export function retentionWatch(of: {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly keepMs: number;
  readonly read: () => Promise<SeenClock | undefined>;
  readonly store: (seen: SeenClock) => Promise<void>;
  /** Returns the newest time in the store from before this process wrote to it. Called if no reading is stored. */
  readonly newest: () => Promise<number | undefined>;
  /** Returns the time by another clock of the store. Absent if the store has none. */
  readonly other?: () => Promise<number>;
}): RetentionWatch {
  /**
   * The last time that the service sent, and when it came by the monotonic clock, which setting the time does not
   * change.
   */
  let said: { readonly time: number; readonly at: number } | undefined;
  let reported = "";
  let tell = (_doubt: string): void => {};
  const judged = async () => {
    const before = await of.read();
    const stored = of.other === undefined ? [] : [await of.other()];
    const now = of.clock.now();
    const others = [...stored, ...(said === undefined ? [] : [said.time + of.clock.monotonic() - said.at])];
    const newest = before === undefined && others.length === 0 ? await of.newest() : undefined;
    return { before, ...checkRetentionClock(before, { now, others, newest }, of.keepMs) };
  };
  return {
    noteService: (time) => {
      said = { time, at: of.clock.monotonic() };
    },
    peek: async () => (await judged()).doubt,
    async doubt() {
      const { before, seen, doubt } = await judged();
      if (seen !== undefined && shouldStoreReading(before, seen)) await of.store(seen);
      if (doubt !== undefined && doubt !== reported) tell(doubt);
      reported = doubt ?? "";
      return doubt;
    },
    onDoubt(listener) {
      tell = listener;
    },
  };
}
