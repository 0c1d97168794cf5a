import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { outcome } from "./state.ts";

/** A decision that a key asked for, which the person has to confirm. */
export const asking = signal<"approve" | "decline" | undefined>(undefined);

/**
 * What keys without Ctrl, Alt and Meta do: `/` searches, J and K move, A and D decide. If the person writes, Escape leaves
 * the field, and the others are letters.
 */
export function useKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      if (event.target instanceof HTMLElement && isWriting(event.target)) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      if (document.querySelector("dialog[open]") !== null) return;
      if (act(event.key.toLowerCase())) event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function isWriting(target: HTMLElement): boolean {
  return target.matches("input, textarea, select, [contenteditable]");
}

/** Does what a key means; false where it means nothing here. */
function act(key: string): boolean {
  switch (key) {
    case "/": {
      const field = document.querySelector<HTMLInputElement>("main input[type=search]");
      field?.focus();
      field?.select();
      return field !== null;
    }
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "a":
      return ask("approve");
    case "d":
      return ask("decline");
    case "escape":
      outcome.value = "";
      return false;
    default:
      return false;
  }
}

/** Goes to the next or the previous row of a list; in a list with a pane it is chosen there. */
function move(by: 1 | -1): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const now = document.activeElement instanceof HTMLElement ? rows.indexOf(document.activeElement) : -1;
  const chosen = now === -1 ? rows.findIndex((row) => row.matches("[aria-current]")) : now;
  const next = rows[Math.min(rows.length - 1, Math.max(0, chosen + by))];
  next?.focus();
  if (next?.dataset.row === "choose") next.click();
  return next !== undefined;
}

function ask(action: "approve" | "decline"): boolean {
  const button = document.querySelector<HTMLButtonElement>(`[data-action=${action}]`);
  if (button === null || button.disabled) {
    // What has to be typed comes first.
    document.querySelector<HTMLInputElement>(".foot input")?.focus();
    return button !== null;
  }
  asking.value = action;
  return true;
}
