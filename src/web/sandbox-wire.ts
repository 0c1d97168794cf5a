// The part of the wire (wire.ts) that is about a sandbox: its events, targetings and faults.

/** Where the sandbox of this page is. Its views are empty until this comes. */
export interface SandboxMessage {
  readonly kind: "sandbox";
  /** Base address of its APIs, and an app key that its event API takes. */
  readonly address: string;
  readonly appKey: string;
  /** Faults and test events are for the machine on which the sandbox runs. */
  readonly readOnly?: boolean | undefined;
  /** The sandbox does not answer; what the page shows of it is what it last said. */
  readonly isLost?: boolean | undefined;
}

/** Events that arrived at a sandbox since the last update, and what all of them amount to. */
export interface EventsMessage extends EventFigures {
  readonly kind: "events";
  /** Earlier ones are forgotten: the log was reset, or this is the first message of a stream. */
  readonly whole?: boolean;
  /** The newest ones that are not on the page yet, oldest first, at most 100. */
  readonly events: readonly EventRow[];
  readonly counts: Readonly<Record<Verdict, number>>;
}

/** What all events since the last reset amount to. */
export interface EventFigures {
  /** Events of the last ten minutes. `now` is the server's clock; a bar is absent where nothing came. */
  readonly histogram: { readonly now: number; readonly everyMs: number; readonly bars: readonly HistogramBar[] };
  /** The most frequent causes for which events were not recorded, and how many events have others. */
  readonly problems: readonly EventCause[];
  readonly otherProblems: number;
  readonly coverage: readonly CoverageRow[];
  /** The most frequent names that are not supported. */
  readonly unknownNames: readonly UnknownName[];
}

export type Verdict = "recorded" | "ignored" | "rejected";

/** Events that came within `everyMs` milliseconds from `at` on. */
export interface HistogramBar extends Readonly<Record<Verdict, number>> {
  readonly at: number;
}

/** A sentence in parts: names of fields and events are `code`. */
export type Words = readonly (string | { readonly code: string })[];

/** Events that were not recorded for one cause; `GET /page/events?problem={id}` lists them. */
export interface EventCause {
  readonly id: number;
  readonly verdict: Exclude<Verdict, "recorded">;
  readonly count: number;
  /** The event name, and how many other names have the same problem; null where there is none. */
  readonly name: string | null;
  readonly otherNames?: number;
  readonly cause: Words;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The number of the newest one. */
  readonly latest: number;
  readonly platforms: readonly { readonly platform: string; readonly events: number }[];
}

/** An event that arrived; everything about it is at `GET /page/events/{seq}`. */
export interface EventRow {
  /** Counts from 1 on, in the order of arrival. */
  readonly seq: number;
  readonly at: number;
  readonly verdict: Verdict;
  readonly uid: string | null;
  readonly name: string | null;
  readonly platform?: string;
  /** Why it was not recorded. */
  readonly cause?: Words;
}

/** The answer of `GET /page/events?filter=…&verdict=…&problem=ID&before=SEQ`: the newest 100 that match, oldest first. */
export interface EventList {
  readonly events: readonly EventRow[];
  readonly older: boolean;
}

/** The answer of `GET /page/events/{seq}`. */
export interface EventDetail {
  readonly event: EventRow;
  /** The body as it was sent. */
  readonly text: string;
  /** What decides first. */
  readonly problems: readonly EventProblem[];
  readonly corrected?: CorrectedEvent;
  /** All events with the same problem. */
  readonly sameProblem?: EventCause;
  /** What the real endpoint answered, where events are passed on to one. */
  readonly forwarded?: { readonly status: number; readonly message: string };
}

/** One thing to know about an event, and how to fix it. */
export interface EventProblem {
  readonly message: string;
  readonly fix: string;
  /** It was not recorded, or perhaps will not be by the service, because of this. */
  readonly isDecisive: boolean;
  /** The section of the event API's document. */
  readonly section?: string;
}

/** An event as it would be recorded. */
export interface CorrectedEvent {
  /** It as JSON. */
  readonly text: string;
  /** What was renamed beside the event itself, each as `orderId → tx_id`. */
  readonly renamed: readonly string[];
  /** The same beside what was sent. */
  readonly lines: readonly BodyLine[];
  /** Fields whose value is only an example. */
  readonly examples: readonly string[];
}

/** A line of a body in pieces. */
export type BodyLine = readonly { readonly is: "same" | "removed" | "added"; readonly text: string }[];

/** What arrived of one of the events of the documents: how often, and how often with each parameter. */
export interface CoverageRow {
  readonly name: string;
  readonly count: number;
  /** How many of them were not recorded. */
  readonly wrong: number;
  readonly parameters: readonly ParameterCoverage[];
}

export interface ParameterCoverage {
  readonly name: string;
  readonly required: boolean;
  /** How many events had it, and how many were dropped for want of it. */
  readonly count: number;
  readonly missing: number;
}

/** An event name that is not supported, and the one that it was probably meant to be. */
export interface UnknownName {
  readonly name: string;
  readonly count: number;
  readonly nearest?: string;
}

/** The formats of `GET /page/events/tests?format=…`: tests for what was not seen. */
export type TestFormat = "vitest" | "playwright" | "curl" | "json";

/** The targetings of a sandbox. */
export interface TargetingsMessage {
  readonly kind: "targetings";
  readonly targetings: readonly TargetingRow[];
  /** Changes with every change of any targeting: what was read below one is read again. */
  readonly version: number;
  /** The server's clock. */
  readonly now: number;
}

/** A targeting with its counts; its options are at `GET /page/targetings/{_id}`. */
export interface TargetingRow {
  readonly _id: string;
  readonly name: string;
  readonly project: string;
  /** Sub-options are counted, too. */
  readonly options: number;
  readonly contexts: number;
  /** When something in it was last changed since the sandbox started; absent where nothing was. */
  readonly changedAt?: number;
}

/**
 * An option or group with its counts. `GET /page/targetings/{_id}?parent=…&search=…&from=N` answers an OptionList:
 * the options of the top level, of a group, or all whose name or Context ID fits.
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
  /** The names of its targeting and group, in the answer of a search. */
  readonly group?: string;
  /** The targeting's ID, in the answer of a search. */
  readonly targeting?: string;
}

export interface OptionList {
  readonly options: readonly OptionRow[];
  readonly total: number;
}

/** The answer of `GET /page/targetings/{_id}?option=ID`: the first Context IDs, and how many there are. */
export interface OptionDetail {
  readonly contextIds: readonly string[];
  readonly total: number;
}

/** Active simulated failures. `POST /page/faults` adds a NewFault, `/page/faults/{id}/remove` removes one. */
export interface FaultsMessage {
  readonly kind: "faults";
  readonly faults: readonly FaultRow[];
  /** The operations that a fault can name, and the kinds of faults. */
  readonly operations: readonly string[];
  readonly kinds: readonly FaultKind[];
}

export interface FaultRow {
  readonly id: number;
  readonly operation: string;
  readonly kind: string;
  readonly times: string;
  /** What happens to a request in which it is triggered. */
  readonly says: string;
  /** How many requests it has counted, and in how many of them it was triggered. */
  readonly met: number;
  readonly struck: number;
}

/** A kind of fault with the fields that it alone has. */
export interface FaultKind {
  readonly name: string;
  readonly says: string;
  readonly fields: readonly FaultField[];
}

export interface FaultField {
  readonly name: string;
  readonly label: string;
  /** A number, or whether it is so. Of a number without a value, the field may stay empty. */
  readonly value?: number | boolean;
  readonly least?: number;
  readonly most?: number;
}

/** A fault as the page adds it; the fields of its kind come beside these. */
export interface NewFault {
  readonly operation: string;
  readonly kind: string;
  readonly times?: number;
  readonly probability?: number;
  /** It removes itself after so many milliseconds. */
  readonly forMs?: number;
  readonly [field: string]: number | boolean | string | undefined;
}
