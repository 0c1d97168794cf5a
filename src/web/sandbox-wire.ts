// The messages between a server and its web page about a sandbox: its events, targetings and faults. wire.ts has all
// other messages.

/** Announces the sandbox whose views the page shows. Until this message arrives, these views are empty. */
export interface SandboxMessage {
  readonly kind: "sandbox";
  readonly address: string;
  readonly appKey: string;
  /** Set if the page may only read the sandbox, which is on another machine: it cannot add faults or send events. */
  readonly readOnly?: boolean | undefined;
  /** Set if the sandbox does not answer. The page then shows the last known state. */
  readonly isLost?: boolean | undefined;
}

/** The events that arrived since the last update, with the statistics of all events. */
export interface EventsMessage extends EventFigures {
  readonly kind: "events";
  /** Set if the page must drop the events that it has, because the log was reset or the stream has just started. */
  readonly whole?: boolean;
  /** The newest events that the page does not have yet, the oldest first. At most 100. */
  readonly events: readonly EventRow[];
  readonly counts: Readonly<Record<Verdict, number>>;
}

export interface EventFigures {
  /** The events of the last ten minutes in bars. `now` is the time of the server. Bars without events are omitted. */
  readonly histogram: { readonly now: number; readonly everyMs: number; readonly bars: readonly HistogramBar[] };
  /** The most frequent reasons why events were not recorded. `otherProblems` counts the events with other reasons. */
  readonly problems: readonly (EventCause & { readonly of: CauseGroup })[];
  readonly otherProblems: number;
  readonly coverage: readonly CoverageRow[];
  /** The most frequent names that are not supported and resemble no supported name. */
  readonly unknownNames: readonly CoverageRow[];
}

export type Verdict = "recorded" | "ignored" | "rejected";

/** The events that arrived within `everyMs` milliseconds after `at`, counted by result. */
export interface HistogramBar extends Readonly<Record<Verdict, number>> {
  readonly at: number;
}

/** A sentence in parts. Names of fields and events are in `code`. */
export type Words = readonly (string | { readonly code: string })[];

/** All events that were not recorded for the same reason. `GET /page/events?problem={id}` lists them. */
export interface EventCause {
  readonly id: number;
  readonly verdict: Exclude<Verdict, "recorded">;
  readonly count: number;
  /** One of the names of these events. Null if they have no name. `otherNames`: the number of others, at most 19. */
  readonly name: string | null;
  readonly otherNames?: number;
  /** The supported event that has this name or was probably meant. Absent if none, or if the name does not matter. */
  readonly event?: string;
  readonly cause: Words;
  /** How to fix these events: `rename transaction_id to tx_id`. If there are several fixes, each has its count. */
  readonly fix: Words;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly latest: number;
  readonly platforms: readonly { readonly platform: string; readonly events: number }[];
}

/**
 * The causes that the overview lists together: those of one event name or, without `name`, a single cause. `count`: how
 * many events have one of these causes. `total`: how many arrived with this name or a misspelling of it, or in all.
 */
interface CauseGroup {
  readonly key: string;
  readonly name?: string | undefined;
  readonly count: number;
  readonly total: number;
}

export interface EventRow {
  /** The number of the event, from 1 in the order of arrival. */
  readonly seq: number;
  readonly at: number;
  readonly verdict: Verdict;
  readonly uid: string | null;
  readonly name: string | null;
  readonly platform?: string;
  readonly cause?: Words;
}

/** The answer of `GET /page/events?filter=…&verdict=…&problem=ID&before=SEQ`: the newest 100, the oldest first. */
export interface EventList {
  readonly events: readonly EventRow[];
  /** How many of all events match. */
  readonly total: number;
  readonly older: boolean;
}

/** The answer of `GET /page/events/{seq}`. */
export interface EventDetail {
  readonly event: EventRow;
  readonly text: string;
  /** Problems that prevented recording come first. */
  readonly problems: readonly EventProblem[];
  readonly corrected?: CorrectedEvent;
  /** Why the event was not recorded, with the counts of all events that were not recorded for the same reason. */
  readonly sameProblem?: EventCause;
  /** The answer of the real endpoint, if events are forwarded to one. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

export interface EventProblem {
  readonly message: string;
  readonly fix: string;
  /** Whether the event is not recorded, or may not be recorded, because of this problem. */
  readonly isDecisive: boolean;
  readonly section?: string;
}

export interface CorrectedEvent {
  readonly text: string;
  /** The renamed fields, each as `orderId → tx_id`. A corrected value of `eventName` is not among them. */
  readonly renamed: readonly string[];
  readonly lines: readonly BodyLine[];
  /** The paths of fields that were added. Their values are only examples: the person must replace them. */
  readonly examples: readonly string[];
}

export type BodyLine = readonly { readonly is: "same" | "removed" | "added"; readonly text: string }[];

export interface CoverageRow {
  readonly name: string;
  /** How many events had this name. */
  readonly count: number;
  /** How many of these were not recorded. */
  readonly wrong: number;
  /** How many events had a misspelling of this name. None of them was recorded. */
  readonly misspelt: number;
  /** Which misspellings arrived, or that the name itself is unknown. */
  readonly note?: Words;
  readonly parameters: readonly ParameterCoverage[];
}

export interface ParameterCoverage {
  readonly name: string;
  readonly required: boolean;
  /**
   * `count`: how many events had the parameter, even as null. `missing`: how many lacked a required value. `doubtful`:
   * how many had a value of a wrong type, or an empty required one.
   */
  readonly count: number;
  readonly missing: number;
  readonly doubtful: number;
}

/** The formats of `GET /page/events/tests?format=…`: tests for events and parameters that have not arrived. */
export type TestFormat = "vitest" | "playwright" | "curl" | "json";

export interface TargetingsMessage {
  readonly kind: "targetings";
  readonly targetings: readonly TargetingRow[];
  /** A number that differs after every change of a targeting. The page then reads the open parts of the tree again. */
  readonly version: number;
  readonly now: number;
}

/** A targeting with its counts. `GET /page/targetings/{_id}` returns its options. */
export interface TargetingRow {
  readonly _id: string;
  readonly name: string;
  readonly project: string;
  readonly options: number;
  readonly groups: number;
  readonly contexts: number;
  /** When the targeting or one of its options was last changed. Absent if that was before the sandbox started. */
  readonly changedAt?: number;
  /** When the targeting was created. Absent if that was before the sandbox started. */
  readonly createdAt?: number;
}

/**
 * An option or group with its counts. `GET /page/targetings/{_id}?parent=…&from=N` returns an OptionList with the
 * options of the top level or of a group. `GET /page/targetings?search=…&from=N` searches all targetings for options
 * whose name contains the text or that have it as a Context ID.
 */
export interface OptionRow {
  readonly _id: string;
  readonly name: string;
  readonly isGroup: boolean;
  readonly contexts: number;
  /** Only for groups: the number of Context IDs of the sub-options. */
  readonly contextsInside?: number;
  readonly children: number;
  /** When the option was created or last changed. Absent if that was before the sandbox started. */
  readonly changedAt?: number;
  /** When the option was created. Absent if that was before the sandbox started, or if the option was changed later. */
  readonly createdAt?: number;
  readonly group?: string;
  /** Only in search results: the ID of the targeting. */
  readonly targeting?: string;
}

export interface OptionList {
  readonly options: readonly OptionRow[];
  readonly total: number;
}

/** The answer of `GET /page/targetings/{_id}?option=ID`: the first Context IDs of an option, and their total number. */
export interface OptionDetail {
  readonly contextIds: readonly string[];
  readonly total: number;
}

/** The active faults. POST a NewFault to `/page/faults` to add one, and to `/page/faults/{id}/remove` to remove one. */
export interface FaultsMessage {
  readonly kind: "faults";
  readonly faults: readonly FaultRow[];
  /** The operations and the kinds from which a person chooses for a new fault. */
  readonly operations: readonly string[];
  readonly kinds: readonly FaultKind[];
  /** The most common faults. */
  readonly presets: readonly { readonly title: string; readonly says: string; readonly fault: NewFault }[];
}

export interface FaultRow {
  readonly id: number;
  readonly operation: string;
  readonly kind: string;
  readonly times: string;
  readonly says: string;
  readonly met: number;
  readonly struck: number;
}

export interface FaultKind {
  readonly name: string;
  readonly says: string;
  readonly fields: readonly FaultField[];
}

export interface FaultField {
  readonly name: string;
  readonly label: string;
  /** The default value: a number, or a boolean for a checkbox. */
  readonly value?: number | boolean;
  readonly least?: number;
  readonly most?: number;
}

/** The body of a request that adds a fault. Its other fields depend on the kind of the fault. */
export interface NewFault {
  readonly operation: string;
  readonly kind: string;
  readonly times?: number;
  readonly probability?: number;
  /** The fault is removed automatically after this many milliseconds. */
  readonly forMs?: number;
  readonly [field: string]: number | boolean | string | undefined;
}
