import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { RunAction, RunRow } from "../wire.ts";
import { isAtRest, noteMoves } from "./moves.ts";
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
