import { batch, computed, effect, signal } from "@preact/signals";
import type { EventFigures, EventRow, FaultsMessage, SandboxMessage, TargetingsMessage } from "../sandbox-wire.ts";
import type { Hello, LoginWays, RunRow, ViewName } from "../wire.ts";
import { counted, number } from "./plain-words.ts";

// The state of the page. The stream updates it, and the views show it.

type Link =
  | { readonly is: "waiting" | "live" | "lost" | "ended" }
  | { readonly is: "refused"; readonly ways: LoginWays };

export function set<Value>(to: { value: Value }, value: NoInfer<Value>): void {
  to.value = value;
}

/** Returns a function that sets a filter of a list and shows its first page. */
export function narrows<Value>(filter: { value: Value }, from: { value: number }) {
  return (value: NoInfer<Value>): void =>
    batch(() => {
      filter.value = value;
      from.value = 0;
    });
}

export const link = signal<Link>({ is: "waiting" });
/** False if the connection is lost: nobody can decide then. True before the first one, so always for a host's view. */
export const isConnected = computed(() => link.value.is !== "lost" && link.value.is !== "ended");
export const hasEnded = computed(() => link.value.is === "ended");
/** False if the connection is lost or the sandbox does not answer the server: the sandbox cannot be changed then. */
export const isSandboxThere = computed(() => isConnected.value && !sandbox.value?.isLost);
export const hello = signal<Hello | undefined>(undefined);
/** The notice about the session, for example that its link was used a second time. Empty if there is none. */
export const notice = signal("");
export const outcome = signal("");

export const runs = signal<ReadonlyMap<string, RunRow>>(new Map());
export const runList = computed(() => [...runs.value.values()].toSorted((one, other) => timeOf(other) - timeOf(one)));

/** Returns when a run began: when it was approved or, if that did not happen or is unknown, when it was requested. */
export function timeOf({ startedAt, beganAt = startedAt }: RunRow): number {
  return beganAt;
}

/** The runs that need approval and whose effect is known. */
export const waitingRuns = computed(() =>
  runList.value.filter(({ status, waiting }) => status === "needs_confirmation" && waiting !== undefined),
);

/** The waiting runs that can still be approved, here or elsewhere. Titles and the navigation count only these. */
export const openRuns = computed(() => waitingRuns.value.filter((run) => !isBlocked(run)));

/** Returns whether a waiting run cannot be approved: something has changed, or this page cannot have it executed. */
export function isBlocked({ waiting }: RunRow): boolean {
  return waiting?.stale !== undefined || waiting?.ended === true;
}

/** The newest events, the newest first. `verdicts` counts all events of the sandbox by result. */
export const events = signal<readonly EventRow[]>([]);
export const verdicts = signal({ recorded: 0, ignored: 0, rejected: 0 });
export const arrived = computed(() => {
  const { recorded, ignored, rejected } = verdicts.value;
  return recorded + ignored + rejected;
});
/** The statistics of events. `clockAhead`: how many milliseconds the sandbox's clock is ahead of the browser's. */
export const metrics = signal<EventFigures>({
  histogram: { now: Date.now(), everyMs: 10_000, bars: [] },
  problems: [],
  otherProblems: 0,
  coverage: [],
  unknownNames: [],
});
export const clockAhead = signal(0);
/** Increases when the page gets all events again, for example after a reset. Then the shown event is read again. */
export const eventsAge = signal(0);
/** The sandbox whose events, targetings and faults are shown; undefined until the first message about it. */
export const sandbox = signal<SandboxMessage | undefined>(undefined);
export const targetings = signal<TargetingsMessage>({ kind: "targetings", targetings: [], version: 0, now: 0 });
export const faults = signal<FaultsMessage>({ kind: "faults", faults: [], operations: [], kinds: [], presets: [] });

/** The maximum number of rows in the list of runs (`MAX_ROWS`), and of events, which change up to 4 times a second. */
export const MAX_ROWS = 500;
export const MAX_EVENTS = 100;

export const VIEW_TITLES = {
  overview: "Overview",
  approvals: "Approvals",
  runs: "Runs",
  targetings: "Targetings",
  events: "Events",
  faults: "Fault injection",
} as const satisfies Record<ViewName, string>;

const hash = signal(location.hash);
let carried = "";
addEventListener("hashchange", () => {
  if (placeOf(hash.value) !== placeOf(location.hash)) scrollTo(0, 0);
  hash.value = location.hash;
  // The result of an action disappears when the address changes, unless `go` has passed it on to the new view.
  outcome.value = carried;
  carried = "";
});

/** Returns the part of the address on which the scroll position depends: not which event or approval is chosen. */
function placeOf(address: string): string {
  return address.replace(/(?<=^#\/events).*|(?<=^#\/approvals\/).*/, "");
}

/** Must be called after `history.replaceState`, which changes the address without a `hashchange` event. */
export function noteAddress(): void {
  hash.value = location.hash;
}

export function go(address: string, said: string): void {
  carried = said;
  location.hash = address;
}

/** The view and the ID in the address, e.g. `#/runs/{runId}`. If the server has no such view, its first view. */
export const route = computed(() => {
  const [, name, id] = hash.value.split("/");
  const views = hello.value?.views ?? [];
  const view = views.find((one) => one === name) ?? views[0];
  return { view, id: id || undefined };
});

/** The minimum milliseconds between two announcements of changed counts. The counts of a new view come at once. */
const EVERY_MS = 2000;

const counts = computed(() => {
  switch (route.value.view) {
    case "approvals":
      return counted(openRuns.value.length, "run is waiting for a decision.", "runs are waiting for a decision.");
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

/** The counts of the shown view, or of the events that match a filter, for screen readers. */
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
