import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { outcome } from "./state.ts";

/** The decision that the person started with the keyboard and must still confirm. Undefined if there is none. */
export const asking = signal<"approve" | "decline" | undefined>(undefined);

/**
 * Handles keyboard shortcuts: `/` searches, J and K move, A and D ask to approve or decline, Escape closes the message.
 * Ignores keys with Ctrl, Alt or Meta, and all keys while a dialog is open. In an input field, Escape leaves the field
 * and all other keys are text.
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

/** Executes the shortcut of a key. Returns false if the browser should handle the key as well. */
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

/** Moves the focus to the next (1) or previous (-1) row. If the view shows details beside the list, chooses the row. */
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
    // A large deletion can be approved only after a text was typed, so the key moves the focus to the field for this
    // text.
    document.querySelector<HTMLInputElement>(".foot input")?.focus();
    return button !== null;
  }
  asking.value = action;
  return true;
}
