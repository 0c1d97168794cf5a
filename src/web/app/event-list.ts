import { batch, computed, effect, signal } from "@preact/signals";
import type { EventList, EventRow, Verdict } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { counted, number } from "./plain-words.ts";
import { read } from "./requests.ts";
import { announced, arrived, events, eventsAge, outcome } from "./state.ts";

/** The pause before matching events are requested, in milliseconds: several keystrokes or events cause one request. */
const GATHER_MS = 300;

export interface Wanted {
  readonly filter: string;
  readonly verdict: Verdict | undefined;
  readonly problem: number | undefined;
}

const ALL: Wanted = { filter: "", verdict: undefined, problem: undefined };

export const wanted = signal<Wanted>(ALL);
/**
 * While new events are held back: the rows that are shown, and how many events had arrived when holding began (`from`).
 * Undefined if new events are shown at once.
 */
const held = signal<{ readonly rows: readonly EventRow[]; readonly from: number } | undefined>(undefined);
export const isPaused = signal(false);
/** The newest events that match the filter. Undefined until they have been read. */
const found = signal<EventList | undefined>(undefined);
/** The shown page of older events. `before` has the sequence numbers of the events that follow it and the newer ones. */
interface OlderPage extends EventList {
  readonly before: readonly number[];
}

const NEWEST: OlderPage = { before: [], events: [], older: false, total: 0 };
const older = signal(NEWEST);

export const isOlder = computed(() => older.value.before.length > 0);
const isNarrowed = computed(() => {
  const { filter, verdict, problem } = wanted.value;
  return filter !== "" || verdict !== undefined || problem !== undefined;
});

const newest = computed(() => (isNarrowed.value ? (found.value?.events ?? []) : events.value));
export const shownEvents = computed(() => (isOlder.value ? older.value.events : (held.value?.rows ?? newest.value)));
export const hasOlder = computed(() => {
  if (isOlder.value) return older.value.older;
  const last = shownEvents.value.at(-1);
  // The sequence number of the last event before the log was reset. A reset does not restart the numbers.
  const forgotten = (events.value[0]?.seq ?? 0) - arrived.value;
  return isNarrowed.value ? found.value?.older === true : last !== undefined && last.seq > forgotten + 1;
});

/** How many events match the filter. Undefined without a filter, and until it is known. */
export const matching = computed(() => (isNarrowed.value ? found.value?.total : undefined));
/** Says how many events match the filter. Empty if that is not known. */
export const matches = computed(() => {
  const total = matching.value;
  if (total === undefined) return "";
  return total === 0 ? "No event matches." : `${number(total)} of ${counted(arrived.value, "event")} match.`;
});

export const late = computed(() => (held.value === undefined ? 0 : Math.max(0, arrived.value - held.value.from)));

export function pause(): void {
  isPaused.value = !isPaused.value;
  hold(isPaused.value);
}

effect(() => {
  // After a reset of the log or a restart of the sandbox, the stored rows no longer exist. A paused list keeps them.
  if (eventsAge.value > 0 && !isPaused.peek()) held.value = undefined;
});

/**
 * If `is` is true, holds new events back, because the person points at the list or uses it with the keyboard: rows must
 * not move then. If `is` is false, shows new events again, unless the person has paused the list.
 */
export function hold(is: boolean): void {
  if (is) held.value ??= { rows: newest.value, from: arrived.value };
  else if (!isPaused.value) held.value = undefined;
}

/** Settles when the page that was asked for last is shown. */
let moved = Promise.resolve();

export function showOlder(): void {
  showPage((before) => {
    const last = shownEvents.value.at(-1);
    return last !== undefined && hasOlder.value ? [...before, last.seq] : before;
  });
}

export function showNewer(): void {
  showPage((before) => before.slice(0, -1));
}

/** Shows another page. A press that comes before the former one is answered starts from the page that this one shows. */
function showPage(next: (before: readonly number[]) => readonly number[]): void {
  moved = moved.then(async () => {
    const asked = wanted.value;
    const before = next(older.value.before);
    const position = before.at(-1);
    const list = position === undefined ? NEWEST : await readEvents(position);
    // Another filter, chosen meanwhile, shows its own first page.
    if (list !== undefined && asked === wanted.value) older.value = { ...list, before };
  });
}

async function readEvents(position?: number): Promise<EventList | undefined> {
  const { filter, verdict, problem } = wanted.peek();
  const query = new URLSearchParams({
    filter,
    ...(verdict !== undefined && { verdict }),
    ...(problem !== undefined && { problem: String(problem) }),
    ...(position !== undefined && { before: String(position) }),
  });
  const answer = await read<EventList>(`${PATHS.events}?${query}`);
  if ("data" in answer) return { ...answer.data, events: answer.data.events.toReversed() };
  outcome.value = answer.message;
  return undefined;
}

let isLooking = false;
/** Set if the filter has changed or events have arrived since the matching events were requested. */
let isOutdated = false;

function readEventsSoon(): void {
  isOutdated = true;
  if (isLooking) return;
  isLooking = true;
  setTimeout(async () => {
    isOutdated = false;
    const asked = wanted.peek();
    const list = isNarrowed.peek() ? await readEvents() : undefined;
    isLooking = false;
    if (isOutdated) readEventsSoon();
    if (list !== undefined && asked === wanted.peek()) {
      const isFirst = found.peek() === undefined;
      found.value = list;
      if (isFirst) announced.value = matches.peek();
    }
  }, GATHER_MS);
}

effect(() => {
  // With a filter, reads the list again if the filter changes, events arrive, or the log is reset.
  const isLive = arrived.value >= 0 && held.value === undefined && !isOlder.value;
  if (isNarrowed.value && wanted.value && isLive) readEventsSoon();
});

export function want(change: Partial<Wanted>): void {
  batch(() => {
    wanted.value = { ...wanted.peek(), ...change };
    found.value = undefined;
    older.value = NEWEST;
    held.value = undefined;
    isPaused.value = false;
  });
}

export function clearFilter(): void {
  want(ALL);
}
