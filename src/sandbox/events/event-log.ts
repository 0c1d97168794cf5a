import { lastEntries } from "../last-entries.ts";
import type { Finding, Verdict } from "./event-verdict.ts";

/** An event that arrived, as it is kept. */
export interface ArrivedEvent {
  /** Arrival time, ISO 8601. */
  readonly at: string;
  readonly verdict: Verdict;
  readonly findings: readonly Finding[];
  readonly uid: string | null;
  readonly eventName: string | null;
  /** The body as it was sent. */
  readonly text: string;
  readonly isJson: boolean;
  /** What the real endpoint answered, where events are passed on to one. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

/** Which events to read; `since` in milliseconds since 1970. */
interface EventFilter {
  readonly verdict?: Verdict | undefined;
  readonly eventName?: string | undefined;
  readonly uid?: string | undefined;
  readonly since?: number | undefined;
}

/** The events that arrived: the last 100,000 or the last 64 MiB of bodies and findings, whichever is less. */
export interface EventLog {
  add(event: ArrivedEvent): void;
  clear(): void;
  /** The newest `limit` that match, oldest first; how many match in all; and how many were dropped for room. */
  read(
    filter: EventFilter,
    limit: number,
  ): { readonly events: readonly ArrivedEvent[]; readonly total: number; readonly dropped: number };
  /** How many events of each verdict have arrived since the start or the last `clear`, dropped ones included. */
  counts(): Readonly<Record<Verdict, number>>;
  /** An event by its number; they are numbered from 1 on as they arrive. Undefined for one that is forgotten. */
  at(number: number): ArrivedEvent | undefined;
  /** The numbers of the newest event ever, and of the last one before the last `clear`; 0 where there is none. */
  newest(): number;
  cleared(): number;
}

const REMEMBERED = 100_000;
const REMEMBERED_LETTERS = 64 * 1_048_576;
const LETTERS_OF_FINDING = 128;

/** Makes an empty event log; calls `changed` after each change. */
export function eventLog(changed: () => void = () => undefined): EventLog {
  const kept = lastEntries<ArrivedEvent>({ most: REMEMBERED, mostLetters: REMEMBERED_LETTERS, lettersOf });
  let counts = NONE;
  return {
    add(event) {
      kept.add(event);
      counts = { ...counts, [event.verdict]: counts[event.verdict] + 1 };
      changed();
    },
    clear() {
      kept.clear();
      counts = NONE;
      changed();
    },
    read(filter, limit) {
      const newestFirst: ArrivedEvent[] = [];
      let total = 0;
      for (const event of kept.newestFirst()) {
        if (!matches(event, filter)) continue;
        total += 1;
        if (newestFirst.length < limit) newestFirst.push(event);
      }
      return { events: newestFirst.reverse(), total, dropped: kept.dropped() };
    },
    counts: () => counts,
    at: kept.at,
    newest: kept.newest,
    cleared: kept.cleared,
  };
}

const NONE: Readonly<Record<Verdict, number>> = { recorded: 0, ignored: 0, rejected: 0 };

/** About how much room an event takes. */
function lettersOf({ text, findings }: ArrivedEvent): number {
  return text.length + findings.length * LETTERS_OF_FINDING;
}

function matches(event: ArrivedEvent, { verdict, eventName, uid, since }: EventFilter): boolean {
  return (
    (verdict === undefined || event.verdict === verdict) &&
    (eventName === undefined || event.eventName === eventName) &&
    (uid === undefined || event.uid === uid) &&
    (since === undefined || Date.parse(event.at) >= since)
  );
}
