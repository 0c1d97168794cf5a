import { computed, effect, signal } from "@preact/signals";
import type { EventFigures, EventRow, FaultsMessage, SandboxMessage, TargetingsMessage } from "../sandbox-wire.ts";
import type { Hello, LoginWays, RunRow, ViewName } from "../wire.ts";
import { counted, number } from "./plain-words.ts";

// What the page knows. The stream writes it; the views read it.

/** How the page stands to its server. */
export type Link =
  | { readonly is: "waiting" | "live" | "lost" | "ended" }
  | { readonly is: "refused"; readonly ways: LoginWays };

export const link = signal<Link>({ is: "waiting" });
/** Whether the server is there: without it nothing is decided. A view within a host has no link of its own. */
export const isConnected = computed(() => link.value.is !== "lost" && link.value.is !== "ended");
/** Whether the server is gone for good. */
export const hasEnded = computed(() => link.value.is === "ended");
export const hello = signal<Hello | undefined>(undefined);
/** What the person has to know about the session. */
export const notice = signal("");
/** What came of the last thing that the person did. */
export const outcome = signal("");

export const runs = signal<ReadonlyMap<string, RunRow>>(new Map());
/** The newest run first. */
export const runList = computed(() =>
  [...runs.value.values()].toSorted((one, other) => other.startedAt - one.startedAt),
);
/** Those that wait for an approval, and can say what would happen. */
export const waitingRuns = computed(() =>
  runList.value.filter(({ status, waiting }) => status === "needs_confirmation" && waiting !== undefined),
);

/** The newest events, the newest first, and how many arrived in all. */
export const events = signal<readonly EventRow[]>([]);
export const verdicts = signal({ recorded: 0, ignored: 0, rejected: 0 });
/** How many events arrived since the last reset. */
export const arrived = computed(() => {
  const { recorded, ignored, rejected } = verdicts.value;
  return recorded + ignored + rejected;
});
/** What the events amount to, and how far the server's clock is ahead of that of the browser. */
export const metrics = signal<EventFigures>({
  histogram: { now: Date.now(), everyMs: 10_000, bars: [] },
  problems: [],
  otherProblems: 0,
  coverage: [],
  unknownNames: [],
});
export const coverage = computed(() => metrics.value.coverage);
export const clockAhead = signal(0);
/** Changes when events are numbered again, or forgotten: what was read of one is read again. */
export const eventsAge = signal(0);
/** The sandbox of the last three views; undefined until it has answered. */
export const sandbox = signal<SandboxMessage | undefined>(undefined);
export const targetings = signal<TargetingsMessage>({ kind: "targetings", targetings: [], version: 0, now: 0 });
export const faults = signal<FaultsMessage>({ kind: "faults", faults: [], operations: [], kinds: [] });

/** The most rows of a list; of the list of events fewer, since it changes four times a second. */
export const MOST_ROWS = 500;
export const MOST_EVENTS = 100;

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
  if (placeOf(hash.value) !== placeOf(location.hash)) scrollTo(0, 0);
  hash.value = location.hash;
  // What came of a button belongs to the view in which it was pressed.
  outcome.value = carried;
  carried = "";
});

/** The place that an address leads to: another event or approval of a list leaves the list where it is. */
function placeOf(address: string): string {
  return address.replace(/(?<=^#\/events).*|(?<=^#\/approvals\/).*/, "");
}

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

/** Counts change many times a second, and are read out at most this often. */
const EVERY_MS = 2000;

const counts = computed(() => {
  switch (route.value.view) {
    case "approvals":
      return counted(waitingRuns.value.length, "run waits for a decision.", "runs wait for a decision.");
    case "runs": {
      const running = runList.value.filter(({ status }) => status === "running").length;
      return `${counted(runList.value.length, "run")}, ${running} running.`;
    }
    case "events": {
      const { recorded, ignored, rejected } = verdicts.value;
      const all = counted(arrived.value, "event");
      return `${all}: ${number(recorded)} recorded, ${number(ignored)} dropped, ${number(rejected)} rejected.`;
    }
    case "targetings":
      return `${counted(targetings.value.targetings.length, "targeting")}.`;
    case "faults":
      return `${counted(faults.value.faults.length, "fault")}.`;
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
