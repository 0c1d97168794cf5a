import { computed, signal } from "@preact/signals";
import type { ViewName } from "../wire.ts";
import { hello, outcome } from "./state.ts";

/** The views' names as people read them, in their order. */
export const VIEW_TITLES = {
  overview: "Overview",
  approvals: "Approvals",
  runs: "Runs",
  targetings: "Targetings",
  events: "Events",
  faults: "Fault injection",
} as const satisfies Record<ViewName, string>;

const hash = signal(location.hash);
/** What is said in the view that is gone to next. */
let carried = "";
addEventListener("hashchange", () => {
  hash.value = location.hash;
  // What came of a button belongs to the view in which it was pressed.
  outcome.value = carried;
  carried = "";
});

/** Takes over an address that was set without going there. */
export function noteAddress(): void {
  hash.value = location.hash;
}

/** Goes to another view, and says there what came of a button that was pressed here. */
export function go(address: string, said: string): void {
  carried = said;
  location.hash = address;
}

/** The view that is shown, and what is chosen in it, as the address says: `#/runs/{runId}`; `#/` is the first view. */
export const route = computed(() => {
  const [, name, id] = hash.value.split("/");
  const views = hello.value?.views ?? [];
  const view = views.find((one) => one === name) ?? views[0];
  return { view, id: id || undefined };
});
