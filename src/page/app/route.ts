import { computed, signal } from "@preact/signals";
import type { ViewName } from "../wire.ts";
import { hello, outcome } from "./state.ts";

/** The views' names as people read them, in their order. */
export const VIEW_TITLES = {
  approvals: "Approvals",
  runs: "Runs",
  events: "Events",
  targetings: "Targetings",
  faults: "Faults",
} as const satisfies Record<ViewName, string>;

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
  // What came of a button belongs to the view in which it was pressed.
  outcome.value = "";
});

/** The view that is shown, and in it the run, as the address says: `#/runs/{runId}`. */
export const route = computed(() => {
  const [, name, id] = hash.value.split("/");
  const views = hello.value?.views ?? [];
  const view = views.find((one) => one === name) ?? views[0];
  return { view, id: id || undefined };
});
