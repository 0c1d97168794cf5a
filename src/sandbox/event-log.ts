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
}

const REMEMBERED = 100_000;
const REMEMBERED_LETTERS = 64 * 1_048_576;
const LETTERS_OF_FINDING = 128;

/** Makes an empty event log: a ring that forgets the oldest. */
export function eventLog(): EventLog {
  let ring: (ArrivedEvent | undefined)[] = [];
  let oldest = 0;
  let arrived = 0;
  let letters = 0;
  let counts: Record<Verdict, number> = { recorded: 0, ignored: 0, rejected: 0 };

  function dropOldest(): void {
    letters -= lettersOf(ring[oldest % REMEMBERED]);
    ring[oldest % REMEMBERED] = undefined;
    oldest += 1;
  }

  return {
    add(event) {
      if (arrived - oldest >= REMEMBERED) dropOldest();
      ring[arrived % REMEMBERED] = event;
      arrived += 1;
      letters += lettersOf(event);
      counts[event.verdict] += 1;
      while (letters > REMEMBERED_LETTERS && arrived - oldest > 1) dropOldest();
    },
    clear() {
      ring = [];
      oldest = 0;
      arrived = 0;
      letters = 0;
      counts = { recorded: 0, ignored: 0, rejected: 0 };
    },
    read(filter, limit) {
      const newestFirst: ArrivedEvent[] = [];
      let total = 0;
      for (let position = arrived - 1; position >= oldest; position -= 1) {
        const event = ring[position % REMEMBERED];
        if (event === undefined || !matches(event, filter)) continue;
        total += 1;
        if (newestFirst.length < limit) newestFirst.push(event);
      }
      return { events: newestFirst.reverse(), total, dropped: oldest };
    },
    counts() {
      return { ...counts };
    },
  };
}

/** About how much room an event takes. */
function lettersOf(event: ArrivedEvent | undefined): number {
  return event === undefined ? 0 : event.text.length + event.findings.length * LETTERS_OF_FINDING;
}

function matches(event: ArrivedEvent, { verdict, eventName, uid, since }: EventFilter): boolean {
  return (
    (verdict === undefined || event.verdict === verdict) &&
    (eventName === undefined || event.eventName === eventName) &&
    (uid === undefined || event.uid === uid) &&
    (since === undefined || Date.parse(event.at) >= since)
  );
}
