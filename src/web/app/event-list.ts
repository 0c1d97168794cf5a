import { batch, computed, effect, signal } from "@preact/signals";
import type { EventList, EventRow, Verdict } from "../sandbox-wire.ts";
import { PATHS } from "../wire.ts";
import { read } from "./requests.ts";
import { arrived, events, outcome } from "./state.ts";

/** How long the page waits before it asks the server for the events that fit, as letters and events come in. */
const GATHER_MS = 300;

/** Which events are wanted: those that contain a text, with a result, with a problem. */
export interface Wanted {
  readonly filter: string;
  readonly verdict: Verdict | undefined;
  /** The ID of a problem. */
  readonly problem: number | undefined;
}

const ALL: Wanted = { filter: "", verdict: undefined, problem: undefined };

export const wanted = signal<Wanted>(ALL);
/** The events that stay while the person looks at them; undefined: the list is live. */
const held = signal<readonly EventRow[] | undefined>(undefined);
/** What the server found for what is wanted. */
const found = signal<EventList>({ events: [], older: false });
/** Where older events are shown: the sequence numbers before which pages began, the last one for the page shown. */
const before = signal<readonly number[]>([]);
const olderPage = signal<EventList>({ events: [], older: false });

export const isPaused = computed(() => held.value !== undefined);
export const isOlder = computed(() => before.value.length > 0);
/** Whether some events are left out by what is wanted. */
export const isNarrowed = computed(() => {
  const { filter, verdict, problem } = wanted.value;
  return filter !== "" || verdict !== undefined || problem !== undefined;
});

const newest = computed(() => (isNarrowed.value ? found.value.events : events.value));
/** The events that are shown, the newest first. */
export const shownEvents = computed(() => (isOlder.value ? olderPage.value.events : (held.value ?? newest.value)));
/** Whether there may be events before those that are shown. */
export const hasOlder = computed(() => {
  if (isOlder.value) return olderPage.value.older;
  const last = shownEvents.value.at(-1);
  // Numbers go on after a reset: the first event since has the one after these.
  const forgotten = (events.value[0]?.seq ?? 0) - arrived.value;
  return isNarrowed.value ? found.value.older : last !== undefined && last.seq > forgotten + 1;
});

/** Keeps the list as it is, or lets it go on. */
export function pause(): void {
  held.value = isPaused.value ? undefined : newest.value;
}

/** Shows the events before those that are shown. */
export async function showOlder(): Promise<void> {
  const last = shownEvents.value.at(-1);
  if (last !== undefined) await showBefore([...before.value, last.seq]);
}

/** Shows the page of events from which the person came. */
export async function showNewer(): Promise<void> {
  await showBefore(before.value.slice(0, -1));
}

async function showBefore(positions: readonly number[]): Promise<void> {
  const position = positions.at(-1);
  const list = position === undefined ? undefined : await readEvents(position);
  batch(() => {
    if (list !== undefined) olderPage.value = list;
    if (position === undefined || list !== undefined) before.value = positions;
  });
}

/** Reads the newest events that are wanted, the newest first; undefined where that fails, which is shown. */
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

/** Asks the server soon for what is wanted. */
function lookSoon(): void {
  if (isLooking) return;
  isLooking = true;
  setTimeout(async () => {
    const asked = wanted.peek();
    const list = isNarrowed.peek() ? await readEvents() : undefined;
    isLooking = false;
    if (asked !== wanted.peek()) lookSoon();
    else if (list !== undefined) found.value = list;
  }, GATHER_MS);
}

effect(() => {
  // What is wanted, what arrives, and a reset call for another look.
  const isLive = arrived.value >= 0 && !isPaused.value && !isOlder.value;
  if (isNarrowed.value && wanted.value && isLive) lookSoon();
});

/** Changes which events are wanted, and shows the newest of them. */
export function want(change: Partial<Wanted>): void {
  batch(() => {
    wanted.value = { ...wanted.peek(), ...change };
    found.value = { events: [], older: false };
    before.value = [];
    held.value = undefined;
  });
}

/** Shows all events again. */
export function wantAll(): void {
  want(ALL);
}
