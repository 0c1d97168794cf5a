// The messages about a sandbox (see wire.ts): its events, targetings and faults.

/** The address of the sandbox of this page. The sandbox's views are empty until this message arrives. */
export interface SandboxMessage {
  readonly kind: "sandbox";
  /** The base address of the sandbox's APIs, and an app key that its event API accepts. */
  readonly address: string;
  readonly appKey: string;
  /** Faults and test events are not allowed: they can only be sent from the sandbox's own machine. */
  readonly readOnly?: boolean | undefined;
  /** The sandbox does not answer. The page shows its last known state. */
  readonly isLost?: boolean | undefined;
}

/** The events that arrived at a sandbox since the last update, with statistics of all events. */
export interface EventsMessage extends EventFigures {
  readonly kind: "events";
  /** The page must drop earlier events: the log was reset, or this is the first message of a stream. */
  readonly whole?: boolean;
  /** The newest events that are not on the page yet, oldest first, at most 100. */
  readonly events: readonly EventRow[];
  readonly counts: Readonly<Record<Verdict, number>>;
}

/** Statistics of all events since the last reset. */
export interface EventFigures {
  /** Events of the last ten minutes. `now` is the server's clock. A bar is absent if no event arrived. */
  readonly histogram: { readonly now: number; readonly everyMs: number; readonly bars: readonly HistogramBar[] };
  /** The most frequent causes for which events were not recorded, and the number of events with other causes. */
  readonly problems: readonly EventCause[];
  readonly otherProblems: number;
  readonly coverage: readonly CoverageRow[];
  /** The most frequent event names that are not supported. */
  readonly unknownNames: readonly UnknownName[];
}

export type Verdict = "recorded" | "ignored" | "rejected";

/** Events that arrived within `everyMs` milliseconds from `at`. */
export interface HistogramBar extends Readonly<Record<Verdict, number>> {
  readonly at: number;
}

/** A sentence in parts. Names of fields and events are `code`. */
export type Words = readonly (string | { readonly code: string })[];

/** Events that were not recorded, all for the same cause. `GET /page/events?problem={id}` lists them. */
export interface EventCause {
  readonly id: number;
  readonly verdict: Exclude<Verdict, "recorded">;
  readonly count: number;
  /** An event name with this cause, and how many other names have it; null if the events have no name. */
  readonly name: string | null;
  readonly otherNames?: number;
  /**
   * The documented event that was probably intended; absent if none is similar, or if the cause is the same for all
   * events.
   */
  readonly event?: string;
  readonly cause: Words;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The sequence number of the newest event. */
  readonly latest: number;
  readonly platforms: readonly { readonly platform: string; readonly events: number }[];
}

/** An event that arrived. `GET /page/events/{seq}` returns all its details. */
export interface EventRow {
  /** Counts from 1, in the order of arrival. */
  readonly seq: number;
  readonly at: number;
  readonly verdict: Verdict;
  readonly uid: string | null;
  readonly name: string | null;
  readonly platform?: string;
  /** The reason why it was not recorded. */
  readonly cause?: Words;
}

/**
 * The answer of `GET /page/events?filter=…&verdict=…&problem=ID&before=SEQ`: the newest 100 that match, oldest first.
 */
export interface EventList {
  readonly events: readonly EventRow[];
  readonly older: boolean;
}

/** The answer of `GET /page/events/{seq}`. */
export interface EventDetail {
  readonly event: EventRow;
  /** The body as it was sent. */
  readonly text: string;
  /** Decisive problems come first. */
  readonly problems: readonly EventProblem[];
  readonly corrected?: CorrectedEvent;
  /** All events with the same problem. */
  readonly sameProblem?: EventCause;
  /** The answer of the real endpoint, if events are forwarded to one. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

/** One problem of an event, and how to fix it. */
export interface EventProblem {
  readonly message: string;
  readonly fix: string;
  /** Because of this problem, the event was not recorded, or the service may not record it. */
  readonly isDecisive: boolean;
  /** The section of the event API document. */
  readonly section?: string;
}

/** An event with its mistakes corrected. */
export interface CorrectedEvent {
  /** The event as JSON. */
  readonly text: string;
  /** The renamed fields, each as `orderId → tx_id`. The name of the event itself is not included. */
  readonly renamed: readonly string[];
  /** The differences from the event that was sent. */
  readonly lines: readonly BodyLine[];
  /** Fields whose value is only an example. */
  readonly examples: readonly string[];
}

/** A line of a body, in parts. */
export type BodyLine = readonly { readonly is: "same" | "removed" | "added"; readonly text: string }[];

/** How often a documented event arrived, and how often with each parameter. */
export interface CoverageRow {
  readonly name: string;
  readonly count: number;
  /** How many of these events were not recorded. */
  readonly wrong: number;
  readonly parameters: readonly ParameterCoverage[];
}

export interface ParameterCoverage {
  readonly name: string;
  readonly required: boolean;
  /** How many events had it, and how many were dropped because it was missing. */
  readonly count: number;
  readonly missing: number;
}

/** An event name that is not supported, and the most similar supported name. */
export interface UnknownName {
  readonly name: string;
  readonly count: number;
  readonly nearest?: string;
}

/** The formats of `GET /page/events/tests?format=…`: tests for events and parameters that have not arrived. */
export type TestFormat = "vitest" | "playwright" | "curl" | "json";

/** The targetings of a sandbox. */
export interface TargetingsMessage {
  readonly kind: "targetings";
  readonly targetings: readonly TargetingRow[];
  /** Changes each time any targeting changes. The page then reads its open branches again. */
  readonly version: number;
  /** The server's clock. */
  readonly now: number;
}

/** A targeting with its counts. `GET /page/targetings/{_id}` returns its options. */
export interface TargetingRow {
  readonly _id: string;
  readonly name: string;
  readonly project: string;
  /** The number of options, including sub-options. */
  readonly options: number;
  readonly contexts: number;
  /** When something in it was last changed since the sandbox started; absent if nothing was. */
  readonly changedAt?: number;
}

/**
 * An option or group with its counts. `GET /page/targetings/{_id}?parent=…&from=N` returns an OptionList: the options
 * of
 * the top level or of a group. `GET /page/targetings?search=…` returns all options whose name or Context ID matches.
 */
export interface OptionRow {
  readonly _id: string;
  readonly name: string;
  readonly isGroup: boolean;
  readonly contexts: number;
  readonly children: number;
  /** When it was created or changed since the sandbox started. */
  readonly changedAt?: number;
  readonly isNew?: boolean;
  /** The names of its targeting and group; only in the answer of a search. */
  readonly group?: string;
  /** The targeting's ID; only in the answer of a search. */
  readonly targeting?: string;
}

export interface OptionList {
  readonly options: readonly OptionRow[];
  readonly total: number;
}

/** The answer of `GET /page/targetings/{_id}?option=ID`: the first Context IDs, and their total number. */
export interface OptionDetail {
  readonly contextIds: readonly string[];
  readonly total: number;
}

/** The active faults. `POST /page/faults` adds a NewFault, `/page/faults/{id}/remove` removes one. */
export interface FaultsMessage {
  readonly kind: "faults";
  readonly faults: readonly FaultRow[];
  /** The operations that a fault can match, and the kinds of faults. */
  readonly operations: readonly string[];
  readonly kinds: readonly FaultKind[];
}

export interface FaultRow {
  readonly id: number;
  readonly operation: string;
  readonly kind: string;
  readonly times: string;
  /** Describes what happens to a request that triggers the fault. */
  readonly says: string;
  /** How many requests matched, and how many of them triggered the fault. */
  readonly met: number;
  readonly struck: number;
}

/** A kind of fault with its specific fields. */
export interface FaultKind {
  readonly name: string;
  readonly says: string;
  readonly fields: readonly FaultField[];
}

export interface FaultField {
  readonly name: string;
  readonly label: string;
  /** The default value: a number, or a boolean for a checkbox. A number without a default is optional. */
  readonly value?: number | boolean;
  readonly least?: number;
  readonly most?: number;
}

/** A fault as the page adds it. The specific fields of its kind are added to these. */
export interface NewFault {
  readonly operation: string;
  readonly kind: string;
  readonly times?: number;
  readonly probability?: number;
  /** The fault is removed automatically after this many milliseconds. */
  readonly forMs?: number;
  readonly [field: string]: number | boolean | string | undefined;
}
