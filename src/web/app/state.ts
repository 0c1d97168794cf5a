import { computed, signal } from "@preact/signals";
import type { EventFigures, EventRow, FaultsMessage, SandboxMessage, TargetingsMessage } from "../sandbox-wire.ts";
import type { Hello, LoginWays, RunRow } from "../wire.ts";

// What the page knows. The stream writes it; the views read it.

/** How the page stands to its server. */
export type Link =
  | { readonly is: "waiting" | "live" | "lost" | "ended" }
  | { readonly is: "refused"; readonly ways: LoginWays };

export const link = signal<Link>({ is: "waiting" });
/** Whether the server is there: without it nothing is decided. A view within a host has no link of its own. */
export const isConnected = computed(() => link.value.is !== "lost" && link.value.is !== "ended");
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
