import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { RunAction, RunRow } from "../wire.ts";
import { outcome, set } from "./state.ts";

/** How long presses of decision buttons are ignored after one of them has appeared or moved, in milliseconds. */
const REST_MS = 1000;

/** Shown if a press is ignored, because a button has just appeared or moved. */
const PAGE_MOVED = "The page changed a moment ago, so nothing was decided. Look again and press again.";

interface GuardedProps {
  readonly action: RunAction;
  readonly run: RunRow;
  readonly isOff: boolean;
  /** The ID of the element with the reason why the button is disabled. */
  readonly describedBy: string;
  readonly press: () => void;
  readonly className?: string;
  readonly children: ComponentChildren;
}

/**
 * A button that decides on a run. After a decision button has appeared or moved, presses are ignored for one second,
 * with a message: the person may have aimed at something else.
 */
export function Guarded({ action, run, isOff, describedBy, press, className = "", children }: GuardedProps) {
  useLayoutEffect(recordPositions);
  // Records the positions again when this button is removed. If it returns to the same place, it then counts as new.
  useLayoutEffect(() => () => queueMicrotask(recordPositions), []);
  const pressed = (): void => {
    // The button may have moved since its position was last recorded.
    recordPositions();
    if (isAtRest.peek()) press();
    else outcome.value = PAGE_MOVED;
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

/** Shows the buttons that approve or decline a run. The approve button is labelled with what the run does. */
export function DecisionButtons(buttons: {
  readonly run: RunRow;
  readonly isOff: (action: "approve" | "decline") => boolean;
  readonly describedBy: string;
  readonly press: (action: "approve" | "decline") => void;
}) {
  const { run, isOff, press, ...rest } = buttons;
  const { act = "Approve", magnitude } = run.waiting ?? {};
  return (["decline", "approve"] as const)
    .filter((action) => run.actions.includes(action))
    .map((action) => (
      <Guarded
        key={action}
        {...{ ...rest, action, run }}
        isOff={isOff(action)}
        className={action === "decline" ? "" : magnitude?.verb === "deleted" ? "danger" : "primary"}
        press={() => press(action)}
      >
        {action === "decline" ? "Decline" : act}
      </Guarded>
    ));
}

/**
 * Whether all decision buttons have been in their place for one second. Before that, presses are ignored, because the
 * person may have aimed at what was there before.
 */
const isAtRest = signal(false);

interface Place {
  readonly left: number;
  readonly top: number;
  readonly height: number;
}

let places: ReadonlyMap<string, Place> = new Map();
let timer: ReturnType<typeof setTimeout> | undefined;
let observer: ResizeObserver | undefined;

/** Records the positions of the decision buttons. If one is new or has moved, presses are ignored for one second. */
function recordPositions(): void {
  if (observer === undefined) {
    observer = new ResizeObserver(recordPositions);
    observer.observe(document.body);
  }
  const now = new Map<string, Place>();
  let hasMoved = false;
  for (const button of document.querySelectorAll<HTMLElement>("[data-decides]")) {
    const { left, top, height } = button.getBoundingClientRect();
    // Positions are relative to the page, so scrolling does not count as a move. Buttons in the footer stay in place
    // when the page scrolls.
    const scrolled = button.closest(".foot") === null ? scrollY : 0;
    const place = { left: left + scrollX, top: top + scrolled, height };
    const key = button.dataset.decides ?? "";
    const before = places.get(key);
    const stays = before !== undefined && isNear(before, place);
    hasMoved ||= !stays;
    now.set(key, stays ? before : place);
  }
  places = now;
  if (!hasMoved) return;
  isAtRest.value = false;
  clearTimeout(timer);
  timer = setTimeout(() => set(isAtRest, true), REST_MS);
}

/** Returns whether a button moved by less than half its height, as in the footer when the page scrolls to the end. */
function isNear(before: Place, { left, top, height }: Place): boolean {
  return Math.max(Math.abs(left - before.left), Math.abs(top - before.top)) < height / 2;
}
