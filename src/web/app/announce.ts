import { computed, effect, signal } from "@preact/signals";
import { route } from "./route.ts";
import { arrived, faults, runList, targetings, verdicts, waitingRuns } from "./state.ts";

/** Counts change many times a second, and are read out at most this often. */
const EVERY_MS = 2000;

const counts = computed(() => {
  switch (route.value.view) {
    case "approvals":
      return said(waitingRuns.value.length, "run waits for a decision.", "runs wait for a decision.");
    case "runs": {
      const running = runList.value.filter(({ status }) => status === "running").length;
      return `${said(runList.value.length, "run", "runs")}, ${running} running.`;
    }
    case "events": {
      const { recorded, ignored, rejected } = verdicts.value;
      const all = said(arrived.value, "event", "events");
      return `${all}: ${number(recorded)} recorded, ${number(ignored)} dropped, ${number(rejected)} rejected.`;
    }
    case "targetings":
      return `${said(targetings.value.targetings.length, "targeting", "targetings")}.`;
    case "faults":
      return `${said(faults.value.faults.length, "fault", "faults")}.`;
    default:
      return "";
  }
});

/** The counts of the view that is shown, as the live region says them. */
export const announced = signal("");

let isDue = false;
let shownView = route.peek().view;
effect(() => {
  const text = counts.value;
  const { view } = route.value;
  if (view !== shownView || announced.peek() === "") announced.value = text;
  shownView = view;
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    announced.value = counts.peek();
  }, EVERY_MS);
});

function said(count: number, one: string, many: string): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const NUMBERS = new Intl.NumberFormat("en");

/** A number as people read it. */
export function number(value: number): string {
  return NUMBERS.format(value);
}
