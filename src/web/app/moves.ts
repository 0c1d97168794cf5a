import { signal } from "@preact/signals";

/** How long decisions are ignored after a button that decides has moved, in milliseconds. */
const REST_MS = 1000;

/**
 * Whether every button that decides has been where it is for a second. Until then decisions are ignored: who presses
 * means what was there a moment ago.
 */
export const isAtRest = signal(false);

let places: ReadonlyMap<string, string> = new Map();
let timer: ReturnType<typeof setTimeout> | undefined;
let observer: ResizeObserver | undefined;

/** Looks where the buttons that decide are; where one is new or has moved, decisions are ignored for a second. */
export function noteMoves(): void {
  if (observer === undefined) {
    observer = new ResizeObserver(noteMoves);
    observer.observe(document.body);
  }
  const now = new Map<string, string>();
  for (const button of document.querySelectorAll<HTMLElement>("[data-decides]")) {
    const { left, top } = button.getBoundingClientRect();
    // Those that are always in sight stay where they are as the rest is scrolled.
    const scrolled = button.closest(".foot") === null ? scrollY : 0;
    now.set(button.dataset.decides ?? "", `${Math.round(left + scrollX)} ${Math.round(top + scrolled)}`);
  }
  const hasMoved = [...now].some(([button, place]) => places.get(button) !== place);
  places = now;
  if (!hasMoved) return;
  isAtRest.value = false;
  clearTimeout(timer);
  timer = setTimeout(() => {
    isAtRest.value = true;
  }, REST_MS);
}
