import { batch, computed, effect, signal } from "@preact/signals";
import { PATHS } from "../../paths.ts";
import type { EventList, EventRow } from "../../wire.ts";
import { read } from "../requests.ts";
import { arrived, events, outcome } from "../state.ts";

/** How long the page waits before it asks the server for the events that fit a filter, as letters and events come in. */
const GATHER_MS = 300;

/** What the events have to contain; empty: everything. */
export const filter = signal("");
/** The events that stay while the person looks at them; undefined: the list is live. */
const held = signal<readonly EventRow[] | undefined>(undefined);
/** What the server found for the filter. */
const found = signal<EventList>({ events: [], older: false });
/** Where older events are shown: the sequence numbers before which pages began, the last one for the page shown. */
const before = signal<readonly number[]>([]);
const olderPage = signal<EventList>({ events: [], older: false });

export const isPaused = computed(() => held.value !== undefined);
export const isOlder = computed(() => before.value.length > 0);

const newest = computed(() => (filter.value === "" ? events.value : found.value.events));
/** The events that are shown, the newest first. */
export const shownEvents = computed(() => (isOlder.value ? olderPage.value.events : (held.value ?? newest.value)));
/** Whether there may be events before those that are shown. */
export const hasOlder = computed(() => {
  if (isOlder.value) return olderPage.value.older;
  const last = shownEvents.value.at(-1);
  // Numbers go on after a reset: the first event since has the one after these.
  const forgotten = (events.value[0]?.seq ?? 0) - arrived.value;
  return filter.value === "" ? last !== undefined && last.seq > forgotten + 1 : found.value.older;
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

async function showBefore(places: readonly number[]): Promise<void> {
  const place = places.at(-1);
  const list = place === undefined ? undefined : await readEvents(place);
  batch(() => {
    if (list !== undefined) olderPage.value = list;
    if (place === undefined || list !== undefined) before.value = places;
  });
}

/** Reads the newest events that fit the filter, the newest first; undefined where that fails, which is said. */
async function readEvents(place?: number): Promise<EventList | undefined> {
  const query = new URLSearchParams({ filter: filter.peek(), ...(place !== undefined && { before: String(place) }) });
  const answer = await read<EventList>(`${PATHS.events}?${query}`);
  if ("data" in answer) return { ...answer.data, events: answer.data.events.toReversed() };
  outcome.value = answer.message;
  return undefined;
}

let isLooking = false;

/** Asks the server soon for what fits the filter. */
function lookSoon(): void {
  if (isLooking) return;
  isLooking = true;
  setTimeout(async () => {
    const asked = filter.peek();
    const list = asked === "" ? undefined : await readEvents();
    isLooking = false;
    if (asked !== filter.peek()) lookSoon();
    else if (list !== undefined) found.value = list;
  }, GATHER_MS);
}

effect(() => {
  // The filter, what arrives, and a reset call for another look.
  const isLive = arrived.value >= 0 && !isPaused.value && !isOlder.value;
  if (filter.value !== "" && isLive) lookSoon();
});

/** Changes the filter, and shows the newest events that fit. */
export function setFilter(text: string): void {
  batch(() => {
    filter.value = text;
    found.value = { events: [], older: false };
    before.value = [];
    held.value = undefined;
  });
}
