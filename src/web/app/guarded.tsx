import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { RunAction, RunRow } from "../wire.ts";
import { outcome } from "./state.ts";

/** What is said where a button is pressed that came or moved a moment ago. */
const MOVED = "The page changed a moment ago, so nothing was decided. Look again, then press the button.";

interface GuardedProps {
  readonly action: RunAction;
  readonly run: RunRow;
  readonly isOff: boolean;
  /** The ID of the text that says why it is off. */
  readonly describedBy: string;
  readonly press: () => void;
  readonly className?: string;
  readonly children: ComponentChildren;
}

/** A button that decides about a run: for a second after anything moved it does nothing, and says so. */
export function Guarded({ action, run, isOff, describedBy, press, className = "", children }: GuardedProps) {
  useLayoutEffect(noteMoves);
  // Once they are gone: buttons that come back at the same place are new.
  useLayoutEffect(() => () => queueMicrotask(noteMoves), []);
  const pressed = (): void => {
    // What has moved since the last frame counts as well.
    noteMoves();
    if (isAtRest.peek()) press();
    else outcome.value = MOVED;
  };
  return (
    <button
      type="button"
      class={className}
      data-action={action}
      data-decides={`${run.runId} ${action}`}
      aria-disabled={!isAtRest.value}
      disabled={isOff}
      {...(isOff && { "aria-describedby": describedBy })}
      onClick={pressed}
    >
      {children}
    </button>
  );
}

/** How long decisions are ignored after a button that decides has moved, in milliseconds. */
const REST_MS = 1000;

/**
 * Whether every button that decides has been where it is for a second. Until then decisions are ignored: who presses
 * means what was there a moment ago.
 */
const isAtRest = signal(false);

let places: ReadonlyMap<string, string> = new Map();
let timer: ReturnType<typeof setTimeout> | undefined;
let observer: ResizeObserver | undefined;

/** Looks where the buttons that decide are; where one is new or has moved, decisions are ignored for a second. */
function noteMoves(): void {
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
