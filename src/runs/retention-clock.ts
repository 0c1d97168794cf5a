import * as z from "zod";
import { type Clock, DAY_MS } from "../platform/clock.ts";

/** If the clock advances by more than this many milliseconds between two readings, one of them may be wrong. */
const PAUSE_MS = 7 * DAY_MS;

export const seenClock = z.object({
  at: z.number(),
  agreed: z.boolean(),
  jump: z.object({ from: z.number(), to: z.number(), before: z.boolean(), after: z.boolean() }).exactOptional(),
});
export type SeenClock = Readonly<z.infer<typeof seenClock>>;

export interface Readings {
  readonly now: number;
  readonly others: readonly number[];
  /**
   * The creation time of the newest run that is older than this process. Used instead of the last stored reading of the
   * clock if none is stored yet and no other clock is known. Undefined if there is no such run.
   */
  readonly newest?: number | undefined;
}

/** `seen`: the clock reading to store. `doubt`: why no run may be removed now; absent if runs may be removed. */
export interface Judged {
  readonly seen: SeenClock | undefined;
  readonly doubt?: string;
}

/**
 * Returns whether old runs may be removed now. A wrong clock of this machine must not remove runs early. So the clock
 * must agree with the known times of the service and the database. After it jumps, no run is removed for some time: one
 * day if it agreed with these times before and after the jump, otherwise `keepMs`, but at least one day.
 */
export function checkRetentionClock(
  before: SeenClock | undefined,
  { now, others, newest }: Readings,
  keepMs: number,
): Judged {
  const other = others.find((time) => Math.abs(time - now) > DAY_MS);
  // A reading that contradicts another clock is not stored. Otherwise the later correction would count as a jump.
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

/** Returns whether to store a reading of the clock. The clock is read often, so small differences are not stored. */
function shouldStoreReading(before: SeenClock | undefined, seen: SeenClock): boolean {
  const { at = Number.NEGATIVE_INFINITY, ...rest } = before ?? {};
  const { at: now, ...others } = seen;
  return now - at > DAY_MS / 24 || now < at || JSON.stringify(rest) !== JSON.stringify(others);
}

function disagreement(now: number, otherTime: number): string {
  const other = `another clock says ${dayOf(otherTime)}`;
  return `the clock of this machine says ${dayOf(now)}, but ${other}; no stored run is removed until they agree`;
}

function jumped({ from, to }: { readonly from: number; readonly to: number }, until: number): string {
  const jump = `the clock of this machine jumped from ${dayOf(from)} to ${dayOf(to)}`;
  return `${jump}; no stored run is removed before ${dayOf(until)}`;
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export interface RetentionWatch {
  readonly noteService: (time: number) => void;
  /** Stores a clock reading and reports a new doubt. Returns why no run may be removed now; undefined if one may. */
  readonly doubt: () => Promise<string | undefined>;
  readonly peek: () => Promise<string | undefined>;
  /** Sets the listener for doubts. It is called once for each new doubt. */
  readonly onDoubt: (listener: (doubt: string) => void) => void;
}

export function retentionWatch(of: {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly keepMs: number;
  readonly read: () => Promise<SeenClock | undefined>;
  readonly store: (seen: SeenClock) => Promise<void>;
  /** Returns when the newest run older than this process was created. Called only if no reading is stored. */
  readonly newest: () => Promise<number | undefined>;
  readonly other?: () => Promise<number>;
}): RetentionWatch {
  /** The time in the last answer of the service, and the monotonic time at which the answer arrived. */
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
