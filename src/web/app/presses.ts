// Handles presses on rows of lists that change. If rows move just before a press, the press opens the row that the
// person saw at that place before.

/** What counts as a row: every link, and the buttons of lists of problems. Not the buttons that decide on a run. */
const ROWS = "a, .problem, .items button";
/** If a press begins within this many milliseconds after rows have moved, the person aimed at their old places. */
const UNSEEN_MS = 100;
/** How many pixels the pointer may move during a press. If it moves further, the press is not redirected to a row. */
const STILL = 8;

interface Press {
  readonly row: HTMLElement;
  readonly x: number;
  readonly y: number;
}

let pressed: Press | undefined;
let movedAt = Number.NEGATIVE_INFINITY;
let places: readonly (readonly [HTMLElement, DOMRect])[] = [];

/** Records where rows are. Must be called before rows move. */
export function noteRows(): void {
  // If rows have moved a moment ago, the person still aims at the places before that move, so these are kept.
  if (performance.now() - movedAt < UNSEEN_MS) return;
  movedAt = performance.now();
  places = [...document.querySelectorAll<HTMLElement>(ROWS)].map((row) => [row, row.getBoundingClientRect()]);
}

/**
 * Returns the row at which a person aims. If rows have just moved, this is the row that was at that place before. Null
 * or undefined if there is no row.
 */
function aimedAt({ target, clientX: x, clientY: y }: MouseEvent): HTMLElement | null | undefined {
  const seen = performance.now() - movedAt < UNSEEN_MS ? places : [];
  const [row] = seen.find(([, { left, right, top, bottom }]) => left <= x && x < right && top <= y && y < bottom) ?? [];
  return row ?? (target instanceof Element ? target.closest<HTMLElement>(ROWS) : undefined);
}

addEventListener(
  "pointerdown",
  (event) => {
    const row = aimedAt(event);
    pressed = row ? { row, x: event.clientX, y: event.clientY } : undefined;
  },
  true,
);

addEventListener(
  "click",
  (event) => {
    const { row, x, y } = pressed ?? {};
    pressed = undefined;
    // A press by keyboard always hits the focused element.
    if (row === undefined || x === undefined || y === undefined || event.detail === 0 || !row.isConnected) return;
    if (event.target instanceof Node && row.contains(event.target)) return;
    if (Math.hypot(event.clientX - x, event.clientY - y) > STILL) return;
    event.preventDefault();
    event.stopPropagation();
    row.click();
  },
  true,
);
