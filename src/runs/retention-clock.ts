import * as z from "zod";
import type { Clock } from "../platform/clock.ts";

const DAY_MS = 86_400_000;
/** The longest time, in milliseconds, that a store may not be used for without a doubt about the clock. */
const PAUSE_MS = 7 * DAY_MS;

/** What is stored of the clock by which runs are removed. */
export const seenClock = z.object({
  /** When it was read last, in milliseconds since 1970. */
  at: z.number(),
  /** Whether another clock agreed with it then. */
  agreed: z.boolean(),
  /** The last jump, and whether another clock agreed before and after it. */
  jump: z.object({ from: z.number(), to: z.number(), before: z.boolean(), after: z.boolean() }).exactOptional(),
});
export type SeenClock = Readonly<z.infer<typeof seenClock>>;

/** What the clock of this machine is compared with. */
export interface Readings {
  readonly now: number;
  /** The same moment by other clocks that are known: that of the service, and that of the database. */
  readonly others: readonly number[];
  /** The newest time in the store that this process has not written itself. */
  readonly newest?: number | undefined;
}

/** The clock as it is to be stored, and why nothing may be removed by it now. */
export interface Judged {
  readonly seen: SeenClock | undefined;
  readonly doubt?: string;
}

/**
 * Whether runs may be removed by the clock of this machine: it must agree with the others, and must not have jumped. After
 * a jump nothing is removed for a day where other clocks agreed before and after it, and else for as long as runs are
 * kept (`keepMs`): so each run stays that long at least, whatever the clock said.
 */
export function judgedClock(before: SeenClock | undefined, { now, others, newest }: Readings, keepMs: number): Judged {
  const other = others.find((time) => Math.abs(time - now) > DAY_MS);
  // What is stored stays, so that nothing is left of the wrong time once it is right again.
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

/** Whether a clock has to be stored again: it is read often. */
function isToBeStored(before: SeenClock | undefined, seen: SeenClock): boolean {
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

/** What a store tells of the clock by which it removes runs, and is told of the service's. */
export interface RetentionWatch {
  /** Takes the time that an answer of the live service says. */
  readonly noteService: (time: number) => void;
  /** Why no run is removed now, undefined where old runs are; stores what was seen of the clock. */
  readonly doubt: () => Promise<string | undefined>;
  /** The same, without storing anything. */
  readonly peek: () => Promise<string | undefined>;
  /** Calls the listener once for each reason for which no run is removed. */
  readonly onDoubt: (listener: (doubt: string) => void) => void;
}

/** Keeps what is known of the clock; `read` and `store` have what is stored of it. */
export function retentionWatch(of: {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly keepMs: number;
  readonly read: () => Promise<SeenClock | undefined>;
  readonly store: (seen: SeenClock) => Promise<void>;
  /** The newest time in the store before this process wrote to it; asked for where no clock is stored. */
  readonly newest: () => Promise<number | undefined>;
  /** The time by another clock that the store has; absent: it has none. */
  readonly other?: () => Promise<number>;
}): RetentionWatch {
  /** What the service said last, and when, by a clock that no change of the time moves. */
  let said: { readonly time: number; readonly at: number } | undefined;
  let told = "";
  let tell = (_doubt: string): void => {};
  const judged = async () => {
    const before = await of.read();
    const stored = of.other === undefined ? [] : [await of.other()];
    const now = of.clock.now();
    const others = [...stored, ...(said === undefined ? [] : [said.time + of.clock.monotonic() - said.at])];
    const newest = before === undefined && others.length === 0 ? await of.newest() : undefined;
    return { before, ...judgedClock(before, { now, others, newest }, of.keepMs) };
  };
  return {
    noteService: (time) => {
      said = { time, at: of.clock.monotonic() };
    },
    peek: async () => (await judged()).doubt,
    async doubt() {
      const { before, seen, doubt } = await judged();
      if (seen !== undefined && isToBeStored(before, seen)) await of.store(seen);
      if (doubt !== undefined && doubt !== told) tell(doubt);
      told = doubt ?? "";
      return doubt;
    },
    onDoubt(listener) {
      tell = listener;
    },
  };
}
